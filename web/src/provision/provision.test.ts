import { describe, expect, it } from "vitest";
import { argumentsOf, excluded } from "../api/profiles";
import { frontOption } from "./pictures";
import { limitsOf } from "./Sizes";

describe("sizes", () => {
  it("are excluded by time or cost, with the reason", () => {
    expect(excluded({ sure_seconds: 10, sure_cost: 1 }, { seconds: 5, cost: null })).toBe("too slow");
    expect(excluded({ sure_seconds: 1, sure_cost: 9 }, { seconds: 5, cost: 8 })).toBe("too dear");
    expect(excluded({ sure_seconds: 1, sure_cost: 1 }, { seconds: null, cost: null })).toBeNull();
  });
  it("are held against the tighter of a duration and a deadline", () => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    expect(limitsOf({ minutes: "5", cost: "", deadline: "2026-01-01T00:02:00Z" }, now)).toEqual({
      seconds: 120,
      cost: null,
    });
    expect(limitsOf({ minutes: "", cost: "3", deadline: "" }, now)).toEqual({ seconds: null, cost: 3 });
  });
  it("are asked for by the command's own arguments", () => {
    expect(
      argumentsOf({ runs: [{ features: { epoch: 2, cpus: 1 } }, { features: { epoch: 1, memory_mb: 3 } }] }),
    ).toEqual([{ name: "epoch", seen: [1, 2] }]);
  });
  it("have a legend below the title of their axis, however narrow the chart", () => {
    const { grid, legend, xAxis } = frontOption([], [], { seconds: null, cost: null }, "USD");
    expect(legend).toMatchObject({ type: "scroll", bottom: 0 }); // one line: it never grows upwards
    const LINE = 20;
    expect(Number((grid as { bottom: number }).bottom)).toBeGreaterThanOrEqual(
      Number((xAxis as { nameGap: number }).nameGap) + 2 * LINE,
    );
  });
});
