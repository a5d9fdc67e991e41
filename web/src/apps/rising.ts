import { told, type Option } from "../ui/Picture";

type Steps = { at: string; quality: number }[];
export type Rising = { app: string; steps: Steps };
const MOST_LINES = 30;

/** The apps by what their scores measure, which no two metrics share: no picture and no mean mixes them. */
export function byMetric(items: Rising[], metrics: Map<string, string>): [string, Rising[]][] {
  const found = new Map<string, Rising[]>();
  for (const item of items) {
    const metric = metrics.get(item.app) ?? "score";
    found.set(metric, [...(found.get(metric) ?? []), item]);
  }
  return [...found].sort(([a, more], [b, few]) => few.length - more.length || a.localeCompare(b));
}

/** The mean of the scores that people are told (`shown`, without the luck of the choice), measured where none is. */
export function meanNow(items: Rising[], shown: Map<string, number>): number {
  return (
    items.reduce((sum, item) => sum + (shown.get(item.app) ?? item.steps.at(-1)!.quality), 0) / items.length
  );
}

/** A line an app (the most recently improved ones), named in the legend; each holds until now. */
export function risingOption(items: Rising[], metric: string, now: number): Option {
  const recent = [...items]
    .sort((a, b) => Date.parse(b.steps.at(-1)!.at) - Date.parse(a.steps.at(-1)!.at))
    .slice(0, MOST_LINES);
  return {
    grid: { left: 64, right: 24, top: 16, bottom: 56 },
    legend: { type: "scroll", bottom: 0 },
    tooltip: told((_, which) => recent[which]?.app ?? ""),
    xAxis: { type: "time", splitNumber: 6, axisLabel: { hideOverlap: true } },
    yAxis: { type: "value", scale: true, name: metric, nameLocation: "middle", nameGap: 44 },
    series: recent.map((item) => ({
      name: item.app,
      type: "line" as const,
      step: "end" as const,
      symbolSize: 5,
      lineStyle: { width: 2 },
      data: [
        ...item.steps.map((step) => [Date.parse(step.at), step.quality]),
        [now, item.steps.at(-1)!.quality],
      ],
    })),
  };
}
