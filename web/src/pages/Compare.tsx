import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useSearchParams } from "react-router";
import { answer, api, type Job } from "../api/client";
import { curvesOf, type Curve } from "../api/jobs";
import { Chart } from "../ui/Chart";
import { Failure } from "../ui/Failure";
import { duration, figure, memory } from "../ui/format";
import { useProject } from "../ui/Frame";
import { State } from "../ui/State";

const MOST = 8;

/** Several jobs side by side: what they were given, what came out, their curves in one picture. */
export default function Compare() {
  const project = useProject();
  const [address] = useSearchParams();
  const ids = useMemo(() => [...new Set(address.getAll("job"))].slice(0, MOST), [address]);
  const jobs = useQueries({
    queries: ids.map((job) => ({
      queryKey: [project, "job", job],
      queryFn: () =>
        answer(api.GET("/api/v1/projects/{project}/jobs/{job}", { params: { path: { project, job } } })),
    })),
  });
  const curves = useQueries({ queries: ids.map((id) => curvesOf(project, id, false)) }).map(
    (one) => one.data ?? [],
  );
  const found = jobs.flatMap((job) => (job.data ? [job.data] : []));
  const failed = jobs.find((job) => job.error)?.error;
  const names = [...new Set(curves.flatMap((all) => all.map((curve) => curve.name)))].sort();
  const label = (i: number) =>
    `${found.find((job) => job.id === ids[i])?.name ?? "job"} ${(ids[i] ?? "").slice(-5)}`;
  const rows = differences(found);
  return (
    <>
      <header className="head">
        <h1>Compare jobs</h1>
      </header>
      {failed && <Failure error={failed} />}
      {ids.length < 2 && <p>Choose two or more jobs in the list of jobs.</p>}
      <div className="scroll" tabIndex={0} role="region" aria-label="Jobs side by side">
        <table className="compare">
          <thead>
            <tr>
              <th scope="col">
                <span className="unseen">Property</span>
              </th>
              {found.map((job) => (
                <th scope="col" key={job.id} dir="auto">
                  <Link to={`/p/${encodeURIComponent(project)}/jobs/${job.id}`}>{job.name}</Link>
                  <br />
                  <small>{job.id}</small>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr>
              <th scope="row">state</th>
              {found.map((job) => (
                <td key={job.id}>
                  <State state={job.state} />
                </td>
              ))}
            </tr>
            {rows.map((row) => (
              <tr key={row.name} className={row.differs ? "differs" : ""}>
                <th scope="row">{row.name}</th>
                {row.values.map((value, i) => (
                  <td key={found[i]!.id} className="long" dir="auto">
                    <div className="some">{value}</div>
                  </td>
                ))}
              </tr>
            ))}
            {names.map((name) => (
              <tr key={name}>
                <th scope="row" dir="auto">
                  {name}, last
                </th>
                {ids.map((id, i) => (
                  <td key={id} className="number">
                    {figure(curves[i]?.find((curve) => curve.name === name)?.points.at(-1)?.value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className="charts">
        {names.map((name) => (
          <div className="card" key={name}>
            <Overlaid name={name} curves={curves} label={label} />
          </div>
        ))}
      </div>
    </>
  );
}

function Overlaid({
  name,
  curves,
  label,
}: {
  name: string;
  curves: Curve[][];
  label: (i: number) => string;
}) {
  const lines = curves.flatMap((all, i) => {
    const curve = all.find((one) => one.name === name);
    if (!curve) return [];
    return [{ label: label(i), x: curve.points.map((p) => p.step), y: curve.points.map((p) => p.value) }];
  });
  return <Chart title={name} lines={lines} height={260} />;
}

type Row = { name: string; values: string[]; differs: boolean };

/** What the jobs were given and used, one row a property; those that differ first. */
export function differences(jobs: Job[]): Row[] {
  const facts = jobs.map(factsOf);
  const names = [...new Set(facts.flatMap((one) => Object.keys(one)))];
  const rows = names.map((name) => {
    const values = facts.map((one) => one[name] ?? "–");
    return { name, values, differs: new Set(values).size > 1 };
  });
  return rows.sort((a, b) => Number(b.differs) - Number(a.differs));
}

function factsOf(job: Job): Record<string, string> {
  const spec = job.spec as {
    run?: Record<string, unknown>;
    resources?: Record<string, unknown>;
    tags?: Record<string, unknown>;
  };
  const run = spec.run ?? {};
  const facts: Record<string, string> = {
    command: Array.isArray(run.argv) ? run.argv.join(" ") : String(run.target ?? ""),
    input: job.input_set ?? "–",
  };
  const args = (run.arguments ?? {}) as Record<string, unknown>;
  for (const [name, value] of Object.entries(args)) facts[`argument ${name}`] = JSON.stringify(value);
  for (const [name, value] of Object.entries(spec.resources ?? {})) facts[name] = String(value);
  for (const [name, value] of Object.entries(spec.tags ?? {})) facts[`tag ${name}`] = String(value);
  if (job.usage) {
    facts["ran for"] = duration(job.usage.wall_seconds);
    facts["most memory"] = memory(job.usage.peak_memory_mb);
  }
  return facts;
}
