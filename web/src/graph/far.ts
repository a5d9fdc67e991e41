import { GraphChart } from "echarts/charts";
import { use as register } from "echarts/core";
import type { Option } from "../ui/Picture";
import type { Link, Place } from "./visible";

register([GraphChart]);

/** Width over height of the picture: the layers of thousands of nodes are far taller than wide. */
const SHAPE = 1.8;

/** Thousands of nodes as dots on a canvas: dragging them costs a repaint, not thousands of elements. */
export function farOption(ids: string[], links: Link[], places: ReadonlyMap<string, Place>): Option {
  const shown = ids.filter((id) => places.has(id));
  const index = new Map(shown.map((id, i) => [id, i]));
  const [right, bottom] = [extent(shown, places, "x"), extent(shown, places, "y")];
  return {
    series: [
      {
        type: "graph",
        layout: "none",
        roam: true,
        left: 40,
        right: 40,
        top: 20,
        bottom: 20,
        scaleLimit: { min: 0.5, max: 400 },
        nodeScaleRatio: 0.5,
        symbolSize: 7,
        selectedMode: "single",
        itemStyle: { color: "#0b8f8a" },
        select: { itemStyle: { color: "#d55e00", borderColor: "#d55e00", borderWidth: 4 } },
        lineStyle: { color: "#808080", width: 0.6, opacity: 0.45 },
        emphasis: { label: { show: true, position: "right", formatter: "{b}" } },
        data: shown.map((id) => ({ name: id, x: (places.get(id)!.x / right) * 1000 * SHAPE, y: (places.get(id)!.y / bottom) * 1000 })),
        links: links.flatMap(({ source, target }) => (index.has(source) && index.has(target) ? [{ source: index.get(source)!, target: index.get(target)! }] : [])),
      },
    ],
  };
}

function extent(ids: string[], places: ReadonlyMap<string, Place>, axis: "x" | "y"): number {
  return ids.reduce((most, id) => Math.max(most, places.get(id)![axis]), 1);
}
