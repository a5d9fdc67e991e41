import { useState } from "react";
import { Link } from "react-router";
import type { StudyPoint } from "../api/studies";
import { figure, plural } from "../ui/format";
import { sortedPoints, type Sorting } from "./pictures";

type Props = {
  project: string;
  points: StudyPoint[];
  quantity: string;
  dimensions: string[];
  /** The numbers of the points that were brushed in the picture; null where none were. */
  brushed: number[] | null;
  onAll: () => void;
};

/** Every point as a row, sorted by any column; after brushing only those that were brushed. */
export function Points({ project, points, quantity, dimensions, brushed, onAll }: Props) {
  const [only, setOnly] = useState(false);
  const [sorting, setSorting] = useState<Sorting>({ by: "#", down: true });
  const shown = sortedPoints(
    points.filter((point) => (!only || point.feasible) && (!brushed || brushed.includes(point.number))),
    sorting,
  );
  const others = [...new Set(points.flatMap((point) => Object.keys(point.values)))].filter(
    (name) => name !== quantity,
  );
  const heading = (name: string) => (
    <th
      scope="col"
      key={name}
      className="number"
      aria-sort={sorting.by === name ? (sorting.down ? "descending" : "ascending") : "none"}
    >
      <button
        type="button"
        className="plain"
        dir="auto"
        onClick={() => setSorting({ by: name, down: sorting.by === name ? !sorting.down : false })}
      >
        {name} <span aria-hidden="true">{sorting.by === name ? (sorting.down ? "▾" : "▴") : "↕"}</span>
      </button>
    </th>
  );
  return (
    <section className="part">
      <header className="head">
        <h2>Points</h2>
        <label className="check">
          <input type="checkbox" checked={only} onChange={(e) => setOnly(e.target.checked)} /> Only those that
          meet the constraints
        </label>
        {brushed && (
          <span role="status">
            {plural(shown.length, "point")} of {points.length} brushed{" "}
            <button type="button" className="small" onClick={onAll}>
              Show all
            </button>
          </span>
        )}
      </header>
      <div className="scroll" tabIndex={0} role="region" aria-label="All points">
        <table>
          <thead>
            <tr>
              {["#", ...dimensions].map(heading)}
              <th scope="col">State</th>
              {[quantity, ...others].map(heading)}
              <th scope="col">Constraints</th>
              <th scope="col">Job</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((point) => (
              <tr key={point.number}>
                <td className="number" title={point.why ?? undefined}>
                  {point.number}
                </td>
                {dimensions.map((name) => (
                  <td className="number" dir="auto" key={name}>
                    {shownValue(point.point[name])}
                  </td>
                ))}
                <td>
                  <span className={`state ${point.state}`} title={point.reason ?? undefined}>
                    {point.state}
                  </span>
                </td>
                {[quantity, ...others].map((name) => (
                  <td className="number" key={name}>
                    {figure(point.values[name])}
                  </td>
                ))}
                <td>{point.feasible === null ? "–" : point.feasible ? "met" : "not met"}</td>
                <td>
                  {point.job_id ? (
                    <Link to={`/p/${encodeURIComponent(project)}/jobs/${point.job_id}`}>
                      …{point.job_id.slice(-6)}
                    </Link>
                  ) : (
                    "–"
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function shownValue(value: unknown): string {
  if (value === undefined) return "–";
  return typeof value === "number" ? figure(value) : String(value);
}
