import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { answer, api, type Event, type Job as JobFacts, type Schemas } from "../api/client";
import {
  curvesOf,
  killedBy,
  stateAfter,
  useJob,
  useJobHistory,
  useKill,
  useLinks,
  useRerun,
  type Curve,
} from "../api/jobs";
import { poolWords, heldOf, usePool } from "../api/pool";
import { money, useBill } from "../api/spending";
import { Chart, ChartBar, useView, type Line } from "../ui/Chart";
import { useMe } from "../session";
import { Confirm } from "../ui/Confirm";
import { Gauge, resourcesOf, useDevices } from "../ui/Devices";
import { Failure } from "../ui/Failure";
import { count, duration, figure, memory, moment, plural } from "../ui/format";
import { useProject } from "../ui/Frame";
import { JobCode } from "../ui/JobCode";
import { Loaded } from "../ui/Loaded";
import { Log } from "../ui/Log";
import { Notebook } from "../ui/Notebook";
import { Notes } from "../ui/Notes";
import { appPlace, DataLink, pipelinePlace, provenancePlace, studyPlace } from "../ui/places";
import { isOver, State } from "../ui/State";
import { Tags } from "../ui/Tags";
import { Time } from "../ui/Time";
import { useTitle } from "../ui/title";

type Links = Schemas["JobLinks"];

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
  const me = useMe();
  useTitle(job.name);
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
          <Confirm
            label="Kill"
            title="Kill the job"
            disabled={kill.isPending || job.kill_requested}
            onConfirm={() => kill.mutate({ job: job.id, reason: killedBy(me.user.name) })}
          >
            <p dir="auto">
              {job.name} of {job.user ?? "somebody"} ends, and what it has not uploaded is lost.
            </p>
          </Confirm>
        )}
      </header>
      {(kill.error ?? rerun.error) && <Failure error={kill.error ?? rerun.error} />}
      <Steps project={project} job={job} />
      {job.reason && (
        <p className={`notice ${job.state}`} dir="auto">
          {job.last_line && (
            <>
              <code>{job.last_line}</code>
              <br />
            </>
          )}
          {job.reason}
        </p>
      )}
      {job.waiting && <WhyItWaits project={project} job={job.id} why={job.waiting} />}
      <Facts project={project} job={job} base={base} />
      <section>
        <h2>Tags</h2>
        <Tags project={project} kind="job" reference={job.id} />
      </section>
      <Notes project={project} kind="job" reference={job.id} />
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

/** Its own reason, and the whole pool beside it: who holds what it waits for. */
function WhyItWaits({ project, job, why }: { project: string; job: string; why: string }) {
  const devices = useDevices();
  const expected = useQuery({
    queryKey: [project, "job", job, "why"],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/why/{what}", { params: { path: { project, what: job } } })),
    refetchInterval: 10_000,
  });
  const pool = usePool(project);
  return (
    <section className="notice" aria-label="Why it waits">
      <p dir="auto">
        <strong>Why it waits:</strong> {why}.
      </p>
      {expected.data?.starts_at && (
        <p>
          It starts about {moment(expected.data.starts_at)}
          {expected.data.ends_by && <>, and ends by {moment(expected.data.ends_by)} with 90 % probability</>}.
        </p>
      )}
      {pool.data && devices.data && (
        <>
          <p className="quiet">{poolWords(pool.data, devices.data)}</p>
          <div className="cards">
            {devices.data
              .filter((device) => device.connected)
              .slice(0, MOST_DEVICES)
              .map((device) => {
                const use = heldOf(pool.data, device.name);
                return (
                  <Gauge
                    key={device.name}
                    label={`${device.name}, vCPU`}
                    mine={use.mine.vcpu}
                    others={use.others.vcpu}
                    of={device.vcpu}
                    show={String}
                  />
                );
              })}
          </div>
        </>
      )}
    </section>
  );
}

const MOST_DEVICES = 12;
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
  const bill = useBill(project, job.id);
  const links = useLinks(project, job.id);
  const wanted = resourcesOf(job);
  const facts: [string, React.ReactNode][] = [
    ["Id", <code key="id">{job.id}</code>],
    ["Owner", job.user ?? "–"],
    ["Submitted", <Time key="t" at={job.submitted_at} />],
    ["Device", job.device ?? "–"],
    [
      "Asked for",
      `${String(wanted.vcpu)} vCPU, ${memory(Number(wanted.memory_mb))}, ${String(wanted.gpus)} GPU`,
    ],
    ["Attempt", count(job.attempt)],
    ["Exit code", job.exit_code ?? "–"],
    ["Code", job.code_set ? <DataLink key="c" project={project} reference={job.code_set} /> : "–"],
    ["Input", job.input_set ? <DataLink key="i" project={project} reference={job.input_set} /> : "–"],
    ["Output", job.output_set ? <DataLink key="o" project={project} reference={job.output_set} /> : "–"],
  ];
  const provenance = job.output_set ?? job.input_set;
  if (provenance)
    facts.push([
      "Provenance",
      <Link key="p" to={provenancePlace(project, provenance)}>
        {job.output_set ? "of its output" : "of its input"}
      </Link>,
    ]);
  facts.push(...linkFacts(project, links.data));
  if (job.usage) {
    facts.push(["Ran for", duration(job.usage.wall_seconds)]);
    facts.push(["Processor time", duration(job.usage.cpu_seconds)]);
    facts.push(["Most memory", memory(job.usage.peak_memory_mb)]);
  }
  if (bill.data) facts.push(["Cost so far", money(bill.data.amount, bill.data.currency)]);
  if (bill.data?.promised_cost != null)
    facts.push(["Promised cost", money(bill.data.promised_cost, bill.data.currency)]);
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

/** The apps, the study, the pipeline and the profile that it was run for. */
export function linkFacts(project: string, links: Links | undefined): [string, React.ReactNode][] {
  if (!links) return [];
  const facts: [string, React.ReactNode][] = [];
  for (const one of links.apps) {
    facts.push([
      links.apps.length > 1 ? `App ${one.app}` : "App",
      <Link key={one.app} dir="auto" to={appPlace(project, one.app, "candidates")}>
        {one.app}: {one.candidate}
      </Link>,
    ]);
    if (one.model)
      facts.push([
        links.apps.length > 1 ? `Model for ${one.app}` : "Model",
        <DataLink key={`m${one.app}`} project={project} reference={one.model} />,
      ]);
  }
  if (links.study)
    facts.push([
      "Study",
      <Link key="s" dir="auto" to={studyPlace(project, links.study.study)}>
        {links.study.study}, point {links.study.number}
      </Link>,
    ]);
  if (links.pipeline)
    facts.push([
      "Pipeline",
      <Link key="l" dir="auto" to={pipelinePlace(project, links.pipeline.pipeline)}>
        {links.pipeline.name}, step {links.pipeline.step}
      </Link>,
    ]);
  if (links.profile)
    facts.push([
      "Profile",
      <Link
        key="f"
        dir="auto"
        to={`/p/${encodeURIComponent(project)}/provision?profile=${encodeURIComponent(links.profile)}`}
      >
        {links.profile}
      </Link>,
    ]);
  return facts;
}

function Curves({ project, job }: { project: string; job: JobFacts }) {
  const curves = useQuery(curvesOf(project, job.id, !isOver(job.state)));
  const drawn = useMemo(
    () =>
      (curves.data ?? []).map((curve) => ({
        ...curve,
        lines: [{ label: curve.name, points: curve.points }],
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
                <Chart {...USED[curve.name]!} lines={curve.lines} height={190} over="seconds" group="used" />
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
const USED: Record<string, { title: string; unit: string }> = {
  "system/vcpu": { title: "Processors in use", unit: "vCPU" },
  "system/memory_mb": { title: "Memory in use", unit: "MB" },
  "system/gpu": { title: "GPUs in use", unit: "of their time" },
  "system/gpu_idle": { title: "GPUs held idle so far", unit: "GPU-seconds" },
};

function Logged({ curves }: { curves: (Curve & { lines: Line[] })[] }) {
  const [view, setView] = useView();
  return (
    <section>
      <h2>Metrics</h2>
      <ChartBar view={view} onChange={setView} />
      <div className="charts">
        {curves.map((curve) => (
          <div key={curve.name} className="card">
            <Chart title={curve.name} lines={curve.lines} view={view} group="metrics" />
            <p className="quiet">
              {plural(curve.total, "point")}, last {figure(curve.points[curve.points.length - 1]?.value)}
            </p>
          </div>
        ))}
      </div>
    </section>
  );
}
