import { describe, expect, it } from "vitest";
import type { Row } from "./columns";
import { givenLines, lowerIsBetter, measuredLines, metricsOf, parallelOf, whereTheyDiffer } from "./compare";

const row = (id: string, lr: number, tags: Record<string, number | string>, cost: number | null = null) =>
  ({
    job: {
      id,
      name: id,
      state: "finished",
      spec: { run: { argv: ["python", "t.py", "--lr", String(lr)] }, resources: { vcpu: 1 } },
    },
    tags,
    cost,
    currency: "USD",
  }) as unknown as Row;
const measured = (name: string, value: number) => ({
  [name]: value,
  [`${name}_min`]: value,
  [`${name}_max`]: value,
});
const rows = [
  row("a", 0.1, { ...measured("loss", 0.5), ...measured("accuracy", 0.7), note: "x" }, 2),
  row("b", 0.001, { ...measured("loss", 0.4), ...measured("accuracy", 0.6), note: "x" }, 1),
];

describe("comparing jobs", () => {
  it("marks what is best, by what the metric means", () => {
    expect(metricsOf(rows)).toEqual(["accuracy", "loss"]);
    const lines = measuredLines(rows);
    const best = (name: string) => lines.find((line) => line.name === name)!.best;
    expect([best("accuracy"), best("loss"), best("cost")]).toEqual([
      [true, false],
      [false, true],
      [false, true],
    ]);
    expect(["val_loss", "rmse", "accuracy", "lossless_score"].map(lowerIsBetter)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
  it("puts what differs first and keeps values under their own job", () => {
    const lines = givenLines(rows);
    expect(lines.filter((line) => line.differs).map((line) => line.name)).toEqual(["lr", "command"]);
    expect(lines[0]!.values).toEqual(["0.1", "0.001"]);
    expect(lines.find((line) => line.name === "tag note")!.differs).toBe(false);
    expect(lines.some((line) => line.name.includes("loss"))).toBe(false);
  });
  it("shows of long values the part in which they differ", () => {
    const script = "x = 1; ".repeat(60);
    const [one, two, none] = whereTheyDiffer([
      `python -c "${script}" --lr 0.1`,
      `python -c "${script}" --lr 0.5`,
      null,
    ]);
    expect([one, two, none]).toEqual(['… x = 1; x = 1; " --lr 0.1', '… x = 1; x = 1; " --lr 0.5', null]);
    expect(whereTheyDiffer([script, script])[0]).toHaveLength(161);
    expect(whereTheyDiffer(["a", "b"])).toEqual(["a", "b"]);
  });
  it("draws one axis for each parameter that differs, wide ranges by logarithm", () => {
    const option = parallelOf(rows, "loss")!;
    const axes = option.parallelAxis as { name: string; type: string }[];
    expect(axes.map((axis) => [axis.name, axis.type])).toEqual([
      ["lr", "log"],
      ["loss", "value"],
    ]);
    expect((option.series as { data: number[][] }[])[0]!.data).toEqual([
      [0.1, 0.5],
      [0.001, 0.4],
    ]);
    expect(parallelOf([rows[0]!], "loss")).toBeNull();
  });
  it("draws an axis for each tag that differs, but for none that was measured", () => {
    const tagged = rows.map((one, i) => ({ ...one, tags: { ...one.tags, rate: i } }));
    const axes = parallelOf(tagged, "loss")!.parallelAxis as { name: string }[];
    expect(axes.map((axis) => axis.name)).toEqual(["rate", "lr", "loss"]);
  });
});
