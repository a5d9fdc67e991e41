import type { Dimension, Region, Slice, Study, StudyPoint } from "../api/studies";
import { money, sumOnAxis } from "../api/spending";
import { duration, figure } from "../ui/format";
import { coloured, RAMP, told, type Option } from "../ui/Picture";
import "../ui/shapes";

const GRID = { left: 64, right: 24, top: 36, bottom: 64 };

export function pointText(point: Record<string, unknown>): string {
  return Object.entries(point)
    .map(([name, value]) => `${name} ${typeof value === "number" ? figure(value) : String(value)}`)
    .join(", ");
}

/** A quantity as it is measured: the platform's own two with their units, others as they were printed. */
export function quantityText(name: string, value: number | null | undefined, currency: string): string {
  if (value === null || value === undefined) return "–";
  if (name === "cost") return money(value, currency);
  return name === "time" ? duration(value) : figure(value);
}

export function quantityTitle(name: string, currency: string): string {
  return { cost: `cost, ${currency}`, time: "time, s" }[name] ?? name;
}

/** Points that have ended, in the order in which their results came. */
export function measured(points: StudyPoint[]): StudyPoint[] {
  return points.filter((point) => point.told !== null).sort((a, b) => a.told! - b.told!);
}

/** What was recommended after each result, and what that is predicted to reach. */
export function recommended(
  points: StudyPoint[],
  quantity: string,
): { spent: number; value: number; point: StudyPoint }[] {
  return measured(points).flatMap((point) => {
    const best = point.best;
    const value = best?.observed?.[quantity] ?? best?.predicted[quantity]?.median;
    return value === undefined || point.spent === null ? [] : [{ spent: point.spent, value, point }];
  });
}

/** The recommendation over what was used up: a step, since it holds until the next result. */
export function spendingOption(points: StudyPoint[], quantity: string, unit: string): Option {
  const line = recommended(points, quantity);
  const all = measured(points).filter((point) => point.spent !== null && point.values[quantity] != null);
  return {
    grid: { ...GRID, bottom: 84 },
    legend: { type: "scroll", bottom: 0, data: ["recommended", "met the constraints", "did not"] },
    tooltip: told((i, series) => {
      if (series === 0)
        return line[i]
          ? `recommended: ${pointText(line[i].point.best!.point)}\n${quantity} ${figure(line[i].value)}`
          : "";
      const point = all.filter((one) => (series === 1) === (one.feasible === true))[i];
      return point ? `${pointText(point.point)}\n${quantity} ${figure(point.values[quantity])}` : "";
    }),
    xAxis: { type: "value", name: `spent, ${unit}`, nameLocation: "middle", nameGap: 26 },
    yAxis: { type: "value", name: quantity, scale: true },
    series: [
      {
        name: "recommended",
        color: "#009e73",
        type: "line",
        step: "end",
        showSymbol: false,
        lineStyle: { width: 2.5 },
        data: line.map((one) => [one.spent, one.value]),
      },
      {
        name: "met the constraints",
        type: "scatter",
        symbolSize: 9,
        color: MET,
        data: dots(all, quantity, true),
      },
      {
        name: "did not",
        type: "scatter",
        symbol: "diamond",
        symbolSize: 9,
        color: NOT_MET,
        data: dots(all, quantity, false),
      },
    ],
  };
}

function dots(points: StudyPoint[], quantity: string, feasible: boolean): [number, number][] {
  return points
    .filter((point) => (point.feasible === true) === feasible)
    .map((point) => [point.spent!, point.values[quantity]!]);
}

/** From broken to held: orange to blue, which people tell apart who do not see red and green. */
export const FEASIBILITY = ["#d55e00", "#f7f1e3", "#0072b2"];
const MET = "#0072b2";
const NOT_MET = "#d55e00";

/** On an axis whose title has the unit: sums without their currency, never as powers of ten. */
function short(name: string, value: number): string {
  return name === "cost" ? sumOnAxis(value) : figure(value);
}

/** The objective against another quantity, with those that no other point beats in both joined. */
export function frontOption(
  points: StudyPoint[],
  front: number[],
  quantity: string,
  other: string,
  currency = "",
): Option {
  const text = (name: string, value: number | null | undefined) => quantityText(name, value, currency);
  const known = measured(points).filter((one) => one.values[quantity] != null && one.values[other] != null);
  const at = (one: StudyPoint) => [one.values[other]!, one.values[quantity]!] as [number, number];
  const groups = [
    known.filter((one) => front.includes(one.number)).sort((a, b) => a.values[other]! - b.values[other]!),
    known.filter((one) => one.feasible === true),
    known.filter((one) => one.feasible !== true),
  ];
  return {
    grid: { ...GRID, bottom: 84 },
    legend: { type: "scroll", bottom: 0 },
    tooltip: told((i, series) => {
      const one = groups[series]?.[i];
      return one
        ? `point ${one.number}: ${pointText(one.point)}\n${quantity} ${text(quantity, one.values[quantity])}, ${other} ${text(other, one.values[other])}`
        : "";
    }),
    xAxis: {
      type: "value",
      name: quantityTitle(other, currency),
      nameLocation: "middle",
      nameGap: 28,
      scale: true,
      axisLabel: { hideOverlap: true, formatter: (value: number) => short(other, value) },
    },
    yAxis: { type: "value", name: quantityTitle(quantity, currency), scale: true },
    series: [
      { name: "Pareto front", type: "line", symbolSize: 12, color: "#009e73", data: groups[0]!.map(at) },
      { name: "met the constraints", type: "scatter", symbolSize: 9, color: MET, data: groups[1]!.map(at) },
      {
        name: "did not",
        type: "scatter",
        symbol: "diamond",
        symbolSize: 9,
        color: NOT_MET,
        data: groups[2]!.map(at),
      },
    ],
  };
}

/** Whether more of another quantity than the objective is better, as the goal says; otherwise less is. */
export function risesIn(goal: Study["goal"], quantity: string): boolean {
  const { also = {}, constraints = [] } = goal as {
    also?: Record<string, string>;
    constraints?: string[];
  };
  if (also[quantity]) return also[quantity] === "maximise";
  return constraints.some((one) => one.split(/\s*>=?\s*/, 1)[0] === quantity && one.includes(">"));
}

/** The numbers of the completed points that no other beats in two quantities; each is a name and whether it rises. */
export function paretoOf(points: StudyPoint[], ...of: [[string, boolean], [string, boolean]]): number[] {
  const known = measured(points)
    .filter((one) => one.state === "completed" && one.feasible !== false)
    .map((one) => ({
      number: one.number,
      score: of.map(([name, rises]) => (rises ? 1 : -1) * (one.values[name] ?? NaN)),
    }))
    .filter((one) => one.score.every((value) => !Number.isNaN(value)));
  const beats = (a: number[], b: number[]) =>
    a.every((value, i) => value >= b[i]!) && a.some((value, i) => value > b[i]!);
  return known
    .filter((one) => !known.some((other) => beats(other.score, one.score)))
    .map((one) => one.number);
}

export type Sorting = { by: string; down: boolean };

/** The points in the order that somebody chose: by number, by a dimension or by what was measured; gaps last. */
export function sortedPoints(points: StudyPoint[], { by, down }: Sorting): StudyPoint[] {
  const value = (one: StudyPoint): unknown =>
    by === "#" ? one.number : (one.point[by] ?? one.values[by] ?? null);
  return [...points].sort((a, b) => {
    const [first, second] = [value(a), value(b)];
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    const order =
      typeof first === "number" && typeof second === "number"
        ? first - second
        : String(first).localeCompare(String(second));
    return down ? -order : order;
  });
}

const SHORT = { axisLabel: { formatter: (value: number) => figure(value) } };

/** One axis a dimension, then the quantities; one line a point, coloured by the objective. */
export function parallelOption(points: StudyPoint[], dimensions: Dimension[], quantity: string): Option {
  const done = measured(points).filter((point) => point.values[quantity] != null);
  const quantities = [...new Set([...done.flatMap((point) => Object.keys(point.values))])].filter(
    (name) => name !== quantity,
  );
  const axes = [
    ...dimensions.map((dimension) => axisOf(dimension)),
    ...[...quantities, quantity].map((name) => ({
      name,
      type: "value" as const,
      scale: true,
      axisLabel: { formatter: (value: number) => short(name, value) },
    })),
  ].map((axis, dim) => ({ ...axis, dim }));
  const values = done.map((point) => [
    ...dimensions.map((dimension) => {
      const value = point.point[dimension.name];
      return value === undefined ? "-" : dimension.values ? String(value) : (value as number);
    }),
    ...[...quantities, quantity].map((name) => point.values[name] ?? "-"),
  ]);
  const scores = done.map((point) => point.values[quantity]!);
  return {
    parallel: { left: 56, right: 128, top: 40, bottom: 28 },
    parallelAxis: axes,
    visualMap: {
      show: true,
      dimension: axes.length - 1,
      ...coloured(scores),
      right: 0,
      bottom: 0,
      itemHeight: 90,
      precision: 3,
      text: [quantity, ""],
      formatter: (value: number) => figure(value),
      inRange: { color: [...RAMP].reverse() },
    },
    series: [{ type: "parallel", smooth: false, lineStyle: { width: 1.5, opacity: 0.7 }, data: values }],
  } as Option;
}

function axisOf(dimension: Dimension) {
  if (dimension.values)
    return { name: dimension.name, type: "category" as const, data: dimension.values.map(String) };
  const type = dimension.log ? ("log" as const) : ("value" as const);
  return { name: dimension.name, type, min: dimension.low, max: dimension.high, ...SHORT };
}

/** How likely the constraints hold over two dimensions; the measured points on top. */
export function regionOption(region: Region, points: StudyPoint[]): Option {
  const cells = region.probability.flatMap((row, i) => row.map((value, j) => [j, i, value ?? "-"]));
  const place = (values: Region["xs"], wanted: unknown) => {
    const exact = values.findIndex((value) => value === wanted);
    if (exact >= 0 || typeof wanted !== "number") return exact;
    const gaps = values.map((value) => Math.abs(Number(value) - wanted));
    return gaps.indexOf(Math.min(...gaps));
  };
  const done = measured(points).map((point) => ({
    point,
    at: [place(region.xs, point.point[region.x]), place(region.ys, point.point[region.y])],
  }));
  const marks = (feasible: boolean) =>
    done.filter((one) => (one.point.feasible === true) === feasible).map((one) => one.at);
  const axis = (name: string, values: Region["xs"]) => ({
    type: "category" as const,
    name,
    nameLocation: "middle" as const,
    data: values.map((value) => (typeof value === "number" ? figure(value) : String(value))),
  });
  return {
    grid: { ...GRID, right: 96 },
    tooltip: told((i, series) => {
      if (series > 0) return "";
      const [j, row, value] = cells[i] ?? [];
      if (j === undefined || row === undefined) return "";
      const goal = region.objective[Number(row)]?.[Number(j)];
      return `${region.x} ${String(region.xs[Number(j)])}, ${region.y} ${String(region.ys[Number(row)])}\nholds with ${figure(Number(value))}\nobjective ${figure(goal)}`;
    }),
    xAxis: { ...axis(region.x, region.xs), nameGap: 28 },
    yAxis: { ...axis(region.y, region.ys), nameGap: 48 },
    visualMap: {
      min: 0,
      max: 1,
      seriesIndex: 0,
      right: 0,
      top: "middle",
      text: ["holds", "broken"],
      precision: 2,
      inRange: { color: FEASIBILITY },
    },
    series: [
      { type: "heatmap", data: cells as [number, number, number][] },
      {
        name: "met the constraints",
        type: "scatter",
        symbol: "circle",
        symbolSize: 8,
        itemStyle: { color: "#fff", borderColor: "#111", borderWidth: 1.5 },
        data: marks(true),
      },
      {
        name: "did not",
        type: "scatter",
        symbol: "diamond",
        symbolSize: 9,
        itemStyle: { color: "#111", borderColor: "#fff", borderWidth: 1 },
        data: marks(false),
      },
    ],
  };
}

/** The model along one dimension: the median and the band that holds nine tenths. */
export function sliceOption(slice: Slice, quantity: string, log: boolean): Option {
  const band = slice.of[quantity] ?? [];
  const isNumber = slice.values.every((value) => typeof value === "number");
  const at = (i: number) => (isNumber ? Number(slice.values[i]) : String(slice.values[i]));
  const line = (pick: (one: (typeof band)[number]) => number) =>
    band.map((one, i) => [at(i), pick(one)]) as [number, number][];
  return {
    grid: GRID,
    tooltip: {
      ...told((i) =>
        band[i]
          ? `${slice.dimension} ${String(slice.values[i])}\n${quantity} ${figure(band[i].median)} (${figure(band[i].low)} to ${figure(band[i].high)})\nconstraints hold with ${figure(slice.probability[i])}`
          : "",
      ),
      trigger: "axis",
    },
    xAxis: {
      type: isNumber ? (log ? "log" : "value") : "category",
      name: slice.dimension,
      nameLocation: "middle",
      nameGap: 26,
      min: isNumber ? "dataMin" : undefined,
      max: isNumber ? "dataMax" : undefined,
    },
    yAxis: { type: "value", name: quantity, scale: true },
    series: [
      {
        type: "line",
        stack: "band",
        showSymbol: false,
        lineStyle: { opacity: 0 },
        data: line((one) => one.low),
      },
      {
        type: "line",
        stack: "band",
        showSymbol: false,
        lineStyle: { opacity: 0 },
        areaStyle: { opacity: 0.25 },
        data: line((one) => one.high - one.low),
      },
      { type: "line", showSymbol: false, lineStyle: { width: 2 }, data: line((one) => one.median) },
    ],
  };
}
