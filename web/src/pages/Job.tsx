import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useNavigate, useParams } from "react-router";
import type { Event, Job as JobFacts } from "../api/client";
import { curvesOf, stateAfter, useJob, useJobHistory, useKill, useRerun, type Curve } from "../api/jobs";
import { useNames } from "../api/members";
import { money, useBill } from "../api/spending";
import { Chart, type Line } from "../ui/Chart";
import { resourcesOf } from "../ui/Devices";
import { Failure } from "../ui/Failure";
import { count, duration, figure, memory, moment } from "../ui/format";
import { useProject } from "../ui/Frame";
import { JobCode } from "../ui/JobCode";
import { Loaded } from "../ui/Loaded";
import { Log } from "../ui/Log";
import { Notebook } from "../ui/Notebook";
import { isOver, State } from "../ui/State";
import { Tags } from "../ui/Tags";
import { Time } from "../ui/Time";

export default function Job() {
  const project = useProject();
  const id = useParams().job ?? "";
  const job = useJob(project, id);
  return <Loaded query={job}>{(found) => <Shown key={id} project={project} job={found} />}</Loaded>;
}

function Shown({ project, job }: { project: string; job: JobFacts }) {
  const navigate = useNavigate();
  const kill = useKill(project);
  const rerun = useRerun(project);
  const over = isOver(job.state);
  const base = `/p/${encodeURIComponent(project)}/jobs`;
  return (
    <>
      <header className="head">
        <h1 className="long" dir="auto">
          {job.name}
        </h1>
        <State state={job.state} wanted={job.kill_requested} />
        <span className="spring" />
        <button
          type="button"
          disabled={rerun.isPending}
          onClick={() => rerun.mutate(job.id, { onSuccess: (made) => void navigate(`${base}/${made.id}`) })}
        >
          Run again
        </button>
        {!over && (
          <button
            type="button"
            className="danger"
            disabled={kill.isPending || job.kill_requested}
            onClick={() => kill.mutate({ job: job.id, reason: "killed from the dashboard" })}
          >
            Kill
          </button>
        )}
      </header>
      {(kill.error ?? rerun.error) && <Failure error={kill.error ?? rerun.error} />}
      <Steps project={project} job={job} />
      {job.reason && (
        <p className={`notice ${job.state}`} dir="auto">
          {job.reason}
        </p>
      )}
      <Facts project={project} job={job} base={base} />
      <section>
        <h2>Tags</h2>
        <Tags project={project} kind="job" reference={job.id} />
      </section>
      <Curves project={project} job={job} />
      {job.kind === "notebook" && <Notebook job={job} />}
      <JobCode job={job} />
      <Log key={job.attempt} project={project} job={job.id} />
      <details>
        <summary>Everything it was submitted with</summary>
        <pre>{JSON.stringify(job.spec, null, 2)}</pre>
      </details>
    </>
  );
}

const PATH = ["queued", "launching", "downloading", "running", "uploading", "finished"];

/** When each step of the last attempt began. */
export function stepsOf(
  job: Pick<JobFacts, "state" | "submitted_at">,
  events: Event[],
): { state: string; at: string | null; done: boolean }[] {
  const at = new Map<string, string>([["queued", job.submitted_at]]);
  for (const event of events) {
    const state = stateAfter(event.kind);
    if (state === null) continue;
    if (state === "queued") at.clear(); // tried again: the path begins anew
    at.set(state, event.at);
  }
  const failed = job.state === "failed" || job.state === "killed";
  const path = failed ? [...PATH.slice(0, -1).filter((state) => at.has(state)), job.state] : PATH;
  const here = path.indexOf(job.state);
  return path.map((state, i) => ({ state, at: at.get(state) ?? null, done: i < here || isOver(job.state) }));
}

function Steps({ project, job }: { project: string; job: JobFacts }) {
  const history = useJobHistory(project, job.id);
  const steps = useMemo(() => stepsOf(job, history.data?.items ?? []), [job, history.data]);
  return (
    <ol className="steps" aria-label="Steps of the job">
      {steps.map((step) => (
        <li
          key={step.state}
          className={`${step.state} ${step.done ? "done" : ""}`}
          aria-current={step.state === job.state ? "step" : undefined}
        >
          <span>{step.state}</span>
          <small title={step.at ? moment(step.at) : undefined}>
            {step.at ? new Date(step.at).toLocaleTimeString() : " "}
          </small>
        </li>
      ))}
    </ol>
  );
}

function Facts({ project, job, base }: { project: string; job: JobFacts; base: string }) {
  const name = useNames(project);
  const bill = useBill(project, job.id);
  const wanted = resourcesOf(job);
  const facts: [string, React.ReactNode][] = [
    ["Id", <code key="id">{job.id}</code>],
    ["Whose", name(job.user_id)],
    ["Submitted", <Time key="t" at={job.submitted_at} />],
    ["Device", job.device ?? "–"],
    [
      "Asked for",
      `${String(wanted.vcpu)} vCPU, ${memory(Number(wanted.memory_mb))}, ${String(wanted.gpus)} GPU`,
    ],
    ["Attempt", count(job.attempt)],
    ["Exit code", job.exit_code ?? "–"],
    ["Input", job.input_set ?? "–"],
    ["Output", job.output_set ?? "–"],
  ];
  if (job.usage) {
    facts.push(["Ran for", duration(job.usage.wall_seconds)]);
    facts.push(["Processor time", duration(job.usage.cpu_seconds)]);
    facts.push(["Most memory", memory(job.usage.peak_memory_mb)]);
  }
  if (bill.data) facts.push(["Cost so far", money(bill.data.amount, bill.data.lines[0]?.currency)]);
  if (bill.data?.promised_cost != null) facts.push(["Promised cost", money(bill.data.promised_cost)]);
  if (job.progress !== null && !isOver(job.state))
    facts.push(["Progress", <progress key="p" aria-label="Progress" max={1} value={job.progress} />]);
  if (job.parent_id)
    facts.push([
      "Rerun of",
      <Link key="l" to={`${base}/${job.parent_id}`}>
        {job.parent_id}
      </Link>,
    ]);
  return (
    <dl className="facts">
      {facts.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd className="long" dir="auto">
            {value}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Curves({ project, job }: { project: string; job: JobFacts }) {
  const curves = useQuery(curvesOf(project, job.id, !isOver(job.state)));
  const drawn = useMemo(
    () =>
      (curves.data ?? []).map((curve) => ({
        ...curve,
        lines: [
          { label: curve.name, x: curve.points.map((p) => p.step), y: curve.points.map((p) => p.value) },
        ],
      })),
    [curves.data],
  );
  if (curves.error && !curves.data) return <Failure error={curves.error} />;
  if (drawn.length === 0) return null;
  const used = drawn.filter((curve) => curve.name in USED);
  const logged = drawn.filter((curve) => !(curve.name in USED));
  return (
    <>
      {used.length > 0 && (
        <section>
          <h2>Resources used over time</h2>
          <div className="charts">
            {used.map((curve) => (
              <div key={curve.name} className="card">
                <Chart title={USED[curve.name]!} lines={curve.lines} height={160} over="seconds" />
              </div>
            ))}
          </div>
        </section>
      )}
      {logged.length > 0 && <Logged curves={logged} />}
    </>
  );
}

/** The series that the platform itself keeps, in words. */
const USED: Record<string, string> = {
  "system/vcpu": "Processors in use, vCPU",
  "system/memory_mb": "Memory in use, MiB",
};

function Logged({ curves }: { curves: (Curve & { lines: Line[] })[] }) {
  return (
    <section>
      <h2>Metrics</h2>
      <div className="charts">
        {curves.map((curve) => (
          <div key={curve.name} className="card">
            <Chart title={curve.name} lines={curve.lines} />
            <p className="quiet">
              {count(curve.total)} points, last {figure(curve.points[curve.points.length - 1]?.value)}
            </p>
          </div>
        ))}
      </div>
    </section>
  );
}
