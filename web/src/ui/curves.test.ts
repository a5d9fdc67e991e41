import { describe, expect, it } from "vitest";
import { curveOption, PLAIN_VIEW, placesOf, smoothed, tableOf, type Line } from "./curves";

type Series = { name: string; data: number[][]; silent?: boolean }[];
const line: Line = {
  label: "loss",
  points: [
    { step: 1, value: 4, at: "2026-01-01T00:00:00Z" },
    { step: 2, value: null, at: "2026-01-01T00:00:05Z" },
    { step: 9, value: -1, at: "2026-01-01T00:00:10Z" },
  ],
};

describe("curves", () => {
  it("are smoothed without a pull to zero, gaps left out", () => {
    expect(smoothed([4, null, 4], 0.9)).toEqual([expect.closeTo(4), null, expect.closeTo(4)]);
    expect(smoothed([0, 10], 0.5)[1]).toBeCloseTo(6.667, 2);
  });
  it("are drawn along steps or time", () => {
    expect(placesOf(line, "step")).toEqual([1, 2, 9]);
    expect(placesOf(line, "time")).toEqual([0, 5, 10]);
  });
  it("leave out what a logarithm does not have, and name their axes", () => {
    const about = { over: "steps", unit: "MB", view: { ...PLAIN_VIEW, log: true } };
    const option = curveOption([line], about);
    expect((option.series as Series)[0]!.data).toEqual([[1, 4]]);
    expect((option.xAxis as { name: string }).name).toBe("steps");
    expect((option.yAxis as { name: string; type: string }).name).toBe("MB");
    expect((option.yAxis as { type: string }).type).toBe("log");
  });
  it("keep the unsmoothed line behind the smoothed one", () => {
    const option = curveOption([line], { over: "steps", unit: "", view: { ...PLAIN_VIEW, smooth: 0.5 } });
    const [front, behind] = option.series as Series;
    expect(behind!.silent).toBe(true);
    expect(behind!.data).toEqual([
      [1, 4],
      [9, -1],
    ]);
    expect(front!.data[1]![1]).toBeCloseTo((0.5 * 2 - 0.5) / 0.75, 6);
  });
  it("are exported as rows", () => {
    expect(tableOf([line])[1]).toEqual(["loss", 1, "2026-01-01T00:00:00Z", 4]);
  });
});
