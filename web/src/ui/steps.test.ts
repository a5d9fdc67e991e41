import { describe, expect, it } from "vitest";
import { firstSteps, type Standing } from "./steps";

const nothing: Standing = { jobs: 0, apps: 0, devices: 1, members: 1, budget: false };

describe("the first steps of a project", () => {
  it("are shown until there are a job and an app", () => {
    expect(firstSteps(nothing, false)).toHaveLength(2);
    expect(firstSteps({ ...nothing, jobs: 1 }, false)?.[1]?.steps[0]?.done).toBe(true);
    expect(firstSteps({ ...nothing, jobs: 1, apps: 1 }, true)).toBeNull();
  });
  it("are not shown before it is known what there is", () => {
    expect(firstSteps({ ...nothing, apps: undefined }, true)).toBeNull();
  });
  it("tell an admin what is left to set up", () => {
    const steps = firstSteps({ ...nothing, members: 2 }, true)?.[2]?.steps.map((step) => step.done);
    expect(steps).toEqual([true, true, false]);
  });
});
