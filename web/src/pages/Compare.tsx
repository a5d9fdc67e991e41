import { useQueries, useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { answer, api } from "../api/client";
import { curvesOf, type Curve } from "../api/jobs";
import { exported, columnsIn, type Row } from "../jobs/columns";
import { givenLines, measuredLines, metricsOf, whereTheyDiffer, type Line } from "../jobs/compare";
import { Chart, ChartBar, useView } from "../ui/Chart";
import { Failure } from "../ui/Failure";
import { plural } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { jobPlace } from "../ui/places";
import { csvOf, save } from "../ui/save";
import { State } from "../ui/State";

const Parallel = lazy(() => import("../jobs/Parallel"));
const AT_ONCE = 100;
/** More lines than this in one picture are not told apart. */
const MOST_CURVES = 20;

/** Any number of jobs: what they reached with the best marked, what differs, then what is alike; curves beside. */
export default function Compare() {
  const project = useProject();
  const [address] = useSearchParams();
  const ids = useMemo(() => [...new Set(address.getAll("job"))], [address]);
  const found = useQuery({
    queryKey: [project, "job", "rows", ids],
    enabled: ids.length > 0,
    queryFn: () => rowsOf(project, ids),
  });
  return (
    <>
      <header className="head">
        <h1>Compare jobs</h1>
        <span className="quiet">{found.data && plural(found.data.length, "job")}</span>
        <span className="spring" />
        <button
          type="button"
          disabled={!found.data}
          onClick={() =>
            found.data && save(`${project}-compared.csv`, csvOf(exported(found.data, columnsIn(found.data))))
          }
        >
          Download CSV
        </button>
      </header>
      {ids.length < 2 && <p>Choose two or more jobs in the list of jobs.</p>}
      {ids.length > 0 && (
        <Loaded query={found}>{(rows) => <Side project={project} ids={ids} rows={rows} />}</Loaded>
      )}
    </>
  );
}

/** In the order of the address; what is not in this project is left out and said. */
async function rowsOf(project: string, ids: string[]): Promise<Row[]> {
  const found = new Map<string, Row>();
  for (let i = 0; i < ids.length; i += AT_ONCE) {
    const filter = [`id:in:${ids.slice(i, i + AT_ONCE).join(",")}`];
    const params = { path: { project }, query: { limit: AT_ONCE, filter } };
    const page = await answer(api.GET("/api/v1/projects/{project}/jobs/table", { params }));
    for (const row of page.items) found.set(row.job.id, row);
  }
  return ids.flatMap((id) => found.get(id) ?? []);
}

function Side({ project, ids, rows }: { project: string; ids: string[]; rows: Row[] }) {
  const missing = ids.filter((id) => !rows.some((row) => row.job.id === id));
  const measured = measuredLines(rows);
  const given = givenLines(rows);
  const differing = given.filter((line) => line.differs);
  const alike = given.filter((line) => !line.differs);
  const metrics = metricsOf(rows);
  return (
    <>
      {missing.length > 0 && (
        <p className="notice" role="status">
          Not in this project: {missing.join(", ")}.
        </p>
      )}
      {rows.length > 0 && (
        <div className="scroll" tabIndex={0} role="region" aria-label="Jobs side by side">
          <table className="compare">
            <thead>
              <tr>
                <th scope="col">
                  <span className="unseen">Property</span>
                </th>
                {rows.map(({ job }) => (
                  <th scope="col" key={job.id} dir="auto">
                    <Link to={jobPlace(project, job.id)}>{job.name}</Link>
                    <br />
                    <small>…{job.id.slice(-6)}</small> <State state={job.state} />
                  </th>
                ))}
              </tr>
            </thead>
            <Part title="What they reached" lines={measured} rows={rows} />
            <Part title="What differs" lines={differing} rows={rows} />
            <Part title="What is alike" lines={alike} rows={rows} />
          </table>
        </div>
      )}
      {metrics.length > 0 && rows.length > 1 && (
        <Suspense fallback={null}>
          <Parallel rows={rows} metrics={metrics} />
        </Suspense>
      )}
      <Curves project={project} rows={rows} />
    </>
  );
}

function Part({ title, lines, rows }: { title: string; lines: Line[]; rows: Row[] }) {
  if (lines.length === 0) return null;
  return (
    <tbody>
      <tr className="part">
        <th scope="rowgroup" colSpan={rows.length + 1}>
          {title}
        </th>
      </tr>
      {lines
        .map((line) => ({ ...line, shown: whereTheyDiffer(line.values) }))
        .map((line) => (
          <tr key={line.name} className={line.differs && !line.by ? "differs" : ""}>
            <th scope="row" dir="auto">
              {line.name}
              {line.by && line.best.some(Boolean) && <small> {line.by} is best</small>}
            </th>
            {line.values.map((value, i) => (
              <td key={rows[i]!.job.id} className={`long ${line.by ? "number" : ""}`} dir="auto">
                {value === line.shown[i] || value === null ? (
                  (value ?? "–")
                ) : (
                  <details>
                    <summary>{line.shown[i]}</summary>
                    {value}
                  </details>
                )}
                {line.best[i] && <strong className="best-mark"> best</strong>}
              </td>
            ))}
          </tr>
        ))}
    </tbody>
  );
}

function Curves({ project, rows }: { project: string; rows: Row[] }) {
  const [view, setView] = useView();
  const [only, setOnly] = useState("");
  const shown = rows.slice(0, MOST_CURVES);
  const asked = useQueries({ queries: shown.map((row) => curvesOf(project, row.job.id, false)) });
  const failed = asked.find((one) => one.error)?.error;
  const curves = new Map<string, Curve[]>(shown.map((row, i) => [row.job.id, asked[i]?.data ?? []]));
  const names = [...new Set([...curves.values()].flatMap((all) => all.map((curve) => curve.name)))]
    .filter((name) => name.includes(only))
    .sort();
  if (names.length === 0 && !only) return failed ? <Failure error={failed} /> : null;
  return (
    <section>
      <header className="head">
        <h2>Curves</h2>
        {rows.length > shown.length && (
          <span className="quiet">
            of the first {shown.length} of {rows.length}
          </span>
        )}
        <span className="spring" />
        <label>
          <span className="unseen">Names of metrics contain</span>
          <input type="search" placeholder="Filter" value={only} onChange={(e) => setOnly(e.target.value)} />
        </label>
      </header>
      <ChartBar view={view} onChange={setView} />
      <div className="charts">
        {names.map((name) => (
          <div className="card" key={name}>
            <Overlaid name={name} rows={shown} curves={curves} view={view} />
          </div>
        ))}
      </div>
    </section>
  );
}

function Overlaid({
  name,
  rows,
  curves,
  view,
}: {
  name: string;
  rows: Row[];
  curves: Map<string, Curve[]>;
  view: ReturnType<typeof useView>[0];
}) {
  const lines = rows.flatMap(({ job }) => {
    const curve = curves.get(job.id)?.find((one) => one.name === name);
    return curve ? [{ label: `${job.name} …${job.id.slice(-5)}`, points: curve.points }] : [];
  });
  return <Chart title={name} lines={lines} height={260} view={view} group="compare" />;
}
