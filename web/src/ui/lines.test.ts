import { describe, expect, it } from "vitest";
import { changedLines } from "./lines";

describe("two versions of a file", () => {
  it("are compared line by line, a change being one line less and one more", () => {
    const found = changedLines("a\nb\nc\n", "a\nB\nc\nd\n")!;
    expect([found.added, found.removed]).toEqual([2, 1]);
    expect(found.hunks).toEqual([{ at: "line 1 → 1", lines: [" a", "-b", "+B", " c", "+d"] }]);
  });
  it("are the same, empty, or without an end of line", () => {
    expect(changedLines("a\n", "a\n")).toEqual({ added: 0, removed: 0, hunks: [] });
    expect(changedLines("", "")).toEqual({ added: 0, removed: 0, hunks: [] });
    expect(changedLines("a", "a\nb")).toMatchObject({ added: 2, removed: 1 });
  });
});
