import { describe, expect, it } from "vitest";
import { byColumn } from "../pages/Jobs";
import { csvOf } from "../ui/save";
import { cellOf, columnsIn, exported, grouped, meanOf, paramsOf, sortField, type Row } from "./columns";

const row = (id: string, more: Partial<Row> = {}, argv: string[] = []) =>
  ({
    job: { id, name: id, state: "finished", user_id: "u", spec: { run: { kind: "command", argv } } },
    tags: {},
    cost: null,
    currency: null,
    ...more,
  }) as unknown as Row;

describe("the table of jobs", () => {
  it("reads what jobs were given from arguments, options and pairs", () => {
    expect(paramsOf({ run: { arguments: { lr: 0.1, deep: { a: 1 } } } })).toEqual({
      lr: 0.1,
      deep: '{"a":1}',
    });
    const argv = ["python", "train.py", "--lr", "0.01", "--depth=3", "--fast", "-o", "x", "data.n=5"];
    expect(paramsOf({ run: { argv } })).toEqual({ lr: 0.01, depth: 3, fast: "yes", o: "x", "data.n": 5 });
    expect(paramsOf({ run: { argv: ["sh", "-c", "python t.py --lr 1"] } })).toEqual({ lr: 1 });
    expect(paramsOf({ run: { argv: ["sh", "-c", "for i in 1; do echo --x $i; done"] } })).toEqual({});
  });
  it("offers columns of tags and parameters, and knows which the server sorts by", () => {
    const rows = [
      row("a", { tags: { accuracy: 0.5 } }, ["x", "--lr", "1"]),
      row("b", { tags: { model: "BERT" } }),
    ];
    expect(columnsIn(rows)).toEqual(
      expect.arrayContaining(["tag:accuracy", "tag:model", "param:lr", "cost"]),
    );
    expect([sortField("tag:accuracy"), sortField("cost"), sortField("param:lr")]).toEqual([
      "accuracy",
      "cost",
      null,
    ]);
  });
  it("shows costs with their currency and times as moments", () => {
    expect(cellOf(row("a", { cost: 0.25, currency: "USD" }), "cost").text).toBe("0.25 USD");
    const told = cellOf(row("a", { tags: { when: { time: "2026-01-02T03:04:05Z" } } }), "tag:when");
    expect(told.value).toBe("2026-01-02T03:04:05Z");
  });
  it("groups in the order of rows, with means of numbers", () => {
    const rows = ["BERT", "GPT", "BERT"].map((model, i) => row(`j${i}`, { tags: { model, accuracy: i } }));
    expect(grouped(rows, "tag:model").map((one) => [one.group, one.rows.length])).toEqual([
      ["BERT", 2],
      ["GPT", 1],
    ]);
    expect(meanOf([rows[0]!, rows[2]!], "tag:accuracy")).toEqual({ mean: 1, of: 2 });
    expect(meanOf(rows, "tag:model")).toBeNull();
  });
  it("sorts by what only the page knows, with gaps last", () => {
    const rows = [row("none"), row("two", {}, ["x", "--lr", "2"]), row("ten", {}, ["x", "--lr", "10"])];
    expect(byColumn(rows, "-param:lr").map((one) => one.job.id)).toEqual(["ten", "two", "none"]);
    expect(byColumn(rows, "param:lr").map((one) => one.job.id)).toEqual(["two", "ten", "none"]);
  });
  it("exports plain values, and nothing that a spreadsheet would run", () => {
    const rows = [row("=1+1", { tags: { note: 'a "b", c', accuracy: 0.123456 } })];
    expect(csvOf(exported(rows, ["tag:accuracy", "tag:note"]))).toBe(
      `id,name,accuracy,note\r\n'=1+1,'=1+1,0.123456,"a ""b"", c"\r\n`,
    );
  });
});
