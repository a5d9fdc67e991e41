import { describe, expect, it } from "vitest";
import { exampleFilters } from "./api/apps";
import { argumentsOf, excluded } from "./api/profiles";
import { aimOf, dimensionsOf, type StudyPoint } from "./api/studies";
import { candidatesOption, confusionOption, posteriorOption } from "./apps/pictures";
import { classPath, tableOf } from "./apps/propose";
import { happinessOption } from "./apps/rising";
import { parsed } from "./apps/TryIt";
import { limitsOf } from "./provision/Sizes";
import { pastOf, simulationOption } from "./simulator/pictures";
import { EMPTY, studyOf } from "./study/form";
import { measured, recommended, regionOption } from "./study/pictures";

const point = (more: Partial<StudyPoint>) => ({ number: 0, point: {}, values: {}, feasible: null, told: null, spent: null, best: null, ...more }) as StudyPoint;
type Series = { data: unknown[] }[];

describe("studies", () => {
  it("become what the API wants, without empty rows", () => {
    const rate = { name: " rate ", type: "float" as const, low: "1e-4", high: "0.1", log: true, values: "" };
    const made = studyOf({ ...EMPTY, name: "s", command: "x {rate}", dimensions: [rate, { ...rate, name: "" }, { ...rate, name: "opt", type: "categorical", values: "sgd, adam," }], constraints: "a >= 1, b <= 2" });
    expect(made.space).toEqual({ dimensions: [{ name: "rate", type: "float", low: 1e-4, high: 0.1, log: true }, { name: "opt", type: "categorical", values: ["sgd", "adam"] }] });
    expect(made.goal).toEqual({ maximise: "accuracy", constraints: ["a >= 1", "b <= 2"], budget: { count: 20 } });
  });
  it("say what they are for", () => {
    expect(aimOf({ goal: { minimise: "cost", constraints: ["a >= 1"] } })).toEqual({ quantity: "cost", upwards: false, constraints: ["a >= 1"] });
    expect(dimensionsOf({ space: {} })).toEqual([]);
  });
  it("are drawn in the order in which results came, running points left out", () => {
    const found = [point({ number: 0, told: 1 }), point({ number: 1 }), point({ number: 2, told: 0 })];
    expect(measured(found).map((one) => one.number)).toEqual([2, 0]);
  });
  it("draw the recommendation where it was measured, else where it is predicted", () => {
    const best = { point: {}, predicted: { a: { median: 0.5, low: 0, high: 1 } }, probability: null, observed: null };
    const found = [point({ told: 0, spent: 1, best }), point({ told: 1, spent: 2, best: { ...best, observed: { a: 0.7 } } })];
    expect(recommended(found, "a").map(({ spent, value }) => [spent, value])).toEqual([[1, 0.5], [2, 0.7]]);
  });
  it("mark measured points in the nearest cell of the region", () => {
    const region = { x: "a", y: "b", fixed: {}, xs: [0, 1, 2], ys: ["u", "v"], probability: [[1, 0.5, 0], [0, null, 1]], objective: [[1, 2, 3], [4, 5, 6]] };
    const option = regionOption(region, [point({ told: 0, feasible: true, point: { a: 1.2, b: "v" } })]);
    expect((option.series as Series)[1]!.data).toEqual([[1, 1]]);
  });
});

describe("sizes", () => {
  it("are excluded by time or cost, with the reason", () => {
    expect(excluded({ sure_seconds: 10, sure_cost: 1 }, { seconds: 5, cost: null })).toBe("too slow");
    expect(excluded({ sure_seconds: 1, sure_cost: 9 }, { seconds: 5, cost: 8 })).toBe("too dear");
    expect(excluded({ sure_seconds: 1, sure_cost: 1 }, { seconds: null, cost: null })).toBeNull();
  });
  it("are held against the tighter of a duration and a deadline", () => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    expect(limitsOf({ minutes: "5", cost: "", deadline: "2026-01-01T00:02:00Z" }, now)).toEqual({ seconds: 120, cost: null });
    expect(limitsOf({ minutes: "", cost: "3", deadline: "" }, now)).toEqual({ seconds: null, cost: 3 });
  });
  it("are asked for by the command's own arguments", () => {
    expect(argumentsOf({ runs: [{ features: { epoch: 2, cpus: 1 } }, { features: { epoch: 1, memory_mb: 3 } }] })).toEqual([{ name: "epoch", seen: [1, 2] }]);
  });
});

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
    const option = simulationOption({ tenants: 2, candidates: 1, trials: 2, horizon: 1, runs: [{ policy: "easel", devices: 1, time: [0, 1], loss: [0.5, 0], mean_loss: 0.2 }] });
    expect((option.series as Series)[0]!.data).toEqual([[0, 0.5], [1, 1e-5]]);
  });
});

describe("apps", () => {
  it("join the trials that none beats in score and time", () => {
    const trial = (seconds: number | null, quality: number | null) => ({ seconds, quality, candidate: "c" }) as Parameters<typeof candidatesOption>[0][number];
    const option = candidatesOption([trial(5, 0.6), trial(1, 0.5), trial(3, 0.4), trial(null, null)], "accuracy");
    expect((option.series as Series)[0]!.data).toEqual([[1, 0.5], [5, 0.6]]);
    expect((option.series as Series)[1]!.data).toHaveLength(3);
  });
  it("put the truth on the left of the confusion matrix, the first class on top", () => {
    const option = confusionOption({ classes: ["a", "b"], confusion: [[9, 1], [2, 8]] });
    expect((option.series as Series)[0]!.data).toEqual([[0, 1, 9], [1, 1, 1], [0, 0, 2], [1, 0, 8]]);
  });
  it("let scores alone stretch the axis of what is believed", () => {
    const items = [0.5, 0.9].map((mean, i) => ({ candidate: `c${i}`, mean, deviation: 0.1, quality: i ? 0.8 : null, cost_s: 1, state: "open" }) as Parameters<typeof posteriorOption>[0][number]);
    const [whiskers, , found] = posteriorOption(items, "c0").series as { encode: unknown; data: unknown[][] }[];
    expect(whiskers!.encode).toEqual({ x: [1, 2], y: 0 });
    expect(whiskers!.data.map(([i, low]) => [i, low])).toEqual([[0, 0.8], [1, 0.4]]);
    expect(found!.data).toEqual([[0.8, 0], ["-", 1]]);
  });
  it("filter examples by class, switch and text", () => {
    expect(exampleFilters({ of: "cat", on: "false", text: "x" })).toEqual(["class:eq:cat", "on:eq:false", "preview:contains:x"]);
    expect(exampleFilters({ of: "", on: "", text: "" })).toEqual([]);
  });
  it("hold their best score until now", () => {
    const steps = [{ at: "2026-01-01T00:00:00Z", quality: 0.5 }];
    const option = happinessOption({ mean: steps, items: [{ app: "a", steps }] }, 9e12);
    expect((option.series as Series)[1]!.data.at(-1)).toEqual([9e12, 0.5]);
  });
  it("are inferred from a table's first rows, or from where pictures lie", () => {
    expect(tableOf("a,b\n1,2\n\n3,4\n")).toEqual({ header: ["a", "b"], rows: [["1", "2"], ["3", "4"]], pictures: {} });
    expect([classPath("pets/cat/1.png"), classPath("cat/1.png")]).toEqual(["cat/1.png", "cat/1.png"]);
  });
  it("refuse what is not JSON in words", () => {
    expect(parsed("[1]")).toEqual([1]);
    expect(() => parsed("{")).toThrow("not JSON");
  });
});
