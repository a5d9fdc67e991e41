import { figure } from "./format";
import type { Option } from "./Picture";

export type Line = { label: string; points: { step: number; value: number | null; at?: string }[] };
export type View = { smooth: number; log: boolean; along: "step" | "time" };
export const PLAIN_VIEW: View = { smooth: 0, log: false, along: "step" };

/** An exponential mean that does not begin at zero, as TensorBoard draws it; gaps stay gaps. */
export function smoothed(values: (number | null)[], weight: number): (number | null)[] {
  let mean = 0;
  let known = 0;
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return null;
    mean = weight * mean + (1 - weight) * value;
    known += 1;
    return mean / (1 - weight ** known);
  });
}

/** Where a line's points stand: at their steps, or at the seconds since its first one. */
export function placesOf(line: Line, along: View["along"]): number[] {
  if (along === "step") return line.points.map((point) => point.step);
  const start = Date.parse(line.points.find((point) => point.at)?.at ?? "");
  return line.points.map((point) => (point.at ? (Date.parse(point.at) - start) / 1000 : NaN));
}

type About = { over: string; unit: string; view: View };

export function curveOption(lines: Line[], { over, unit, view }: About): Option {
  const series = lines.flatMap((line, i) => {
    const places = placesOf(line, view.along);
    const values = line.points.map((point) => point.value);
    const drawn = (numbers: (number | null)[]) =>
      numbers.flatMap((value, k) =>
        value === null || (view.log && value <= 0) || Number.isNaN(places[k]) ? [] : [[places[k]!, value]],
      );
    const own = {
      type: "line" as const,
      showSymbol: line.points.length === 1,
      color: COLOURS[i % COLOURS.length],
    };
    const whole = { ...own, name: line.label, lineStyle: { width: 1.75 }, data: drawn(values) };
    if (view.smooth === 0) return [whole];
    return [
      { ...whole, data: drawn(smoothed(values, view.smooth)) },
      {
        ...own,
        name: line.label,
        silent: true,
        tooltip: { show: false },
        lineStyle: { width: 1, opacity: 0.25 },
        data: drawn(values),
      },
    ];
  });
  const many = lines.length > 1;
  return {
    grid: { left: 64, right: 20, top: unit ? 28 : 12, bottom: many ? 74 : 46 },
    legend: { show: many, type: "scroll", bottom: 0 },
    tooltip: {
      trigger: "axis",
      renderMode: "richText",
      confine: true,
      axisPointer: { type: "line" },
      valueFormatter: (value) => figure(typeof value === "number" ? value : null),
    },
    toolbox: { top: -100, feature: { dataZoom: { yAxisIndex: "none" } } },
    dataZoom: [{ type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseMove: "shift", filterMode: "none" }],
    xAxis: {
      type: "value",
      name: view.along === "time" ? "seconds since the first value" : over,
      nameLocation: "middle",
      nameGap: 26,
      min: "dataMin",
      max: "dataMax",
    },
    yAxis: { type: view.log ? "log" : "value", name: unit, scale: true },
    series,
  } as Option;
}

/** The same colours as in every picture; the first is looked for by the benchmark. */
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5cc0", "#8a6d3b"];

/** All points as rows, for a spreadsheet. */
export function tableOf(lines: Line[]): (string | number | null)[][] {
  return [
    ["line", "step", "time", "value"],
    ...lines.flatMap((line) =>
      line.points.map((point) => [line.label, point.step, point.at ?? null, point.value]),
    ),
  ];
}
