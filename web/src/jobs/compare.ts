import { money } from "../api/spending";
import { duration, figure, memory } from "../ui/format";
import { coloured, RAMP, type Option } from "../ui/Picture";
import { paramsOf, type Row } from "./columns";

export type Line = {
  name: string;
  values: (string | null)[];
  differs: boolean;
  /** Which columns are best, for what was measured. */
  best: boolean[];
  /** What best means, in a word. */
  by?: "lowest" | "highest";
};

/** The metrics of these jobs: what has a least and a largest value beside the last. */
export function metricsOf(rows: Row[]): string[] {
  const keys = new Set(rows.flatMap((row) => Object.keys(row.tags)));
  return [...keys].filter((key) => keys.has(`${key}_min`) && keys.has(`${key}_max`)).sort();
}

const LOWER =
  /(^|[._/-])(loss|error|err|rmse|mae|mse|mape|perplexity|ppl|seconds|time|latency|cost|nll|regret)([._/-]|$)/i;

/** Whether less of a quantity is better, by its name; accuracies and scores rise. */
export function lowerIsBetter(name: string): boolean {
  return LOWER.test(name);
}

function numberOf(row: Row, metric: string): number | null {
  const value = row.tags[metric];
  return typeof value === "number" ? value : null;
}

/** What was measured, one line a metric, the best marked; only where there is something to compare. */
export function measuredLines(rows: Row[]): Line[] {
  const metrics = metricsOf(rows).map((name) =>
    line(
      name,
      rows.map((row) => numberOf(row, name)),
      lowerIsBetter(name),
    ),
  );
  const cost = line(
    "cost",
    rows.map((row) => row.cost),
    true,
    (sum) => money(sum, rows.find((row) => row.currency)?.currency ?? ""),
  );
  const ran = line(
    "ran for",
    rows.map((row) => row.job.usage?.wall_seconds ?? null),
    true,
    duration,
  );
  return [...metrics, ran, cost].filter((one) => one.values.some((value) => value !== null));
}

function line(
  name: string,
  numbers: (number | null)[],
  lower: boolean,
  text: (value: number) => string = figure,
): Line {
  const known = numbers.filter((one) => one !== null);
  const best = lower ? Math.min(...known) : Math.max(...known);
  const differs = new Set(numbers).size > 1;
  return {
    name,
    values: numbers.map((one) => (one === null ? null : text(one))),
    differs,
    best: numbers.map((one) => differs && known.length > 1 && one === best),
    by: lower ? "lowest" : "highest",
  };
}

/** What the jobs were given, one line a property; those that differ first. */
export function givenLines(rows: Row[]): Line[] {
  const metrics = new Set(metricsOf(rows).flatMap((name) => [name, `${name}_min`, `${name}_max`]));
  const facts = rows.map((row) => factsOf(row, metrics));
  const names = [...new Set(facts.flatMap((one) => Object.keys(one)))];
  const lines = names.map((name) => {
    const values = facts.map((one) => one[name] ?? null);
    return { name, values, differs: new Set(values).size > 1, best: [] };
  });
  return lines.sort((a, b) => Number(b.differs) - Number(a.differs));
}

const LONG = 160;
const BESIDE = 24;

/** Long values that differ without what all of them begin and end with: the part that is looked for. */
export function whereTheyDiffer(values: (string | null)[]): (string | null)[] {
  const known = values.filter((one) => one !== null);
  if (known.every((one) => one.length <= LONG)) return values;
  if (new Set(known).size < 2) return values.map((one) => (one === null ? null : `${one.slice(0, LONG)}…`));
  const shortest = Math.min(...known.map((one) => one.length));
  let [start, end] = [0, 0];
  while (start < shortest && known.every((one) => one[start] === known[0]![start])) start += 1;
  while (end < shortest - start && known.every((one) => one.at(-1 - end) === known[0]!.at(-1 - end)))
    end += 1;
  const [from, after] = [Math.max(0, start - BESIDE), Math.max(0, end - BESIDE)];
  return values.map((one) => {
    if (one === null) return null;
    const part = one.slice(from, one.length - after);
    const cut = part.length > LONG ? `${part.slice(0, LONG)}…` : part + (after > 0 ? "…" : "");
    return (from > 0 ? "…" : "") + cut;
  });
}

function factsOf(row: Row, metrics: Set<string>): Record<string, string> {
  const { job } = row;
  const spec = job.spec as { run?: Record<string, unknown>; resources?: Record<string, unknown> };
  const run = spec.run ?? {};
  const facts: Record<string, string> = {};
  for (const [name, value] of Object.entries(paramsOf(job.spec))) facts[name] = text(value);
  for (const [name, value] of Object.entries(row.tags))
    if (!metrics.has(name))
      facts[`tag ${name}`] = typeof value === "object" ? String(value.time) : text(value);
  facts.command = Array.isArray(run.argv) ? run.argv.join(" ") : String(run.target ?? "");
  if (job.code_set) facts.code = job.code_set;
  if (job.input_set) facts.input = job.input_set;
  for (const [name, value] of Object.entries(spec.resources ?? {})) facts[name] = String(value);
  if (job.device) facts.device = job.device;
  if (job.usage) facts["most memory"] = memory(job.usage.peak_memory_mb);
  return facts;
}

function text(value: string | number): string {
  return typeof value === "number" ? figure(value) : value;
}

/** What a job was given: the tags that somebody set, and the parameters of its command, which count where both have a name. */
function givenTo(row: Row, metrics: string[]): Record<string, string | number> {
  const measured = new Set(metrics.flatMap((name) => [name, `${name}_min`, `${name}_max`]));
  const tags = Object.entries(row.tags).filter(
    (tag): tag is [string, string | number] => !measured.has(tag[0]) && typeof tag[1] !== "object",
  );
  return { ...Object.fromEntries(tags), ...paramsOf(row.job.spec) };
}

/** One axis for each parameter or tag that differs, the metric last; one line a job, coloured by the metric. */
export function parallelOf(rows: Row[], metric: string): Option | null {
  const shown = rows.filter((row) => numberOf(row, metric) !== null);
  const metrics = metricsOf(rows);
  const given = shown.map((row) => givenTo(row, metrics));
  const names = [...new Set(given.flatMap((one) => Object.keys(one)))].filter(
    (name) => new Set(given.map((one) => one[name])).size > 1,
  );
  if (shown.length < 2 || names.length === 0) return null;
  const axes = names.map((name, dim) => {
    const values = given.map((one) => one[name]).filter((one) => one !== undefined);
    if (values.every((one) => typeof one === "number")) {
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const log = low > 0 && high / low >= 100;
      return {
        dim,
        name,
        type: log ? ("log" as const) : ("value" as const),
        scale: true,
        axisLabel: { formatter: figure },
      };
    }
    return { dim, name, type: "category" as const, data: [...new Set(values.map(String))] };
  });
  const scores = shown.map((row) => numberOf(row, metric)!);
  const data = shown.map((row, i) => [
    ...axes.map((axis) => {
      const value = given[i]![axis.name];
      return value === undefined ? "-" : axis.type === "category" ? String(value) : value;
    }),
    numberOf(row, metric)!,
  ]);
  return {
    parallel: { left: 56, right: 128, top: 40, bottom: 28 },
    parallelAxis: [
      ...axes,
      { dim: axes.length, name: metric, type: "value", scale: true, axisLabel: { formatter: figure } },
    ],
    visualMap: {
      dimension: axes.length,
      ...coloured(scores),
      right: 0,
      bottom: 0,
      itemHeight: 90,
      precision: 3,
      inRange: { color: [...RAMP].reverse() },
    },
    series: [{ type: "parallel", smooth: false, lineStyle: { width: 1.8, opacity: 0.75 }, data }],
  } as Option;
}
