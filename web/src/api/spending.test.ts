import { describe, expect, it } from "vitest";
import { money, promised, standing } from "./spending";

describe("money", () => {
  it("keeps the digits of small sums", () => {
    expect([money(0), money(12.345, "USD"), money(0.012345), money(0.0000123)]).toEqual([
      "0.00",
      "12.35 USD",
      "0.012",
      "0.000012",
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
