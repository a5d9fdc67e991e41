import { needsOf } from "./steps";
import { describe, expect, it } from "vitest";
import { farOption } from "./far";
import { kindOf, MOST_NAMED, nameOfEdge, titleOf } from "./labels";
import { layout } from "./layout";
import { visible } from "./visible";

describe("the names in the provenance graph", () => {
  const node = { id: "x:1", name: "x", version: 1, kind: "data", app: null, creator: "ana" };
  const job = `job_${"0".repeat(26)}`;
  const output = {
    ...node,
    id: `${job}-output:1`,
    name: `${job}-output`,
    kind: "output",
    made_by_name: "fold",
  };
  it("say what a set is and of which app", () => {
    expect(kindOf(node)).toBe("data, ana");
    expect(kindOf({ ...node, kind: "model", app: "stars" })).toBe("model of stars");
    expect(kindOf({ ...output, name: "folded" })).toBe("by fold");
    expect([titleOf(output), kindOf(output), titleOf(node)]).toEqual(["fold", "output", "x:1"]);
  });
  it("name the jobs of edges, cut short, unless there are too many", () => {
    const edge = { source: "x:1", target: "y:1", job, job_name: "a name that is rather long for an edge" };
    expect(nameOfEdge(edge, 3)).toBe("a name that is rather l…");
    expect(nameOfEdge({ ...edge, job: null, job_name: null }, 3)).toBeUndefined();
    expect(nameOfEdge(edge, MOST_NAMED + 1)).toBeUndefined();
  });
});

describe("the provenance graph", () => {
  const links = [
    { source: "raw", target: "clean" },
    { source: "clean", target: "model" },
    { source: "other", target: "model" },
  ];
  const ids = ["raw", "clean", "model", "other"];
  it("puts what was made later further to the right", () => {
    const places = layout(ids, links);
    expect(places.get("raw")!.x).toBeLessThan(places.get("clean")!.x);
    expect(places.get("clean")!.x).toBeLessThan(places.get("model")!.x);
  });
  it("hides what is only reached through a collapsed node", () => {
    expect([...visible(ids, links, new Set(["clean"]))].sort()).toEqual(["clean", "model", "other", "raw"]);
    expect([...visible(ids, links, new Set(["clean", "other"]))].sort()).toEqual(["clean", "other", "raw"]);
  });
  it("leaves out links to nodes that were not sent", () => {
    expect(layout(["raw"], links).size).toBe(1);
    expect(layout([], []).size).toBe(0);
  });
  it("draws a link once however many jobs made it, and survives a circle", () => {
    const twice = [...links, links[0]!, { source: "raw", target: "raw" }];
    expect(layout(ids, twice)).toEqual(layout(ids, links));
    expect(
      layout(
        ["a", "b"],
        [
          { source: "a", target: "b" },
          { source: "b", target: "a" },
        ],
      ).size,
    ).toBe(2);
  });
  it("keeps thousands apart, and each right of what it was made from", () => {
    const many = Array.from({ length: 2000 }, (_, i) => String(i));
    const made = many.slice(10).map((id) => ({ source: String(Math.floor(Number(id) / 10)), target: id }));
    const places = layout(many, made);
    expect(new Set([...places.values()].map(({ x, y }) => `${x} ${y}`)).size).toBe(2000);
    expect(made.every(({ source, target }) => places.get(source)!.x < places.get(target)!.x)).toBe(true);
    const [dots, lines] = farOption(many, [...made, { source: "0", target: "gone" }], places).series as {
      data: ArrayLike<unknown>;
    }[];
    expect([dots!.data.length, lines!.data.length / 5]).toEqual([2000, 1990]);
  });
  it("leads from what a step needs to the step", () => {
    const steps = [
      { name: "clean", needs: [] },
      { name: "train", needs: ["clean", "elsewhere"] },
    ];
    expect(needsOf(steps)).toEqual([{ source: "clean", target: "train" }]);
  });
});
