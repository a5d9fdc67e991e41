import { describe, expect, it } from "vitest";
import { aimOf, dimensionsOf, unitOf, type StudyPoint } from "../api/studies";
import { moreBudget } from "../pages/Study";
import { EMPTY, studyOf } from "./form";
import { coloured } from "../ui/Picture";
import {
  parallelOption,
  FEASIBILITY,
  frontOption,
  measured,
  paretoOf,
  recommended,
  regionOption,
  risesIn,
  sortedPoints,
} from "./pictures";

const point = (more: Partial<StudyPoint>) =>
  ({
    number: 0,
    point: {},
    values: {},
    feasible: null,
    told: null,
    spent: null,
    best: null,
    ...more,
  }) as StudyPoint;
type Series = { data: unknown[] }[];

describe("studies", () => {
  it("become what the API wants, without empty rows", () => {
    const rate = { name: " rate ", type: "float" as const, low: "1e-4", high: "0.1", log: true, values: "" };
    const made = studyOf({
      ...EMPTY,
      name: "s",
      command: "x {rate}",
      dimensions: [
        rate,
        { ...rate, name: "" },
        { ...rate, name: "opt", type: "categorical", values: "sgd, adam," },
      ],
      constraints: "a >= 1, b <= 2",
    });
    expect(made.space).toEqual({
      dimensions: [
        { name: "rate", type: "float", low: 1e-4, high: 0.1, log: true },
        { name: "opt", type: "categorical", values: ["sgd", "adam"] },
      ],
    });
    expect(made.goal).toEqual({
      maximise: "accuracy",
      constraints: ["a >= 1", "b <= 2"],
      budget: { count: 20 },
    });
  });
  it("say what they are for", () => {
    expect(aimOf({ goal: { minimise: "cost", constraints: ["a >= 1"] } })).toEqual({
      quantity: "cost",
      upwards: false,
      constraints: ["a >= 1"],
      constrained: ["a"],
    });
    expect(dimensionsOf({ space: {} })).toEqual([]);
  });
  it("have colours with ends for points that ended without a value", () => {
    const dimensions = [{ name: "a", low: 0, high: 1, log: false, values: null }] as unknown as Parameters<
      typeof parallelOption
    >[1];
    const ended = [point({ number: 0, told: 0, state: "killed", values: {} })];
    const made = parallelOption(ended, dimensions, "x") as { visualMap: { min: number; max: number } };
    expect([made.visualMap.min, made.visualMap.max]).toEqual([0, 1]);
    expect(coloured([0.5]).max).toBeGreaterThan(coloured([0.5]).min);
  });
  it("join the completed points that no other beats in two quantities", () => {
    const one = (number: number, a: number, cost: number, more: Partial<StudyPoint> = {}) =>
      point({ number, told: number, state: "completed", feasible: true, values: { a, cost }, ...more });
    const found = [
      one(0, 0.9, 8),
      one(1, 0.8, 2),
      one(2, 0.8, 3), // the one before is as good for less
      one(3, 0.7, 9),
      one(4, 0.99, 1, { feasible: false }),
      one(5, 0.99, 1, { state: "failed" }),
      one(6, 0.95, 1, { values: { a: 0.95 } }), // its cost is not known
    ];
    expect(paretoOf(found, ["a", true], ["cost", false])).toEqual([0, 1]);
    expect(paretoOf(found, ["a", true], ["cost", true])).toEqual([0, 3]);
  });
  it("know from the goal what is better", () => {
    const goal = { maximise: "a", also: { speed: "maximise" }, constraints: ["recall >= 0.9", "cost <= 2"] };
    expect(["speed", "recall", "cost", "memory"].map((name) => risesIn(goal, name))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
  it("are drawn in the order in which results came, running points left out", () => {
    const found = [point({ number: 0, told: 1 }), point({ number: 1 }), point({ number: 2, told: 0 })];
    expect(measured(found).map((one) => one.number)).toEqual([2, 0]);
  });
  it("draw the recommendation where it was measured, else where it is predicted", () => {
    const best = {
      point: {},
      predicted: { a: { median: 0.5, low: 0, high: 1 } },
      probability: null,
      observed: null,
    };
    const found = [
      point({ told: 0, spent: 1, best }),
      point({ told: 1, spent: 2, best: { ...best, observed: { a: 0.7 } } }),
    ];
    expect(recommended(found, "a").map(({ spent, value }) => [spent, value])).toEqual([
      [1, 0.5],
      [2, 0.7],
    ]);
  });
  it("mark measured points in the nearest cell of the region", () => {
    const region = {
      x: "a",
      y: "b",
      fixed: {},
      xs: [0, 1, 2],
      ys: ["u", "v"],
      probability: [
        [1, 0.5, 0],
        [0, null, 1],
      ],
      objective: [
        [1, 2, 3],
        [4, 5, 6],
      ],
    };
    const option = regionOption(region, [point({ told: 0, feasible: true, point: { a: 1.2, b: "v" } })]);
    expect((option.series as Series)[1]!.data).toEqual([[1, 1]]);
  });
  it("propose a larger budget where all of it is spent", () => {
    expect(moreBudget({ amount: 20, spent: 20 })).toBe(40);
    expect(moreBudget({ amount: 20, spent: 5 })).toBe(20);
  });
  it("sort their points by what somebody chose, gaps last", () => {
    const found = [
      point({ number: 0, point: { lr: 0.1 }, values: { a: 2 } }),
      point({ number: 1, point: { lr: 0.01 } }),
      point({ number: 2, point: { lr: 1 }, values: { a: 1 } }),
    ];
    const numbers = (by: string, down: boolean) => sortedPoints(found, { by, down }).map((one) => one.number);
    expect([numbers("lr", false), numbers("a", true), numbers("#", true)]).toEqual([
      [1, 0, 2],
      [0, 2, 1],
      [2, 1, 0],
    ]);
  });
  it("join the Pareto front, and tell met from not met without red and green", () => {
    const found = [
      point({ number: 0, told: 0, feasible: true, values: { a: 1, cost: 2 } }),
      point({ number: 1, told: 1, feasible: false, values: { a: 2, cost: 1 } }),
    ];
    const [front, met, not] = frontOption(found, [1], "a", "cost").series as { data: unknown[] }[];
    expect([front!.data, met!.data, not!.data]).toEqual([[[1, 2]], [[2, 1]], [[1, 2]]]);
    expect(FEASIBILITY).toEqual(["#d55e00", "#f7f1e3", "#0072b2"]);
  });
});

describe("a budget", () => {
  it("of money is counted in its currency", () => {
    expect(["cost", "time", "count"].map((kind) => unitOf(kind, "CHF"))).toEqual([
      "CHF",
      "seconds",
      "points",
    ]);
  });
});
