import { describe, expect, it } from "vitest";
import { ago, bytes, duration, figure, memory, percent, plural } from "./format";
import { withFigures } from "./Picture";

describe("numbers and times", () => {
  it("come with their units", () => {
    expect([duration(0.2), duration(5), duration(75), duration(3700), duration(200_000)]).toEqual([
      "200 ms",
      "5.0 s",
      "1 min 15 s",
      "1 h 1 min",
      "2 d 7 h",
    ]);
    expect([bytes(999), bytes(1500), bytes(999_999), bytes(2e13)]).toEqual([
      "999 B",
      "1.5 kB",
      "1.0 MB",
      "20 TB",
    ]);
    expect([memory(512), memory(2048), memory(1536)]).toEqual(["512 MB", "2 GB", "1.5 GB"]);
    expect([figure(0.123456), figure(0), figure(null), figure(NaN), figure(1e-9)]).toEqual([
      "0.1235",
      "0",
      "–",
      "–",
      "1e-9",
    ]);
  });
  it("tell shares in per cent without calling little none or much all", () => {
    expect([0.5, 0.9999, 0.00005, 0.99999, 0, 1, 0.123].map(percent)).toEqual([
      "50 %",
      "99.99 %",
      "under 0.01 %",
      "over 99.99 %",
      "0 %",
      "100 %",
      "12.3 %",
    ]);
  });
  it("tell how long ago", () => {
    expect(ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:03:00Z"))).toBe("3 min. ago");
  });
  it("never show a negative or endless duration", () => {
    expect([duration(-1), duration(Infinity), duration(NaN)]).toEqual(["–", "–", "–"]);
  });
  it("count one of a thing as one", () => {
    expect([plural(1, "line"), plural(0, "line"), plural(2000, "point")]).toEqual([
      "1 line",
      "0 lines",
      "2,000 points",
    ]);
  });
  it("are nowhere followed by a plural that one thing would get, too", () => {
    const sources = import.meta.glob("../**/*.tsx", { query: "?raw", import: "default", eager: true });
    const fixed = /(\{count\([^{}]*\)\}|\$\{count\([^{}]*\)\}|\.length\}) (?!of\b|is\b)[a-z]+s\b/;
    const found = Object.entries(sources).flatMap(([path, text]) => {
      const hit = fixed.exec(text as string);
      return hit ? [`${path}: ${hit[0]}`] : [];
    });
    expect(found).toEqual([]);
  });
  it("label the axes of pictures with at most four digits", () => {
    const axis = withFigures({ xAxis: { type: "log" }, yAxis: { type: "category" } });
    const label = (axis.xAxis as { axisLabel: { formatter: (value: number) => string } }).axisLabel;
    expect(label.formatter(0.00010000000000000009)).toBe("1e-4");
    expect(axis.yAxis).toEqual({ type: "category" });
  });
});
