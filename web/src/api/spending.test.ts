import { describe, expect, it } from "vitest";
import { money, sumOnAxis, promised, standing } from "./spending";

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
  it("tells neighbouring sums on an axis apart, without powers of ten", () => {
    expect([0, 5e-7, 1e-6, 1.5e-6, 0.012, 2.5, 1200].map(sumOnAxis)).toEqual([
      "0",
      "0.0000005",
      "0.000001",
      "0.0000015",
      "0.012",
      "2.5",
      "1200",
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
});
