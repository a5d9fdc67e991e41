import Papa from "papaparse";

/** How the steps of a series are written: plain numbers, numbers side by side, or by name. */
export type Form = { kind: "plain" } | { kind: "vector"; width: number } | { kind: "named"; names: string[] };
/** What somebody pasted or uploaded. */
export type Table = { header: string[]; rows: (number | null)[][] };

const MOST_DRAWN = 120;

/** The form of the steps of an example's input, as the API gives it back. */
export function formOf(input: unknown): Form {
  const { steps } = stepsOf(input);
  const first: unknown = steps[0];
  if (Array.isArray(first))
    return first.length === 1 ? { kind: "plain" } : { kind: "vector", width: first.length };
  if (typeof first === "object" && first !== null)
    return { kind: "named", names: Object.keys(first).filter((name) => name !== "next") };
  return { kind: "plain" };
}

/** The steps of an input: a list, an array in base64, or objects that each name the next. */
export function stepsOf(input: unknown): { steps: unknown[] } {
  if (Array.isArray(input)) return { steps: input };
  if (typeof input !== "object" || input === null) return { steps: [] };
  if ("$array" in input) return { steps: opened(input as ArrayValue) };
  const steps: unknown[] = [];
  for (let here: unknown = input; typeof here === "object" && here !== null;) {
    const { next, ...own } = here as Record<string, unknown>;
    steps.push(own);
    here = next;
  }
  return { steps };
}

/** The text that the table of an example would be pasted as. */
export function textOf(input: unknown): string {
  const form = formOf(input);
  const { steps } = stepsOf(input);
  const cell = (value: unknown) => (value === null || value === undefined ? "" : String(value));
  if (form.kind === "named")
    return [
      form.names.join(","),
      ...steps.map((step) =>
        form.names.map((name) => cell((step as Record<string, unknown>)[name])).join(","),
      ),
    ].join("\n");
  return steps.map((step) => (Array.isArray(step) ? step.map(cell).join(",") : cell(step))).join("\n");
}

/** Numbers one under another, side by side, or as CSV with or without titles; what is no number is missing. */
export function tableOf(text: string): Table {
  const plain = text.trim();
  if (plain === "") return { header: [], rows: [] };
  const cells = Papa.parse<string[]>(plain, { skipEmptyLines: true, delimiter: delimiterOf(plain) }).data.map(
    (row) => row.map((cell) => cell.trim()),
  );
  const titled = (cells[0] ?? []).some((cell) => cell !== "" && numberOf(cell) === null);
  const header = titled ? cells[0]! : [];
  return { header, rows: (titled ? cells.slice(1) : cells).map((row) => row.map(numberOf)) };
}

function delimiterOf(text: string): string {
  const line = text.split("\n").find((one) => /\d/.test(one)) ?? "";
  return [";", "\t", ","].find((sign) => line.includes(sign)) ?? (/\S\s+\S/.test(line.trim()) ? " " : ",");
}

function numberOf(cell: string): number | null {
  if (cell === "") return null;
  const value = Number(cell);
  return Number.isFinite(value) ? value : null;
}

/** The columns of a table, each with its title, or its number where there are none. A lone row is one column. */
export function columnsOf(table: Table): { name: string; values: (number | null)[] }[] {
  if (table.rows.length === 1 && table.header.length === 0)
    return [{ name: "", values: table.rows[0]!.filter((value) => value !== null) }];
  const width = Math.max(0, ...table.rows.map((row) => row.length));
  return Array.from({ length: width }, (_, k) => ({
    name: table.header[k] ?? (width > 1 ? `column ${k + 1}` : ""),
    values: table.rows.map((row) => row[k] ?? null),
  }));
}

/** The object to ask about, or what is missing for it; `chosen` is the column of a plain series. */
export function objectOf(table: Table, form: Form, chosen: number): { object: unknown } | { lacks: string } {
  const columns = columnsOf(table);
  if (columns.length === 0) return { lacks: "numbers" };
  if (form.kind === "plain") {
    const values = (columns[chosen] ?? columns[0]!).values;
    const gap = values.findIndex((value) => value === null);
    return gap < 0 ? { object: values } : { lacks: `a number in step ${gap + 1}` };
  }
  if (form.kind === "vector") {
    if (columns.length !== form.width)
      return { lacks: `${form.width} numbers in each line, not ${columns.length}` };
    return { object: table.rows };
  }
  const absent = form.names.filter((name) => !table.header.includes(name));
  if (absent.length > 0) return { lacks: `a column ${absent.join(", ")}` };
  const places = form.names.map((name) => table.header.indexOf(name));
  return {
    object: table.rows.map((row) =>
      Object.fromEntries(form.names.map((name, i) => [name, row[places[i]!] ?? null])),
    ),
  };
}

/** At most so many of the values, of each stretch the lowest and the highest: as the server draws examples. */
export function thinned(values: (number | null)[], most = MOST_DRAWN): (number | null)[] {
  if (values.length <= most) return values;
  const length = values.length / (most / 2);
  return Array.from({ length: most / 2 }, (_, k) =>
    values.slice(Math.floor(k * length), Math.floor((k + 1) * length)),
  ).flatMap((stretch) => {
    const known = stretch.filter((value) => value !== null);
    if (known.length === 0) return [null, null];
    const low = Math.min(...known);
    const high = Math.max(...known);
    return stretch.indexOf(low) <= stretch.indexOf(high) ? [low, high] : [high, low];
  });
}

type ArrayValue = { $array: string; kind: string; shape: number[] };

function opened({ $array, kind, shape }: ArrayValue): unknown[] {
  const bytes = Uint8Array.from(atob($array), (letter) => letter.charCodeAt(0));
  const flat = Array.from(kind.endsWith("u1") ? bytes : new Float32Array(bytes.buffer), (value) =>
    Number(value.toPrecision(7)),
  );
  const width = shape.slice(1).reduce((product, side) => product * side, 1);
  if (width === 1) return flat;
  return Array.from({ length: shape[0] ?? 0 }, (_, i) => flat.slice(i * width, (i + 1) * width));
}
