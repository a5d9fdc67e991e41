import type { Prospect, Report, Trial } from "../api/apps";
import { duration, figure } from "../ui/format";
import { told, type Option } from "../ui/Picture";
import "../ui/shapes";

const GRID = { left: 64, right: 24, top: 36, bottom: 64 };

/** No axis of shares goes beyond one, however few of them there are. */
const upToOne = ({ min, max }: { min: number; max: number }) => (min >= 0 && max <= 1 ? 1 : null) as number;

/** The best score over time: it holds until the next improvement, and until now. */
export function progressOption(
  items: { at: string; quality: number; candidate: string }[],
  metric: string,
  now: number,
): Option {
  const last = items.at(-1);
  const points = [
    ...items.map((one) => [Date.parse(one.at), one.quality]),
    ...(last ? [[now, last.quality]] : []),
  ];
  return {
    grid: GRID,
    tooltip: told((i) => (items[i] ? `${items[i].candidate}\n${metric} ${figure(items[i].quality)}` : "")),
    xAxis: {
      type: "time",
      name: "when",
      nameLocation: "middle",
      nameGap: 28,
      splitNumber: 4,
      axisLabel: { hideOverlap: true },
    },
    yAxis: { type: "value", name: metric, scale: true, max: upToOne },
    series: [
      {
        type: "line",
        step: "end",
        symbolSize: 8,
        lineStyle: { width: 2.5 },
        areaStyle: { opacity: 0.08 },
        data: points,
      },
    ],
  };
}

/** Rows are the truth, columns the answer; the numbers are in the cells. */
export function confusionOption(report: Pick<Report, "classes" | "confusion">): Option {
  const { classes = [], confusion = [] } = report;
  const cells = confusion.flatMap((row, i) =>
    row.map((n, j) => [j, classes.length - 1 - i, n] as [number, number, number]),
  );
  const most = Math.max(1, ...cells.map((cell) => cell[2]));
  const turned = [...classes].reverse();
  return {
    grid: { left: 120, right: 24, top: 16, bottom: 64 },
    tooltip: told((i) => {
      const cell = cells[i];
      return cell ? `${turned[cell[1]]} answered as ${classes[cell[0]]}: ${cell[2]}` : "";
    }),
    xAxis: {
      type: "category",
      name: "answered",
      nameLocation: "middle",
      nameGap: 40,
      data: classes,
      axisLabel: { interval: 0, rotate: classes.length > 6 ? 45 : 0, width: 80, overflow: "truncate" },
    },
    yAxis: {
      type: "category",
      name: "truth",
      nameLocation: "middle",
      nameGap: 98,
      data: turned,
      axisLabel: { width: 84, overflow: "truncate" },
    },
    visualMap: { show: false, min: 0, max: most, inRange: { color: ["#eaf2f5", "#0b6363"] } },
    series: [
      {
        type: "heatmap",
        data: cells.map((value) => ({ value, label: { color: value[2] > most / 2 ? "#fff" : "#111" } })),
        label: { show: classes.length <= 15 },
      },
    ],
  };
}

/** The true class of a cell that was clicked, counted as the picture counts its cells. */
export function truthOf(report: Pick<Report, "classes">, index: number): string | undefined {
  const { classes = [] } = report;
  return classes[Math.floor(index / Math.max(1, classes.length))];
}

/** Beliefs as far as a score can go: never above the ceiling. */
export function withinCeiling(value: number, ceiling = 1): number {
  return Math.min(value, ceiling);
}

/** Answer against truth; a perfect model is on the diagonal. */
export function residualOption(pairs: number[][]): Option {
  const all = pairs.flat().filter(Number.isFinite);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return {
    grid: GRID,
    tooltip: told((i, which) =>
      which === 0 && pairs[i] ? `truth ${figure(pairs[i][0])}\nanswer ${figure(pairs[i][1])}` : "",
    ),
    xAxis: { type: "value", name: "truth", nameLocation: "middle", nameGap: 28, scale: true },
    yAxis: { type: "value", name: "answer", scale: true },
    series: [
      { type: "scatter", symbolSize: 6, itemStyle: { opacity: 0.6 }, data: pairs },
      {
        type: "line",
        showSymbol: false,
        silent: true,
        lineStyle: { type: "dashed", color: "#808080" },
        data: [
          [low, low],
          [high, high],
        ],
      },
    ],
  };
}

/** Score against seconds, with those that none beats in both joined by a line. */
export function candidatesOption(trials: Trial[], metric: string): Option {
  const done = trials.filter((trial) => trial.quality !== null && trial.seconds !== null);
  const sorted = [...done].sort((a, b) => a.seconds! - b.seconds!);
  const front = sorted.filter((trial, i) =>
    sorted.slice(0, i).every((other) => other.quality! < trial.quality!),
  );
  const dot = (trial: Trial) => [Math.max(trial.seconds!, 0.01), trial.quality!];
  return {
    grid: GRID,
    legend: { bottom: 0 },
    tooltip: told((i, which) => {
      const trial = (which === 0 ? front : done)[i];
      return trial
        ? `${trial.candidate}\n${metric} ${figure(trial.quality)}, ${duration(trial.seconds!)}`
        : "";
    }),
    xAxis: { type: "log", name: "seconds", nameLocation: "middle", nameGap: 26 },
    yAxis: { type: "value", name: metric, scale: true, max: upToOne },
    series: [
      { name: "Pareto front", type: "line", symbolSize: 4, data: front.map(dot) },
      { name: "tried", type: "scatter", symbolSize: 9, data: done.map(dot) },
    ],
  };
}

/** What is believed of each candidate: the mean, a whisker of one deviation each way, and what was measured. */
export function posteriorOption(items: Prospect[], next: string | undefined): Option {
  const shown = items.slice(0, 40).reverse();
  return {
    grid: { left: 230, right: 24, top: 16, bottom: 64 },
    legend: { bottom: 0, data: ["believed", "measured", "next"] },
    tooltip: told((i) => {
      const one = shown[i];
      return one
        ? `${one.candidate}\nbelieved ${figure(withinCeiling(one.mean))} (${figure(one.low)} to ${figure(withinCeiling(one.high))}), ${duration(one.cost_s)}${one.quality === null ? "" : `\nmeasured ${figure(one.quality)}`}`
        : "";
    }),
    xAxis: { type: "value", name: "score", nameLocation: "middle", nameGap: 26, scale: true, max: upToOne },
    yAxis: {
      type: "category",
      data: shown.map((one) => one.candidate),
      axisLabel: { width: 214, overflow: "truncate", fontSize: 11 },
    },
    series: [
      {
        type: "custom",
        name: "whiskers",
        silent: true,
        encode: { x: [1, 2], y: 0 }, // else the candidate's number would stretch the axis of scores
        renderItem: (_params, box) => {
          const low = box.coord([box.value(1), box.value(0)]);
          const high = box.coord([box.value(2), box.value(0)]);
          return {
            type: "line",
            shape: { x1: low[0]!, y1: low[1]!, x2: high[0]!, y2: high[1]! },
            style: { stroke: "#0072b2", lineWidth: 3, opacity: 0.45 },
          };
        },
        data: shown.map((one, i) => [i, withinCeiling(one.low), withinCeiling(one.high)]),
      },
      {
        name: "believed",
        type: "scatter",
        symbolSize: 7,
        color: "#0072b2",
        data: shown.map((one, i) => [withinCeiling(one.mean), i]),
      },
      {
        name: "measured",
        type: "scatter",
        symbol: "diamond",
        symbolSize: 10,
        color: "#d55e00",
        data: shown.map((one, i) => (one.quality === null ? ["-", i] : [one.quality, i])) as [
          number,
          number,
        ][],
      },
      {
        name: "next",
        type: "scatter",
        symbol: "triangle",
        symbolSize: 13,
        color: "#009e73",
        data: shown.map((one, i) => (one.candidate === next ? [withinCeiling(one.mean), i] : ["-", i])) as [
          number,
          number,
        ][],
      },
    ],
  };
}
