import { useQueries, useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { Link } from "react-router";
import { alertsOf, type Alert } from "../alerts";
import { answer, api, type Job } from "../api/client";
import { ACTIVE, useCounts } from "../api/jobs";
import { midnight, useBudget } from "../api/spending";
import { BudgetCard } from "../ui/BudgetCard";
import { DeviceTable, useDevices } from "../ui/Devices";
import { EventList } from "../ui/Events";
import { FirstSteps } from "../ui/FirstSteps";
import { count } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { jobPlace } from "../ui/places";
import { Queues, useQueues } from "../ui/Queues";
import { State } from "../ui/State";
import { Time } from "../ui/Time";

// Drawn with a library that the rest of the page does not wait for.
const Happiness = lazy(() => import("../apps/Happiness"));
const PoolHistory = lazy(() => import("../ui/PoolHistory"));

/** The pool now, who waits, what runs where, what just happened: all of it live. */
export default function Overview() {
  const project = useProject();
  const base = `/p/${encodeURIComponent(project)}`;
  const running = useQuery({
    queryKey: [project, "job", "busy"],
    queryFn: () => inStates(project, ACTIVE, 100),
  });
  const failed = useQuery({
    queryKey: [project, "job", "failed"],
    queryFn: () => inStates(project, ["failed"], 20),
  });
  const waiting = useQuery({
    queryKey: [project, "job", "waiting"],
    queryFn: () => inStates(project, ["queued"], 20),
  });
  const queues = useQueues(project);
  const devices = useDevices();
  const events = useQuery({
    queryKey: [project, "events"],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/events", { params: { path: { project }, query: { limit: 15 } } }),
      ),
  });
  const budget = useBudget(project, midnight(new Date()));
  const counts = useCounts(project);
  const ofState = (...states: string[]) =>
    counts.data && states.reduce((sum, state) => sum + (counts.data.states[state] ?? 0), 0);
  const alerts = alertsOf(
    {
      budget: budget.data,
      devices: devices.data,
      paused: queues.data?.filter((queue) => queue.paused).map((queue) => queue.user) ?? [],
      waiting: waiting.data ?? [],
      failed: failed.data ?? [],
    },
    Date.now(),
  );
  return (
    <>
      <header className="head">
        <h1 dir="auto">{project}</h1>
      </header>
      <div className="numbers">
        <Number label="running" value={ofState(...ACTIVE)} to={`${base}/jobs?state=active`} />
        <Number label="waiting" value={ofState("queued")} to={`${base}/jobs?state=queued`} />
        <Number label="finished" value={ofState("finished")} to={`${base}/jobs?state=finished`} />
        <Number label="failed" value={ofState("failed")} to={`${base}/jobs?state=failed`} />
        {budget.data && <BudgetCard budget={budget.data} />}
      </div>
      <Alerts alerts={alerts} base={base} />
      <FirstSteps project={project} />
      <section>
        <h2>Pool</h2>
        <DeviceTable running={running.data ?? []} />
        <Suspense fallback={null}>
          <PoolHistory project={project} />
        </Suspense>
      </section>
      <Suspense fallback={null}>
        <Happiness project={project} />
      </Suspense>
      <div className="columns">
        <section>
          <h2>Running now</h2>
          <Loaded query={running}>
            {(jobs) => <JobList jobs={jobs} project={project} none="Nothing runs." />}
          </Loaded>
          <h2>Waiting</h2>
          <Loaded query={waiting}>{(jobs) => <Waiting project={project} jobs={jobs} />}</Loaded>
          <h2>Queue</h2>
          <Queues project={project} />
          <h2>Failed last</h2>
          <Loaded query={failed}>
            {(jobs) => <JobList jobs={jobs.slice(0, 5)} project={project} none="Nothing failed." />}
          </Loaded>
        </section>
        <section>
          <h2>What happened</h2>
          <Loaded query={events}>{(page) => <EventList events={page.items} />}</Loaded>
        </section>
      </div>
    </>
  );
}

async function inStates(project: string, states: string[], limit: number): Promise<Job[]> {
  const query = { filter: [`state:in:${states.join(",")}`], limit };
  const page = await answer(
    api.GET("/api/v1/projects/{project}/jobs", { params: { path: { project }, query } }),
  );
  return page.items;
}

function Alerts({ alerts, base }: { alerts: Alert[]; base: string }) {
  if (alerts.length === 0) return null;
  return (
    <ul className="alerts" aria-label="Alerts">
      {alerts.map((alert) => (
        <li key={alert.key} className={`notice ${alert.grave ? "failed" : ""}`}>
          <span dir="auto">{alert.text}</span> {alert.to && <Link to={`${base}/${alert.to}`}>View</Link>}
        </li>
      ))}
    </ul>
  );
}

function Number({ label, value, to }: { label: string; value: number | undefined; to: string }) {
  return (
    <Link className="card big" to={to}>
      <strong>{value === undefined ? "…" : count(value)}</strong> {label}
    </Link>
  );
}

const MOST_EXPLAINED = 5;

/** The jobs that wait longest, each with its reason. */
function Waiting({ project, jobs }: { project: string; jobs: Job[] }) {
  const first = [...jobs].reverse().slice(0, MOST_EXPLAINED);
  const told = useQueries({
    queries: first.map((job) => ({
      queryKey: [project, "job", job.id],
      queryFn: () =>
        answer(
          api.GET("/api/v1/projects/{project}/jobs/{job}", { params: { path: { project, job: job.id } } }),
        ),
    })),
  });
  if (jobs.length === 0) return <p className="quiet">Nothing waits.</p>;
  return (
    <ul className="list">
      {first.map((job, i) => (
        <li key={job.id}>
          <Link className="long" dir="auto" to={jobPlace(project, job.id)}>
            {job.name}
          </Link>{" "}
          <span className="quiet">
            {job.user}, <Time at={job.submitted_at} />
            {told[i]?.data?.waiting && `: ${told[i].data.waiting}`}
          </span>
        </li>
      ))}
      {jobs.length > first.length && (
        <li>
          <Link to={`/p/${encodeURIComponent(project)}/jobs?state=queued`}>All that wait</Link>
        </li>
      )}
    </ul>
  );
}

function JobList({ jobs, project, none }: { jobs: Job[]; project: string; none: string }) {
  if (jobs.length === 0) return <p className="quiet">{none}</p>;
  return (
    <ul className="list">
      {jobs.map((job) => (
        <li key={job.id}>
          <Link className="long" dir="auto" to={`/p/${encodeURIComponent(project)}/jobs/${job.id}`}>
            {job.name}
          </Link>{" "}
          <State state={job.state} wanted={job.kill_requested} />
          <span className="quiet">
            {job.user ?? "–"} · {job.device ?? "no device"} · <Time at={job.started_at ?? job.submitted_at} />
          </span>
        </li>
      ))}
    </ul>
  );
}
