import { describe, expect, it } from "vitest";
import type { Event, Job } from "./api/client";
import { filtersOf, patched, stateAfter } from "./api/jobs";
import { lookOf, queryOf, targetOf, trail, readable } from "./api/lake";
import { isPassing, Problem, problemFrom, problemOf } from "./api/problem";
import { money, promised, standing } from "./api/spending";
import { staleKeys } from "./live/Live";
import { pause } from "./live/stream";
import { fieldsOf, typed } from "./apps/fields";
import { differences } from "./pages/Compare";
import { stepsOf } from "./pages/Job";
import { farOption } from "./graph/far";
import { layout } from "./graph/layout";
import { visible } from "./graph/visible";
import { changedLines } from "./ui/lines";
import { partsOf, valueOf } from "./ui/Tags";
import { ago, bytes, duration, figure, memory } from "./ui/format";

const event = (kind: string, subject: string, at = "2026-01-01T00:00:00Z") =>
  ({ seq: 1, at, kind, subject, project_id: "p", actor: null, body: {} }) as Event;
const job = (id: string, more: Partial<Job> = {}) => ({ id, state: "queued", spec: {}, ...more }) as Job;

describe("numbers and times", () => {
  it("come with their units", () => {
    expect([duration(0.2), duration(5), duration(75), duration(3700), duration(200_000)]).toEqual([
      "200 ms", "5.0 s", "1 min 15 s", "1 h 1 min", "2 d 7 h",
    ]);
    expect([bytes(999), bytes(1500), bytes(999_999), bytes(2e13)]).toEqual(["999 B", "1.5 kB", "1.0 MB", "20 TB"]);
    expect([memory(512), memory(2048), memory(1536)]).toEqual(["512 MiB", "2 GiB", "1.5 GiB"]);
    expect([figure(0.123456), figure(0), figure(null), figure(NaN), figure(1e-9)]).toEqual([
      "0.1235", "0", "–", "–", "1.00e-9",
    ]);
  });
  it("tell how long ago", () => {
    expect(ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:03:00Z"))).toBe("3 min. ago");
  });
  it("never show a negative or endless duration", () => {
    expect([duration(-1), duration(Infinity), duration(NaN)]).toEqual(["–", "–", "–"]);
  });
});

describe("problems", () => {
  it("carry the server's words and the request's id", () => {
    const problem = problemOf(409, { detail: "taken", kind: "conflict", request_id: "r1" }, new Headers());
    expect([problem.message, problem.kind, problem.requestId]).toEqual(["taken", "conflict", "r1"]);
  });
  it("are explained also when a proxy answers with a page", () => {
    expect(problemOf(503, "<html>", new Headers({ "retry-after": "7" }))).toMatchObject({ status: 503, retryAfter: 7 });
    expect(problemOf(503, "<html>", new Headers()).message).toContain("tries again");
  });
  it("are worth repeating only when nothing was decided", () => {
    expect(isPassing(new TypeError("fetch failed"))).toBe(true);
    expect(isPassing(new Problem(503, "try-later", ""))).toBe(true);
    expect(isPassing(new Problem(404, "not-found", ""))).toBe(false);
    expect(problemFrom(new TypeError("x")).status).toBe(0);
  });
});

describe("live pages", () => {
  it("refresh what an event touches", () => {
    expect(staleKeys("job.finished")).toEqual(["events", "job", "queues"]);
    expect(staleKeys("novelty.happened")).toEqual(["events", "novelty"]);
  });
  it("wait longer after each failed attempt, but not for ever", () => {
    expect(pause(0, () => 1)).toBeLessThan(pause(3, () => 1));
    expect(pause(50, () => 1)).toBe(30);
    expect(pause(50, () => 0)).toBe(15);
  });
  it("write new states into long lists and leave untouched pages as they are", () => {
    const pages = [{ items: [job("a"), job("b")] }, { items: [job("c")] }];
    const after = patched(pages, [event("job.running", "b"), event("job.finished", "b"), event("job.late_report", "a")]);
    expect(after[0]!.items.map((j) => j.state)).toEqual(["queued", "finished"]);
    expect(after[1]).toBe(pages[1]);
    expect(stateAfter("job.late_report")).toBeNull();
  });
});

describe("jobs", () => {
  it("are filtered by what the form holds", () => {
    expect(filtersOf({ name: "a:b", state: "", user: "u", sort: "" })).toEqual(["name:contains:a:b", "user_id:eq:u"]);
  });
  it("show the steps of the last attempt", () => {
    const events = [event("job.running", "a", "1"), event("job.queued", "a", "2"), event("job.launching", "a", "3")];
    const steps = stepsOf({ state: "launching", submitted_at: "0" }, events);
    expect(steps.map((s) => s.at)).toEqual(["2", "3", null, null, null, null]);
    expect(steps.map((s) => s.done)).toEqual([true, false, false, false, false, false]);
  });
  it("end their steps where they failed", () => {
    const steps = stepsOf({ state: "failed", submitted_at: "0" }, [event("job.launching", "a", "1"), event("job.failed", "a", "2")]);
    expect(steps.map((s) => s.state)).toEqual(["queued", "launching", "failed"]);
  });
  it("are compared with what differs first", () => {
    const spec = (vcpu: number) => ({ run: { argv: ["x"] }, resources: { vcpu } });
    const rows = differences([job("a", { spec: spec(1) }), job("b", { spec: spec(2) })]);
    expect(rows[0]).toEqual({ name: "vcpu", values: ["1", "2"], differs: true });
    expect(rows.slice(1).every((row) => !row.differs)).toBe(true);
  });
});

describe("the lake", () => {
  it("is searched by lines that are joined, with names always in quotes", () => {
    const lines = [
      { key: "name", operator: "=", value: "007" },
      { key: "precision", operator: ">", value: "0.5" },
      { key: "model", operator: "=", value: 'a "b"' },
      { key: "", operator: "=", value: "dropped" },
    ];
    expect(queryOf(lines)).toBe('name = "007" and precision > 0.5 and model = "a \\"b\\""');
  });
  it("knows the folders above a path and where a dropped file goes", () => {
    expect(trail("/a/b/").map((part) => part.path)).toEqual(["/a/", "/a/b/"]);
    expect(targetOf("/a", "x.txt")).toBe("/a/x.txt");
    expect(targetOf("/a/", "in/x.txt")).toBe("/a/in/x.txt");
  });
  it("shows files by their ending and text only if it is text", () => {
    expect([lookOf("/a.PNG").as, lookOf("/a.csv").as, lookOf("/a").as]).toEqual(["image", "table", "text"]);
    expect(readable(new TextEncoder().encode("é").subarray(0, 1))).toBe("");
    expect(readable(new Uint8Array([0xff, 0xfe, 0xfd, 0xfc, 0xfb]))).toBeNull();
    expect(readable(new Uint8Array([65, 0, 66]))).toBeNull();
  });
  it("names a job by its id and the rest by name and version", () => {
    expect(partsOf("job", "job_1")).toEqual(["job_1", "1"]);
    expect(partsOf("file", "/a:b/c.txt:12")).toEqual(["/a:b/c.txt", "12"]);
  });
  it("takes tags that are numbers as numbers", () => {
    expect([valueOf("0.5"), valueOf("x"), valueOf(" "), valueOf("Infinity")]).toEqual([0.5, "x", " ", "Infinity"]);
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
    expect(layout(["a", "b"], [{ source: "a", target: "b" }, { source: "b", target: "a" }]).size).toBe(2);
  });
  it("keeps thousands apart, and each right of what it was made from", () => {
    const many = Array.from({ length: 2000 }, (_, i) => String(i));
    const made = many.slice(10).map((id) => ({ source: String(Math.floor(Number(id) / 10)), target: id }));
    const places = layout(many, made);
    expect(new Set([...places.values()].map(({ x, y }) => `${x} ${y}`)).size).toBe(2000);
    expect(made.every(({ source, target }) => places.get(source)!.x < places.get(target)!.x)).toBe(true);
    const [dots, lines] = farOption(many, [...made, { source: "0", target: "gone" }], places).series as { data: ArrayLike<unknown> }[];
    expect([dots!.data.length, lines!.data.length / 5]).toEqual([2000, 1990]);
  });
});

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

describe("money", () => {
  it("keeps the digits of small sums", () => {
    expect([money(0), money(12.345, "USD"), money(0.012345), money(0.0000123)]).toEqual(["0.00", "12.35 USD", "0.012", "0.000012"]);
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

describe("a question about a row", () => {
  it("has a field for each column, and only where it is one flat object", () => {
    expect(fieldsOf('{"size": 1.5, "town": "Bern", "note": null}')).toEqual({ size: 1.5, town: "Bern", note: null });
    for (const text of ["[1, 2]", "3", "{", "{}", '{"$array": "AA=="}', '{"x": [1]}']) expect(fieldsOf(text)).toBeNull();
  });
  it("keeps numbers as numbers, words as words and nothing as missing", () => {
    expect([typed("2,5", 1), typed(" ", 1), typed("3", "Bern"), typed("tall", 1), typed("7", null), typed("3,5", "0.386")]).toEqual([2.5, null, "3", "tall", 7, 3.5]);
  });
});
