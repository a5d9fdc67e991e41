import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { answer, api, type Job } from "../api/client";
import { useNames } from "../api/members";
import { useBudget } from "../api/spending";
import { BudgetCard } from "../ui/BudgetCard";
import { DeviceTable } from "../ui/Devices";
import { EventList } from "../ui/Events";
import { count } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { Queues, useQueues } from "../ui/Queues";
import { State } from "../ui/State";
import { Time } from "../ui/Time";

const BUSY = ["launching", "downloading", "running", "uploading"];

/** The pool now, who waits, what runs where, what just happened: all of it live. */
export default function Overview() {
  const project = useProject();
  const base = `/p/${encodeURIComponent(project)}`;
  const running = useQuery({
    queryKey: [project, "job", "busy"],
    queryFn: async () => {
      const pages = await Promise.all(BUSY.map((state) => inState(project, state, 100)));
      return pages.flat();
    },
  });
  const failed = useQuery({
    queryKey: [project, "job", "failed"],
    queryFn: () => inState(project, "failed", 5),
  });
  const queues = useQueues(project);
  const events = useQuery({
    queryKey: [project, "events"],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/events", { params: { path: { project }, query: { limit: 15 } } }),
      ),
  });
  const budget = useBudget(project);
  const waiting = queues.data?.reduce((sum, queue) => sum + queue.queued, 0);
  const paused = queues.data?.filter((queue) => queue.paused) ?? [];
  return (
    <>
      <header className="head">
        <h1 dir="auto">{project}</h1>
      </header>
      <div className="numbers">
        <Number label="running" value={running.data?.length} to={`${base}/jobs?state=running`} />
        <Number label="waiting" value={waiting} to={`${base}/jobs?state=queued`} />
        {budget.data && <BudgetCard budget={budget.data} />}
      </div>
      {paused.length > 0 && (
        <p className="notice" role="status">
          Paused: {paused.map((queue) => queue.user).join(", ")}. Their jobs wait until an admin resumes the queue.
        </p>
      )}
      <section>
        <h2>Pool</h2>
        <DeviceTable running={running.data} />
      </section>
      <div className="columns">
        <section>
          <h2>Running now</h2>
          <Loaded query={running}>{(jobs) => <JobList jobs={jobs} project={project} none="Nothing runs." />}</Loaded>
          <h2>Queue</h2>
          <Queues project={project} />
          <h2>Failed last</h2>
          <Loaded query={failed}>{(jobs) => <JobList jobs={jobs} project={project} none="Nothing failed." />}</Loaded>
        </section>
        <section>
          <h2>What happened</h2>
          <Loaded query={events}>{(page) => <EventList events={page.items} />}</Loaded>
        </section>
      </div>
    </>
  );
}

async function inState(project: string, state: string, limit: number): Promise<Job[]> {
  const query = { filter: [`state:eq:${state}`], limit };
  const page = await answer(api.GET("/api/v1/projects/{project}/jobs", { params: { path: { project }, query } }));
  return page.items;
}

function Number({ label, value, to }: { label: string; value: number | undefined; to: string }) {
  return (
    <Link className="card big" to={to}>
      <strong>{value === undefined ? "…" : count(value)}</strong> {label}
    </Link>
  );
}

function JobList({ jobs, project, none }: { jobs: Job[]; project: string; none: string }) {
  const name = useNames(project);
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
            {name(job.user_id)} · {job.device ?? "no device"} · <Time at={job.started_at ?? job.submitted_at} />
          </span>
        </li>
      ))}
    </ul>
  );
}
