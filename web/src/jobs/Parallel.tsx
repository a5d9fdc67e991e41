import { useMemo, useState } from "react";
import { plural } from "../ui/format";
import { Picture } from "../ui/Picture";
import "../ui/shapes";
import type { Row } from "./columns";
import { parallelOf } from "./compare";

/** Parameters against a metric, one line a job. */
export default function Parallel({ rows, metrics }: { rows: Row[]; metrics: string[] }) {
  const [metric, setMetric] = useState(metrics[0] ?? "");
  const option = useMemo(() => parallelOf(rows, metric), [rows, metric]);
  if (!option) return null;
  return (
    <section className="card">
      <div className="row">
        <label>
          Coloured by
          <select value={metric} onChange={(event) => setMetric(event.target.value)}>
            {metrics.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <span className="quiet">Drag along an axis to keep only the lines that pass there.</span>
      </div>
      <Picture
        title="What was given, against what came out"
        about={`Parallel coordinates of ${plural(rows.length, "job")}: the parameters in which they differ, and ${metric}; the table above says the same`}
        option={option}
        wide
      />
    </section>
  );
}
