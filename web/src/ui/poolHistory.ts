import type { Schemas } from "../api/client";
import { figure } from "./format";
import type { Option } from "./Picture";

export type PoolHistory = Schemas["PoolHistory"];

const MOST = 7;

/** At most so many projects apart; what is left is summed. */
export function groupsOf(
  found: PoolHistory,
  quantity: "vcpu" | "gpus",
): { name: string; values: number[] }[] {
  const all = found.held.map((one) => ({ name: one.project, values: one[quantity] }));
  const rest = all.slice(MOST);
  if (rest.length === 0) return all;
  const sums = rest[0]!.values.map((_, i) => rest.reduce((sum, one) => sum + one.values[i]!, 0));
  return [...all.slice(0, MOST), { name: `${rest.length} more`, values: sums }];
}

/** Areas on top of each other, one a project, under a line for what the pool has. */
export function poolHistoryOption(found: PoolHistory, quantity: "vcpu" | "gpus"): Option {
  const start = Date.parse(found.since);
  const at = (i: number) => start + (i + 0.5) * found.step_s * 1000;
  const end = start + 60 * found.step_s * 1000;
  const capacity = found[quantity];
  return {
    grid: { left: 56, right: 24, top: 32, bottom: 64 },
    legend: { type: "scroll", bottom: 0 },
    tooltip: {
      trigger: "axis",
      renderMode: "richText",
      confine: true,
      valueFormatter: (value) => figure(typeof value === "number" ? value : null),
    },
    xAxis: { type: "time", min: start, max: end, splitNumber: 6, axisLabel: { hideOverlap: true } },
    yAxis: { type: "value", name: quantity === "vcpu" ? "vCPU held" : "GPUs held", min: 0 },
    series: [
      ...groupsOf(found, quantity).map((one) => ({
        name: one.name,
        type: "line" as const,
        stack: "held",
        step: "middle" as const,
        showSymbol: false,
        lineStyle: { width: 1 },
        areaStyle: { opacity: 0.45 },
        color: one.name === "others" ? "#8a8f94" : undefined,
        data: one.values.map((value, i) => [at(i), value]),
      })),
      {
        name: "the pool",
        type: "line",
        showSymbol: false,
        color: "#8a6d3b",
        lineStyle: { type: "dashed", width: 1.5 },
        data: [
          [start, capacity],
          [end, capacity],
        ],
      },
    ],
  } as Option;
}

function inWhole(share: number): string {
  return share > 0 && share < 0.005 ? "under 1 %" : `${Math.round(100 * share)} %`;
}

/** One sentence: how much of the pool was held on average, and by whom most. */
export function poolHistoryWords(found: PoolHistory, quantity: "vcpu" | "gpus"): string {
  const mean = (values: number[]) => values.reduce((sum, one) => sum + one, 0) / Math.max(1, values.length);
  const means = found.held.map((one) => ({ name: one.project, mean: mean(one[quantity]) }));
  const used = means.reduce((sum, one) => sum + one.mean, 0);
  const unit = quantity === "vcpu" ? "vCPU" : "GPUs";
  const share = found[quantity] > 0 ? ` (${inWhole(used / found[quantity])})` : "";
  const most = [...means].sort((a, b) => b.mean - a.mean)[0];
  const who = most && used > 0 ? `, most by ${most.name}` : "";
  const cut = found.complete ? "" : " The oldest attempts are left out: there were too many.";
  return `On average ${figure(Number(used.toPrecision(2)))} of ${figure(found[quantity])} ${unit} were held${share}${who}.${cut}`;
}
