import type { ColumnDef } from "@tanstack/react-table";
import { useDeferredValue, useMemo, useState } from "react";
import { Link, useSearchParams } from "react-router";
import type { Job } from "../api/client";
import { STATES, useCounts, useJobs } from "../api/jobs";
import { useMembers, useNames } from "../api/members";
import { NewJob } from "../ui/NewJob";
import { Failure } from "../ui/Failure";
import { count, duration } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Grid } from "../ui/Grid";
import { State } from "../ui/State";
import { Time } from "../ui/Time";

const SORTABLE = ["name", "state", "submitted_at"];
const MOST_COMPARED = 8;

/** The address holds the filters, so that a view can be sent to somebody. */
export default function Jobs() {
  const project = useProject();
  const [address, setAddress] = useSearchParams();
  const [chosen, setChosen] = useState<string[]>([]);
  const [creating, setCreating] = useState(false);
  const get = (name: string) => address.get(name) ?? "";
  const wanted = {
    name: useDeferredValue(get("name")),
    state: get("state"),
    user: get("user"),
    sort: get("sort") || "-submitted_at",
  };
  const set = (name: string, value: string) =>
    setAddress(
      (old) => {
        const next = new URLSearchParams(old);
        if (value) next.set(name, value);
        else next.delete(name);
        return next;
      },
      { replace: true },
    );
  const list = useJobs(project, wanted);
  const members = useMembers(project);
  const columns = useColumns(project, chosen, setChosen);
  const counts = useCounts(project);
  const filtered = wanted.name !== "" || wanted.state !== "" || wanted.user !== "";
  const more = () => void list.fetchNextPage();

  return (
    <div className="tall">
      <header className="head">
        <h1>Jobs</h1>
        <span className="quiet" role="status">
          {list.data &&
            `${count(list.jobs.length)}${list.hasNextPage ? ` of ${filtered || !counts.data ? "more" : count(counts.data.total)}` : ""}`}
        </span>
        <span className="spring" />
        {chosen.length > 1 && (
          <Link className="button" to={`compare?${chosen.map((id) => `job=${id}`).join("&")}`}>
            Compare {chosen.length}
          </Link>
        )}
        <button type="button" className="primary" onClick={() => setCreating(true)}>
          New job
        </button>
      </header>
      <form className="row filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label className="wide">
          Name contains
          <input type="search" value={get("name")} onChange={(e) => set("name", e.target.value)} />
        </label>
        <label>
          State
          <select value={wanted.state} onChange={(e) => set("state", e.target.value)}>
            <option value="">any</option>
            {STATES.map((state) => (
              <option key={state}>{state}</option>
            ))}
          </select>
        </label>
        <label>
          Whose
          <select value={wanted.user} onChange={(e) => set("user", e.target.value)}>
            <option value="">everybody's</option>
            {members.data?.map((member) => (
              <option key={member.id} value={member.id}>
                {member.name}
              </option>
            ))}
          </select>
        </label>
      </form>
      {list.error && <Failure error={list.error} again={() => void list.refetch()} />}
      {list.data && list.jobs.length === 0 ? (
        <p className="quiet">
          {address.size > 0 ? "No job fits these filters." : "No job yet: submit one here or with easel run."}
        </p>
      ) : (
        <Grid
          label="Jobs"
          rows={list.jobs}
          columns={columns}
          rowId={(job) => job.id}
          sort={wanted.sort}
          onSort={(sort) => set("sort", sort)}
          sortable={SORTABLE}
          hasMore={list.hasNextPage}
          isFetching={list.isFetching}
          onMore={more}
        />
      )}
      {creating && <NewJob project={project} onClose={() => setCreating(false)} />}
    </div>
  );
}

function useColumns(project: string, chosen: string[], setChosen: (ids: string[]) => void): ColumnDef<Job>[] {
  const name = useNames(project);
  return useMemo(
    () => [
      {
        id: "compare",
        size: 44,
        header: () => <span className="unseen">Compare</span>,
        cell: ({ row }) => {
          const id = row.original.id;
          const on = chosen.includes(id);
          return (
            <input
              type="checkbox"
              aria-label={`Compare ${row.original.name}, ${id}`}
              checked={on}
              disabled={!on && chosen.length >= MOST_COMPARED}
              onChange={() => setChosen(on ? chosen.filter((other) => other !== id) : [...chosen, id])}
            />
          );
        },
      },
      {
        id: "name",
        header: "Job",
        size: 260,
        cell: ({ row: { original: job } }) => (
          <Link
            className="clip"
            dir="auto"
            title={job.name}
            to={`/p/${encodeURIComponent(project)}/jobs/${job.id}`}
          >
            {job.name}
          </Link>
        ),
      },
      {
        id: "state",
        header: "State",
        size: 110,
        cell: ({ row: { original: job } }) => <State state={job.state} wanted={job.kill_requested} />,
      },
      {
        id: "user",
        header: "Whose",
        size: 100,
        cell: ({ row }) => <span className="clip">{name(row.original.user_id)}</span>,
      },
      {
        id: "submitted_at",
        header: "Submitted",
        size: 110,
        cell: ({ row }) => <Time at={row.original.submitted_at} />,
      },
      {
        id: "ran",
        header: "Ran",
        size: 100,
        cell: ({ row: { original: job } }) => (job.usage ? duration(job.usage.wall_seconds) : "–"),
      },
      {
        id: "device",
        header: "Device",
        size: 100,
        cell: ({ row }) => <span className="clip">{row.original.device ?? "–"}</span>,
      },
      {
        id: "reason",
        header: "Reason",
        size: 136,
        cell: ({ row }) => (
          <span className="clip" dir="auto" title={row.original.reason ?? undefined}>
            {row.original.reason ?? ""}
          </span>
        ),
      },
    ],
    [project, chosen, setChosen, name],
  );
}
