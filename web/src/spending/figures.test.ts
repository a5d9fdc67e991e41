import { describe, expect, it } from "vitest";
import { budgetForm, overTimeOption, overTimeWords, spansOf, sumsOf, thisMonth } from "./figures";

describe("the figures of the page of spending", () => {
  it("begin the form with what holds, so that a change of one thing leaves the rest", () => {
    expect(budgetForm({ limit: 0.5, period: "total", hard_stop: true, warn_at: [0.9] })).toEqual({
      limit: "0.5",
      period: "total",
      stop: true,
      warnAt: [0.9],
    });
    expect(budgetForm({ limit: 0.5, period: "month", hard_stop: false, warn_at: [] })).toMatchObject({
      stop: false,
      warnAt: [],
    });
    expect(budgetForm({ limit: null, period: null, hard_stop: false, warn_at: [] })).toMatchObject({
      stop: true,
      warnAt: [0.5, 0.8, 1],
    });
  });
  it("add up to what the card says is billed", () => {
    const rows = [
      { hours: 1, amount: 0.25, currency: "USD" },
      { hours: 2, amount: 0.5, currency: "USD" },
    ];
    expect(sumsOf(rows)).toEqual([{ currency: "USD", hours: 3, amount: 0.75 }]);
    expect(thisMonth(new Date("2026-11-30T23:59:59Z"))).toBe("2026-11");
  });
});

describe("spending over time", () => {
  const bill = (group: string, amount: number) => ({ group, jobs: 1, hours: 1, amount, currency: "USD" });
  const data = (option: ReturnType<typeof overTimeOption>, i: number) =>
    (option.series as { data: (number | null)[] }[])[i]!.data;
  it("has every day of a month, and every month between the first and the last", () => {
    expect(spansOf([], "2028-02")).toHaveLength(29);
    expect(spansOf([bill("2026-11", 1), bill("2027-02", 1)], "")).toEqual([
      "2026-11",
      "2026-12",
      "2027-01",
      "2027-02",
    ]);
    expect(spansOf([], "")).toEqual([]);
  });
  it("adds up until today and draws the limit where one applies", () => {
    const items = [bill("2026-11-02", 2), bill("2026-11-04", 3)];
    const option = overTimeOption(items, "2026-11", 10, "2026-11-05");
    expect(data(option, 0).slice(0, 5)).toEqual([0, 2, 0, 3, 0]);
    expect(data(option, 1).slice(0, 6)).toEqual([0, 2, 2, 5, 5, null]);
    expect(data(option, 2)).toHaveLength(30);
    for (const limit of [null, 1000])
      expect(overTimeOption(items, "2026-11", limit, "2026-11-05").series).toHaveLength(2);
    const words = "5.00 USD on 2 days; most in 2026-11-04: 3.00 USD.";
    const before = { ...bill("2026-11-04", 90), currency: "CHF" };
    for (const billed of [items, [...items, before]]) expect(overTimeWords(billed, "2026-11")).toBe(words);
  });
});
