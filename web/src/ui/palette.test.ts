import { describe, expect, it } from "vitest";
import { opensPalette, ranked, rankOf, type Goal } from "./palette";

const goal = (title: string): Goal => ({ title, kind: "Page", to: `/${title}` });

describe("what the palette finds", () => {
  it("shows everything while nothing is typed, and no more than fits", () => {
    expect(ranked([goal("Jobs"), goal("Apps")], "").map((one) => one.title)).toEqual(["Jobs", "Apps"]);
    expect(
      ranked(
        Array.from({ length: 50 }, (_, n) => goal(`job ${n}`)),
        "",
      ),
    ).toHaveLength(12);
  });
  it("puts what begins so before what has a word that does, and both before the rest", () => {
    const found = ranked([goal("unflowery"), goal("red flowers"), goal("Flowers")], "flow");
    expect(found.map((one) => one.title)).toEqual(["Flowers", "red flowers", "unflowery"]);
  });
  it("wants every word, in any order and case", () => {
    expect(rankOf("night-run of the telescope", "TELESCOPE night")).toBe(1);
    expect(rankOf("night-run", "night day")).toBeNull();
  });
  it("opens on Ctrl-K and Cmd-K alone", () => {
    const key = { key: "K", ctrlKey: false, metaKey: false, altKey: false };
    expect(opensPalette(key)).toBe(false);
    expect(opensPalette({ ...key, ctrlKey: true })).toBe(true);
    expect(opensPalette({ ...key, metaKey: true })).toBe(true);
    expect(opensPalette({ ...key, ctrlKey: true, altKey: true })).toBe(false);
  });
});
