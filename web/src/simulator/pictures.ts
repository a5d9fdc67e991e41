import Papa from "papaparse";
import type { Schemas } from "../api/client";
import { Problem } from "../api/problem";
import { figure } from "../ui/format";
import { COLOURS, told, type Option } from "../ui/Picture";
import "../ui/shapes";

/** What policies are held against: no policies themselves. */
export const REFERENCES = ["greedy with hindsight", "bound"];

type PastTrial = Schemas["PastTrial"];
const COLUMNS = ["tenant", "candidate", "quality", "cost"];

/** The rows of a table with tenant, candidate, quality and cost; an empty quality is a failed trial. */
export function pastOf(text: string): PastTrial[] {
  const { data, meta } = Papa.parse<Record<string, string>>(text.trim(), {
    header: true,
    skipEmptyLines: true,
  });
  const missing = COLUMNS.filter((name) => !meta.fields?.includes(name));
  if (missing.length > 0) throw new Problem(-1, "page", `The file lacks the columns ${missing.join(", ")}.`);
  return data.map((row, i) => {
    const cost = Number(row.cost);
    const quality = row.quality?.trim() ? Number(row.quality) : null;
    if (!(cost > 0) || (quality !== null && !Number.isFinite(quality)))
      throw new Problem(-1, "page", `Line ${i + 2} of the file is not a quality and a cost above zero.`);
    return { tenant: row.tenant ?? "", candidate: row.candidate ?? "", quality, cost };
  });
}

export async function historyOf(file: File): Promise<PastTrial[]> {
  return pastOf(await file.text());
}

/** One colour a policy, one kind of line a number of devices; a loss of zero has no logarithm. */
export function simulationOption(found: Schemas["Simulated"]): Option {
  const policies = [...new Set(found.runs.map((run) => run.policy))];
  const sizes = [...new Set(found.runs.map((run) => run.devices))].sort((a, b) => a - b);
  const kinds = ["solid", "dashed", "dotted"] as const;
  const name = (run: Schemas["SimulatedRun"]) => `${run.policy}, ${run.devices}`;
  return {
    grid: { left: 72, right: 24, top: 36, bottom: 84 },
    legend: { type: "scroll", bottom: 0 },
    tooltip: told((i, which) => {
      const run = found.runs[which];
      return run ? `${name(run)} devices\nat ${figure(run.time[i])}: loss ${figure(run.loss[i])}` : "";
    }),
    xAxis: {
      type: "value",
      name: "time, in the history's unit of cost",
      nameLocation: "middle",
      nameGap: 28,
      max: found.horizon,
    },
    yAxis: { type: "log", name: "mean loss" },
    series: found.runs.map((run) => ({
      name: name(run),
      type: "line",
      step: "end",
      showSymbol: false,
      color: REFERENCES.includes(run.policy)
        ? "#808080"
        : COLOURS[policies.indexOf(run.policy) % COLOURS.length],
      lineStyle: {
        type: kinds[sizes.indexOf(run.devices) % kinds.length],
        width: 1.5 + 0.6 * sizes.indexOf(run.devices),
      },
      data: run.time.map((at, i) => [at, Math.max(run.loss[i]!, 1e-5)]),
    })),
  };
}
