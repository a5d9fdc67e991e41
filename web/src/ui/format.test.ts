import { describe, expect, it } from "vitest";
import { ago, bytes, duration, figure, memory } from "./format";

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
    expect([memory(512), memory(2048), memory(1536)]).toEqual(["512 MiB", "2 GiB", "1.5 GiB"]);
    expect([figure(0.123456), figure(0), figure(null), figure(NaN), figure(1e-9)]).toEqual([
      "0.1235",
      "0",
      "–",
      "–",
      "1.00e-9",
    ]);
  });
  it("tell how long ago", () => {
    expect(ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:03:00Z"))).toBe("3 min. ago");
  });
  it("never show a negative or endless duration", () => {
    expect([duration(-1), duration(Infinity), duration(NaN)]).toEqual(["–", "–", "–"]);
  });
});
