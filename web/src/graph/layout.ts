import dagre from "@dagrejs/dagre";

export type Link = { source: string; target: string };
export type Place = { x: number; y: number };
export const NODE = { width: 190, height: 46 };

/** Layers from left to right, by the library. `longest-path` ranks thousands of nodes in milliseconds. */
export function layout(ids: string[], links: Link[]): Map<string, Place> {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 70, ranker: ids.length > 300 ? "longest-path" : "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of ids) graph.setNode(id, { ...NODE });
  const known = new Set(ids);
  for (const { source, target } of links) if (known.has(source) && known.has(target)) graph.setEdge(source, target);
  dagre.layout(graph);
  return new Map(
    ids.map((id) => {
      const { x, y } = graph.node(id);
      return [id, { x: x - NODE.width / 2, y: y - NODE.height / 2 }];
    }),
  );
}

/** What stays visible when everything that is only reached through a collapsed node is hidden. */
export function visible(ids: string[], links: Link[], collapsed: ReadonlySet<string>): Set<string> {
  const next = new Map<string, string[]>();
  const entered = new Set<string>();
  for (const { source, target } of links) {
    next.set(source, [...(next.get(source) ?? []), target]);
    entered.add(target);
  }
  const seen = new Set<string>();
  const queue = ids.filter((id) => !entered.has(id));
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (seen.has(id)) continue;
    seen.add(id);
    if (!collapsed.has(id)) queue.push(...(next.get(id) ?? []));
  }
  return seen;
}
