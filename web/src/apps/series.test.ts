import { describe, expect, it } from "vitest";
import { pathOf } from "../ui/Spark";
import { columnsOf, formOf, objectOf, stepsOf, tableOf, textOf, thinned } from "./series";

const PLAIN = { kind: "plain" } as const;

describe("a series that is asked about", () => {
  it("is read from a column, a row, or a CSV file with titles", () => {
    for (const text of ["1\n2.5\n-3", "1, 2.5, -3", "1 2.5 -3", "1\t2.5\t-3\n"])
      expect(objectOf(tableOf(text), PLAIN, 0)).toEqual({ object: [1, 2.5, -3] });
    const table = tableOf("time;flux\n0;7\n1;8\n");
    expect(columnsOf(table).map((column) => column.name)).toEqual(["time", "flux"]);
    expect(objectOf(table, PLAIN, 1)).toEqual({ object: [7, 8] });
  });
  it("says what is missing", () => {
    expect(objectOf(tableOf(""), PLAIN, 0)).toEqual({ lacks: "numbers" });
    expect(objectOf(tableOf("flux\n1\nbroken\n3"), PLAIN, 0)).toEqual({ lacks: "a number in step 2" });
    const named = { kind: "named", names: ["x", "y"] } as const;
    expect(objectOf(tableOf("x,z\n1,2"), { ...named, names: [...named.names] }, 0)).toEqual({
      lacks: "a column y",
    });
    expect(objectOf(tableOf("1,2\n3,4"), { kind: "vector", width: 3 }, 0)).toEqual({
      lacks: "3 numbers in each line, not 2",
    });
  });
  it("has the form of the examples, and an example comes back as it was fed", () => {
    const float = { $array: btoa(String.fromCharCode(...new Uint8Array(new Float32Array([0.1, 2]).buffer))) };
    const inputs: unknown[] = [
      [1, 2, 3],
      [[1], [2]],
      [
        [1, 2],
        [3, 4],
      ],
      [
        { x: 1, y: null },
        { x: 2, y: 5 },
      ],
      { x: 1, next: { x: 2, next: null } },
      { ...float, kind: "<f4", shape: [2, 1] },
      { $array: btoa("\u0001\u0002\u0003\u0004"), kind: "<u1", shape: [2, 2] },
    ];
    const forms = inputs.map((input) => formOf(input));
    expect(forms.map((form) => form.kind)).toEqual([
      "plain",
      "plain",
      "vector",
      "named",
      "named",
      "plain",
      "vector",
    ]);
    const again = inputs.map((input, k) => objectOf(tableOf(textOf(input)), forms[k]!, 0));
    expect(again).toEqual([
      { object: [1, 2, 3] },
      { object: [1, 2] },
      {
        object: [
          [1, 2],
          [3, 4],
        ],
      },
      {
        object: [
          { x: 1, y: null },
          { x: 2, y: 5 },
        ],
      },
      { object: [{ x: 1 }, { x: 2 }] },
      { object: [0.1, 2] },
      {
        object: [
          [1, 2],
          [3, 4],
        ],
      },
    ]);
    expect(stepsOf("no series").steps).toEqual([]);
  });
  it("is thinned to what a small picture shows, with its extremes", () => {
    const values = Array.from({ length: 1000 }, (_, i) => (i === 700 ? 99 : Math.sin(i / 50)));
    expect(thinned(values)).toHaveLength(120);
    expect(thinned(values)).toContain(99);
    expect(thinned([1, null, 2])).toEqual([1, null, 2]);
  });
  it("is broken where values are missing, and flat where all are the same", () => {
    expect(pathOf([1, 2, null, 3], 1, 3)).toBe("M2 46L80.7 24M238 2h1");
    expect(pathOf([5, 5], 5, 5)).toBe("M2 24L238 24");
  });
});
