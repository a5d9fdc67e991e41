import type { NewStudy } from "../api/studies";

export type DimensionRow = {
  name: string;
  type: "float" | "integer" | "categorical";
  low: string;
  high: string;
  log: boolean;
  values: string;
};

export type StudyForm = {
  name: string;
  command: string;
  code: string;
  input: string;
  vcpu: string;
  memory: string;
  dimensions: DimensionRow[];
  aim: "minimise" | "maximise";
  quantity: string;
  constraints: string;
  budget: "count" | "cost" | "time";
  amount: string;
  strategy: string;
  workers: string;
};

export const EMPTY_DIMENSION: DimensionRow = {
  name: "",
  type: "float",
  low: "",
  high: "",
  log: false,
  values: "",
};

export const EMPTY: StudyForm = {
  name: "",
  command: "",
  code: "",
  input: "",
  vcpu: "1",
  memory: "1024",
  dimensions: [EMPTY_DIMENSION],
  aim: "maximise",
  quantity: "accuracy",
  constraints: "",
  budget: "count",
  amount: "20",
  strategy: "auto",
  workers: "1",
};

/** What the API wants for what the form holds; the server says what is wrong with it. */
export function studyOf(form: StudyForm): NewStudy {
  return {
    name: form.name.trim(),
    job: {
      name: form.name.trim() || "point",
      run: { kind: "command", argv: ["sh", "-c", form.command] },
      code: form.code.trim() || null,
      input: form.input.trim() || null,
      resources: { vcpu: Number(form.vcpu), memory_mb: Number(form.memory), gpus: 0 },
    },
    space: { dimensions: form.dimensions.filter((row) => row.name.trim()).map(dimensionOf) },
    goal: {
      [form.aim]: form.quantity.trim(),
      constraints: form.constraints
        .split(/[,;\n]/)
        .map((text) => text.trim())
        .filter(Boolean),
      budget: { [form.budget]: Number(form.amount) },
    },
    strategy: form.strategy.trim() || "auto",
    workers: Number(form.workers),
  };
}

function dimensionOf(row: DimensionRow): Record<string, unknown> {
  const name = row.name.trim();
  if (row.type === "categorical")
    return {
      name,
      type: "categorical",
      values: row.values
        .split(",")
        .map((value) => value.trim())
        .filter(Boolean),
    };
  return { name, type: row.type, low: Number(row.low), high: Number(row.high), log: row.log };
}
