import {
  coordGreedy,
  coordSimplex,
  decrossDfs,
  decrossTwoLayer,
  graph,
  layeringLongestPath,
  layeringSimplex,
  sugiyama,
  twolayerAgg,
} from "d3-dag";
import { NODE, type Link, type Place } from "./visible";

const GAP = { along: 150, across: 18 };
const FEW = 100;

// The library draws from top to bottom; here layers go from left to right, so that sizes and places are turned.
const base = sugiyama().nodeSize([NODE.height, NODE.width]).gap([GAP.across, GAP.along]);
/** The finest drawing of a few; for thousands one pass through each step, which takes them a second at most. */
const fine = base
  .layering(layeringSimplex())
  .decross(decrossTwoLayer().order(twolayerAgg()))
  .coord(coordSimplex());
const quick = base.layering(layeringLongestPath()).decross(decrossDfs()).coord(coordGreedy());

/** Layers from left to right: the upper left corner of each node. */
export function layout(ids: string[], links: Link[]): Map<string, Place> {
  if (ids.length === 0) return new Map();
  const drawn = graph<string, undefined>();
  const nodes = new Map(ids.map((id) => [id, drawn.node(id)]));
  const known = new Set<string>();
  for (const { source, target } of links) {
    const [from, to] = [nodes.get(source), nodes.get(target)];
    const pair = JSON.stringify([source, target]);
    if (!from || !to || from === to || known.has(pair)) continue;
    known.add(pair);
    drawn.link(from, to, undefined);
  }
  (ids.length > FEW ? quick : fine)(drawn);
  return new Map(
    [...nodes].map(([id, node]) => [id, { x: node.y - NODE.width / 2, y: node.x - NODE.height / 2 }]),
  );
}
