import { told, type Option } from "../ui/Picture";

type Steps = { at: string; quality: number }[];
const MOST_LINES = 30;

/** A thin line an app (the most recently improved ones), the mean in bold; each holds until now. */
export function happinessOption(
  found: { mean: Steps; items: { app: string; steps: Steps }[] },
  now: number,
): Option {
  const recent = [...found.items]
    .sort((a, b) => Date.parse(b.steps.at(-1)!.at) - Date.parse(a.steps.at(-1)!.at))
    .slice(0, MOST_LINES);
  const line = (steps: Steps) => [
    ...steps.map((step) => [Date.parse(step.at), step.quality]),
    [now, steps.at(-1)!.quality],
  ];
  const names = ["mean of all", ...recent.map((item) => item.app)];
  return {
    grid: { left: 56, right: 24, top: 16, bottom: 32 },
    tooltip: told((_, which) => names[which] ?? ""),
    xAxis: { type: "time", splitNumber: 6, axisLabel: { hideOverlap: true } },
    yAxis: { type: "value", scale: true },
    series: [
      {
        name: names[0],
        type: "line",
        step: "end",
        symbolSize: 5,
        z: 3,
        lineStyle: { width: 3 },
        data: line(found.mean),
      },
      ...recent.map((item) => ({
        name: item.app,
        type: "line" as const,
        step: "end" as const,
        symbolSize: 4,
        lineStyle: { width: 1, opacity: 0.6 },
        data: line(item.steps),
      })),
    ],
  };
}
