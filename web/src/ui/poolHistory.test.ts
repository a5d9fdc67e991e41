import { describe, expect, it } from "vitest";
import { groupsOf, poolHistoryOption, poolHistoryWords, type PoolHistory } from "./poolHistory";

const history = (held: PoolHistory["held"], more: Partial<PoolHistory> = {}): PoolHistory => ({
  since: "2026-11-18T00:00:00Z",
  step_s: 60,
  vcpu: 8,
  gpus: 0,
  held,
  complete: true,
  ...more,
});
const one = (project: string, ...vcpu: number[]) => ({ project, vcpu, gpus: vcpu.map(() => 0) });

describe("the pool's use over time", () => {
  it("says how much was held and by whom most", () => {
    const found = history([one("astro", 1, 3), one("others", 1, 1)]);
    expect(poolHistoryWords(found, "vcpu")).toBe("On average 3 of 8 vCPU were held (38 %), most by astro.");
    expect(poolHistoryWords(history([], { complete: false }), "vcpu")).toContain(
      "The oldest attempts are left out",
    );
  });
  it("sums what comes after the seventh project", () => {
    const many = Array.from({ length: 9 }, (_, i) => one(`p${i}`, i, 1));
    const groups = groupsOf(history(many), "vcpu");
    expect(groups).toHaveLength(8);
    expect(groups[7]).toEqual({ name: "2 more", values: [15, 2] });
  });
  it("draws areas on top of each other below what the pool has", () => {
    const option = poolHistoryOption(history([one("astro", 1, 3)]), "vcpu");
    const series = option.series as { name: string; stack?: string; data: number[][] }[];
    expect(series.map((each) => [each.name, each.stack])).toEqual([
      ["astro", "held"],
      ["the pool", undefined],
    ]);
    expect(series[1]!.data.map(([, value]) => value)).toEqual([8, 8]);
  });
});
