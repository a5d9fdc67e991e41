import { describe, expect, it } from "vitest";
import { exampleFilters } from "../api/apps";
import { candidatesOption, confusionOption, posteriorOption, truthOf } from "./pictures";
import { classPath, tableOf } from "./propose";
import { byMetric, meanNow, risingOption } from "./rising";
import { parsed } from "./TryIt";

type Series = { data: unknown[] }[];

describe("apps", () => {
  it("join the trials that none beats in score and time", () => {
    const trial = (seconds: number | null, quality: number | null) =>
      ({ seconds, quality, candidate: "c" }) as Parameters<typeof candidatesOption>[0][number];
    const option = candidatesOption(
      [trial(5, 0.6), trial(1, 0.5), trial(3, 0.4), trial(null, null)],
      "accuracy",
    );
    expect((option.series as Series)[0]!.data).toEqual([
      [1, 0.5],
      [5, 0.6],
    ]);
    expect((option.series as Series)[1]!.data).toHaveLength(3);
  });
  it("put the truth on the left of the confusion matrix, the first class on top", () => {
    const option = confusionOption({
      classes: ["a", "b"],
      confusion: [
        [9, 1],
        [2, 8],
      ],
    });
    const [light, dark] = ["#111", "#fff"].map((color) => ({ label: { color } }));
    expect((option.series as Series)[0]!.data).toEqual([
      { value: [0, 1, 9], ...dark },
      { value: [1, 1, 1], ...light },
      { value: [0, 0, 2], ...light },
      { value: [1, 0, 8], ...dark },
    ]);
  });
  it("let scores alone stretch the axis of what is believed", () => {
    const items = [0.5, 0.9].map(
      (mean, i) =>
        ({
          candidate: `c${i}`,
          mean,
          deviation: 0.1,
          low: mean - 0.1,
          high: Math.min(mean + 0.2, 1),
          quality: i ? 0.8 : null,
          cost_s: 1,
          state: "open",
        }) as Parameters<typeof posteriorOption>[0][number],
    );
    const [whiskers, , found] = posteriorOption(items, "c0").series as {
      encode: unknown;
      data: unknown[][];
    }[];
    expect(whiskers!.encode).toEqual({ x: [1, 2], y: 0 });
    expect(whiskers!.data.map(([i, low]) => [i, low])).toEqual([
      [0, 0.8],
      [1, 0.4],
    ]);
    expect(found!.data).toEqual([
      [0.8, 0],
      ["-", 1],
    ]);
  });
  it("filter examples by class, switch and text", () => {
    expect(exampleFilters({ of: "cat", on: "false", text: "x" })).toEqual([
      "class:eq:cat",
      "on:eq:false",
      "preview:contains:x",
    ]);
    expect(exampleFilters({ of: "", on: "", text: "" })).toEqual([]);
  });
  it("hold their best score until now", () => {
    const steps = [{ at: "2026-01-01T00:00:00Z", quality: 0.5 }];
    const option = risingOption([{ app: "a", steps }], "accuracy", 9e12);
    expect((option.series as Series)[0]!.data.at(-1)).toEqual([9e12, 0.5]);
    expect(option.legend).toMatchObject({ type: "scroll" });
  });
  it("are averaged and drawn together only where they are measured alike", () => {
    const item = (app: string, quality: number) => ({
      app,
      steps: [{ at: "2026-01-01T00:00:00Z", quality }],
    });
    const metrics = new Map([
      ["a", "R²"],
      ["b", "accuracy"],
      ["c", "accuracy"],
    ]);
    const found = byMetric([item("a", -3), item("b", 0.5), item("c", 0.75)], metrics);
    expect(found.map(([metric, items]) => [metric, items.map((each) => each.app)])).toEqual([
      ["accuracy", ["b", "c"]],
      ["R²", ["a"]],
    ]);
    expect(meanNow(found[0]![1], new Map())).toBe(0.625);
    expect(meanNow(found[0]![1], new Map([["b", 0.25]]))).toBe(0.5);
  });
  it("are inferred from a table's first rows, or from where pictures lie", () => {
    expect(tableOf("a,b\n1,2\n\n3,4\n")).toEqual({
      header: ["a", "b"],
      rows: [
        ["1", "2"],
        ["3", "4"],
      ],
      pictures: {},
    });
    expect([classPath("pets/cat/1.png"), classPath("cat/1.png")]).toEqual(["cat/1.png", "cat/1.png"]);
  });
  it("refuse what is not JSON in words", () => {
    expect(parsed("[1]")).toEqual([1]);
    expect(() => parsed("{")).toThrow("not JSON");
  });
  it("open the examples of the class whose cell was clicked", () => {
    expect([0, 1, 2, 3].map((i) => truthOf({ classes: ["a", "b"] }, i))).toEqual(["a", "a", "b", "b"]);
    expect(truthOf({ classes: [] }, 0)).toBeUndefined();
  });
  it("believe nothing above the ceiling", () => {
    const item = {
      candidate: "c",
      mean: 1.113,
      low: 0.9,
      high: 1.3,
      quality: null,
      cost_s: 1,
      state: "open",
    };
    const [whisker, mean] = posteriorOption(
      [item as Parameters<typeof posteriorOption>[0][number]],
      undefined,
    ).series as { data: number[][] }[];
    expect(whisker!.data[0]).toEqual([0, 0.9, 1]);
    expect(mean!.data[0]).toEqual([1, 0]);
  });
});
