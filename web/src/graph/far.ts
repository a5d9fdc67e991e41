import { LinesChart } from "echarts/charts";
import { DataZoomInsideComponent } from "echarts/components";
import { use as register } from "echarts/core";
import { told, type Option } from "../ui/Picture";
import type { Link, Place } from "./visible";

register([DataZoomInsideComponent, LinesChart]);

const CHOSEN = "chosen";
/** At least this share of the picture stays in view: the closest look. */
const CLOSEST = 1 / 400;

/** Thousands of nodes as dots on a canvas: all dots are one shape and all links another, so that a drag repaints two. */
export function farOption(ids: string[], links: Link[], places: ReadonlyMap<string, Place>): Option {
  const dots = ids.flatMap((id) => (places.has(id) ? [[places.get(id)!.x, places.get(id)!.y]] : []));
  const names = ids.filter((id) => places.has(id));
  const [right, bottom] = [extent(dots, 0), extent(dots, 1)];
  return {
    grid: { left: 0, right: 0, top: 0, bottom: 0 },
    xAxis: { ...roomy(right), type: "value", show: false },
    yAxis: { ...roomy(bottom), type: "value", show: false, inverse: true },
    dataZoom: [
      { ...within(right), type: "inside", xAxisIndex: 0 },
      { ...within(bottom), type: "inside", yAxisIndex: 0 },
    ],
    tooltip: told((i) => names[i] ?? ""),
    series: [
      {
        type: "scatter",
        large: true,
        largeThreshold: 0,
        progressive: 0,
        symbolSize: 7,
        itemStyle: { color: "#0b8f8a" },
        data: dots,
        z: 3,
      },
      {
        type: "lines",
        coordinateSystem: "cartesian2d",
        large: true,
        largeThreshold: 0,
        progressive: 0,
        silent: true,
        lineStyle: { color: "#808080", width: 0.6, opacity: 0.45 },
        data: segments(links, places),
        z: 2,
      },
      {
        ...farChoice(undefined),
        type: "scatter",
        silent: true,
        symbolSize: 13,
        itemStyle: { color: "#d55e00" },
        z: 4,
      },
    ],
  };
}

/** What is laid over the picture for the node that was chosen. */
export function farChoice(place: Place | undefined): { id: string; data: number[][] } {
  return { id: CHOSEN, data: place ? [[place.x, place.y]] : [] };
}

/** As the library wants many lines: for each the number of its points, and they. */
function segments(links: Link[], places: ReadonlyMap<string, Place>): Float64Array {
  const found: number[] = [];
  for (const { source, target } of links) {
    const [from, to] = [places.get(source), places.get(target)];
    if (from && to) found.push(2, from.x, from.y, to.x, to.y);
  }
  return Float64Array.from(found);
}

function extent(dots: number[][], axis: 0 | 1): number {
  return dots.reduce((most, dot) => Math.max(most, dot[axis]!), 1);
}

/** Room on all sides, so that what is at the edge can be dragged to the middle. */
function roomy(most: number) {
  return { min: -most, max: 2 * most };
}

function within(most: number) {
  const margin = 0.04 * most;
  return {
    startValue: -margin,
    endValue: most + margin,
    minSpan: 100 * CLOSEST,
    filterMode: "none" as const,
    throttle: 16,
  };
}
