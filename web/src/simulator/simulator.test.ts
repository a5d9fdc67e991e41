import { describe, expect, it } from "vitest";
import { pastOf, simulationOption } from "./pictures";

type Series = { data: unknown[] }[];

describe("the simulator", () => {
  it("reads a history and says which line is wrong", () => {
    expect(pastOf("tenant,candidate,quality,cost\na,m,0.5,2\na,n,,3\n")).toEqual([
      { tenant: "a", candidate: "m", quality: 0.5, cost: 2 },
      { tenant: "a", candidate: "n", quality: null, cost: 3 },
    ]);
    expect(() => pastOf("tenant,cost\na,1")).toThrow("candidate, quality");
    expect(() => pastOf("tenant,candidate,quality,cost\na,m,0.5,0")).toThrow("Line 2");
  });
  it("draws a loss of zero, which has no logarithm, at the bottom", () => {
    const option = simulationOption({
      tenants: 2,
      candidates: 1,
      trials: 2,
      horizon: 1,
      runs: [{ policy: "easel", devices: 1, time: [0, 1], loss: [0.5, 0], mean_loss: 0.2 }],
    });
    expect((option.series as Series)[0]!.data).toEqual([
      [0, 0.5],
      [1, 1e-5],
    ]);
  });
});
