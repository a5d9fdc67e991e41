import { budgetForm, sumsOf, thisMonth } from "../pages/Spending";
import { describe, expect, it } from "vitest";
import { money, promised, standing } from "./spending";

describe("money", () => {
  it("keeps the digits of small sums", () => {
    const sums = [0, 12.345, 0.012345, 0.0020051, 0.0000123, 0.0000016, 1e-9];
    expect(sums.map((sum) => money(sum, "USD"))).toEqual([
      "0.00 USD",
      "12.35 USD",
      "0.012 USD",
      "0.0020 USD",
      "0.000012 USD",
      "0.000002 USD",
      "under 0.000001 USD",
    ]);
  });
  it("counts what is promised as used", () => {
    const budget = { limit: 10, spent: 5, committed: 9, warn_at: [0.8] };
    expect([promised(budget), promised({ spent: 5, committed: 5 })]).toEqual([4, 0]);
    expect(standing(budget)).toBe("warned");
    expect(standing({ ...budget, committed: 10 })).toBe("over");
    expect(standing({ ...budget, committed: 5 })).toBe("well");
    expect(standing({ ...budget, limit: null })).toBe("none");
  });
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
