import type { Schemas } from "../api/client";
import { money } from "../api/spending";
import { duration, figure, moment } from "../ui/format";

export type Row = Schemas["JobRow"];

/** A cell: what is shown, and the value that is sorted, grouped and exported by. */
export type Cell = { text: string; value: string | number | null };

export const PLAIN = {
  state: "State",
  owner: "Owner",
  submitted_at: "Submitted",
  ran: "Ran",
  cost: "Cost",
  device: "Device",
  input: "Input",
  output: "Output",
  exit_code: "Exit code",
  reason: "Reason",
} as const;
export type Plain = keyof typeof PLAIN;
export const FIRST: string[] = ["state", "owner", "submitted_at", "ran", "cost", "device", "reason"];

/** Columns by name: of the job itself, `tag:lr` of its tags and metrics, `param:lr` of what it was started with. */
export function cellOf(row: Row, column: string): Cell {
  const { job } = row;
  const text = (value: string | null | undefined): Cell => ({ text: value ?? "", value: value ?? null });
  if (column.startsWith("tag:")) return typed(row.tags[column.slice(4)]);
  if (column.startsWith("param:")) return typed(paramsOf(job.spec)[column.slice(6)]);
  switch (column as Plain) {
    case "state":
      return text(job.state);
    case "owner":
      return text(job.user ?? job.user_id);
    case "submitted_at":
      return { text: moment(job.submitted_at), value: job.submitted_at };
    case "ran":
      return job.usage
        ? { text: duration(job.usage.wall_seconds), value: job.usage.wall_seconds }
        : { text: "–", value: null };
    case "cost":
      return row.cost === null
        ? { text: "–", value: null }
        : { text: money(row.cost, row.currency ?? ""), value: row.cost };
    case "device":
      return text(job.device);
    case "input":
      return text(job.input_set);
    case "output":
      return text(job.output_set);
    case "exit_code":
      return { text: job.exit_code === null ? "" : String(job.exit_code), value: job.exit_code };
    case "reason":
      return text(job.reason);
  }
  return { text: "", value: null };
}

function typed(value: unknown): Cell {
  if (value === undefined || value === null) return { text: "–", value: null };
  if (typeof value === "number") return { text: figure(value), value };
  if (typeof value === "object" && "time" in value) {
    const at = String(value.time);
    return { text: moment(at), value: at };
  }
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return { text, value: text };
}

export function titleOfColumn(column: string): string {
  if (column.startsWith("tag:")) return column.slice(4);
  if (column.startsWith("param:")) return `${column.slice(6)} (given)`;
  return PLAIN[column as Plain] ?? column;
}

/** What a job was started with: the arguments of a function, or the --options and NAME=VALUE words of a command. */
export function paramsOf(spec: Record<string, unknown>): Record<string, string | number> {
  const run = (spec.run ?? {}) as { arguments?: Record<string, unknown>; argv?: unknown[] };
  const found: Record<string, string | number> = {};
  const keep = (name: string, value: unknown) => {
    if (typeof value === "string" && value.includes("\n")) return; // a script, as after `python -c`
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    found[name] =
      typeof number === "number" && Number.isFinite(number)
        ? number
        : typeof value === "string"
          ? value
          : JSON.stringify(value);
  };
  for (const [name, value] of Object.entries(run.arguments ?? {})) keep(name, value);
  const words = wordsOf((run.argv ?? []).map(String));
  words.forEach((word, i) => {
    const option = /^--?([A-Za-z][\w.-]*)(?:=(.*))?$/s.exec(word);
    if (option) {
      const next = words[i + 1];
      if (option[2] !== undefined) keep(option[1]!, option[2]);
      else if (next !== undefined && !/^--?[A-Za-z]/.test(next)) keep(option[1]!, next);
      else if (word.startsWith("--")) keep(option[1]!, "yes");
      return;
    }
    const pair = /^([A-Za-z_][\w.]*)=(.*)$/s.exec(word);
    if (pair) keep(pair[1]!, pair[2]);
  });
  return found;
}

/** The words of a command; of a line for a shell, those that are no script by themselves. */
function wordsOf(argv: string[]): string[] {
  if (argv.length === 3 && /(^|\/)(ba|da|z)?sh$/.test(argv[0]!) && argv[1] === "-c")
    return /[;|&\n`$(]/.test(argv[2]!) ? [] : argv[2]!.split(/\s+/);
  return argv;
}

/** What there is to choose from, of the rows that have come. */
export function columnsIn(rows: Row[]): string[] {
  const tags = new Set<string>();
  const params = new Set<string>();
  for (const row of rows) {
    for (const key of Object.keys(row.tags)) tags.add(`tag:${key}`);
    for (const key of Object.keys(paramsOf(row.job.spec))) params.add(`param:${key}`);
  }
  return [...Object.keys(PLAIN), ...[...tags].sort(), ...[...params].sort()];
}

/** How the server calls a column that it can sort by; null for what only the page knows. */
export function sortField(column: string): string | null {
  if (column.startsWith("tag:")) return column.slice(4);
  return ["name", "state", "submitted_at", "cost"].includes(column) ? column : null;
}

export type Group = { group: string; rows: Row[] };

/** Rows by the text of one column, in the order in which its values first come. */
export function grouped(rows: Row[], column: string): Group[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = column === "name" ? row.job.name : cellOf(row, column).text || "–";
    const there = groups.get(key);
    if (there) there.push(row);
    else groups.set(key, [row]);
  }
  return [...groups].map(([group, of]) => ({ group, rows: of }));
}

/** The mean of a group's numbers in a column, and how many there are; null where none is a number. */
export function meanOf(rows: Row[], column: string): { mean: number; of: number } | null {
  const numbers = rows.map((row) => cellOf(row, column).value).filter((one) => typeof one === "number");
  if (numbers.length === 0) return null;
  return { mean: numbers.reduce((sum, one) => sum + one, 0) / numbers.length, of: numbers.length };
}

/** The table as it is shown, with plain values. */
export function exported(rows: Row[], columns: string[]): (string | number | null)[][] {
  return [
    ["id", "name", ...columns.map(titleOfColumn)],
    ...rows.map((row) => [row.job.id, row.job.name, ...columns.map((column) => cellOf(row, column).value)]),
  ];
}
