import { describe, expect, it } from "vitest";
import { fieldsOf, typed } from "./fields";

describe("a question about a row", () => {
  it("has a field for each column, and only where it is one flat object", () => {
    expect(fieldsOf('{"size": 1.5, "town": "Bern", "note": null}')).toEqual({
      size: 1.5,
      town: "Bern",
      note: null,
    });
    for (const text of ["[1, 2]", "3", "{", "{}", '{"$array": "AA=="}', '{"x": [1]}'])
      expect(fieldsOf(text)).toBeNull();
  });
  it("keeps numbers as numbers, words as words and nothing as missing", () => {
    expect([
      typed("2,5", 1),
      typed(" ", 1),
      typed("3", "Bern"),
      typed("tall", 1),
      typed("7", null),
      typed("3,5", "0.386"),
    ]).toEqual([2.5, null, "3", "tall", 7, 3.5]);
  });
});
