import type { ColumnDef } from "@tanstack/react-table";
import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { Link, useLocation, useNavigationType, useSearchParams } from "react-router";
import { STATES, useCounts, useJobTable } from "../api/jobs";
import { useMembers } from "../api/members";
import { Actions } from "../jobs/Actions";
import { ChooseColumns } from "../jobs/Columns";
import {
  cellOf,
  columnsIn,
  exported,
  FIRST,
  grouped,
  meanOf,
  sortField,
  titleOfColumn,
  type Group,
  type Row,
} from "../jobs/columns";
import { Failure } from "../ui/Failure";
import { count, figure, plural } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Grid } from "../ui/Grid";
import { NewJob } from "../ui/NewJob";
import { DataLink, jobPlace } from "../ui/places";
import { keepPlace, useRemembered } from "../ui/remembered";
import { csvOf, save } from "../ui/save";
import { State } from "../ui/State";
import { Time } from "../ui/Time";

/** Where the page itself must see all rows, to group or to sort by what the server does not know. */
const MOST_AT_ONCE = 1000;
const MOST_EXPORTED = 10_000;
const DEFAULT_SORT = "-submitted_at";
type Item = Row | Group;

/** The address holds filters, columns, order and groups, so that a view can be sent to somebody. */
export default function Jobs() {
  const project = useProject();
  const [address, setAddress] = useSearchParams();
  const { pathname, search } = useLocation();
  const back = useNavigationType() === "POP";
  const [chosen, setChosen] = useRemembered<string[]>(`chosen ${project}`, NONE);
  const [dialog, setDialog] = useState<"new" | "columns" | null>(null);
  const [saving, setSaving] = useState(false);
  const get = (name: string) => address.get(name) ?? "";
  const group = get("group");
  const sort = get("sort") || DEFAULT_SORT;
  const shown = useMemo(() => address.get("columns")?.split(",").filter(Boolean) ?? FIRST, [address]);
  const served = sortField(sort.replace(/^-/, ""));
  const wanted = {
    name: useDeferredValue(get("name")),
    state: get("state"),
    user: get("user"),
    where: useDeferredValue(get("where")),
    sort: served === null ? DEFAULT_SORT : sort.startsWith("-") ? `-${served}` : served,
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
  const list = useJobTable(project, wanted);
  const { rows, hasNextPage, isFetching, fetchNextPage } = list;
  const needsAll = group !== "" || served === null;
  useEffect(() => {
    if (needsAll && hasNextPage && !isFetching && rows.length < MOST_AT_ONCE) void fetchNextPage();
  }, [needsAll, hasNextPage, isFetching, rows.length, fetchNextPage]);
  const place = `${pathname}${search}`;
  useEffect(() => {
    if (!back) keepPlace(place, 0);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- only what the page was opened with counts
  }, []);

  const sorted = useMemo(() => (served === null ? byColumn(rows, sort) : rows), [served, rows, sort]);
  const items = useMemo<Item[]>(
    () => (group ? grouped(sorted, group).flatMap((one) => [one, ...one.rows]) : sorted),
    [group, sorted],
  );
  const offered = useMemo(() => columnsIn(rows), [rows]);
  const columns = useColumns(project, shown, chosen, setChosen);
  const members = useMembers(project);
  const counts = useCounts(project);
  const filtered = [wanted.name, wanted.state, wanted.user, wanted.where].some(Boolean);
  const ticked = rows.filter((row) => chosen.includes(row.job.id));

  async function exportRows() {
    setSaving(true);
    try {
      let all = rows;
      while (all.length < MOST_EXPORTED) {
        const next = await fetchNextPage();
        all = next.data?.pages.flatMap((page) => page.items) ?? all;
        if (!next.hasNextPage) break;
      }
      const order = served === null ? byColumn(all, sort) : all;
      save(`${project}-jobs.csv`, csvOf(exported(order, shown)));
    } finally {
      setSaving(false);
    }
  }

  return (
    <div className="tall">
      <header className="head">
        <h1>Jobs</h1>
        <span className="quiet" role="status">
          {list.data &&
            `${count(rows.length)}${hasNextPage ? ` of ${filtered || !counts.data ? "more" : count(counts.data.total)}` : ""}`}
          {needsAll &&
            hasNextPage &&
            rows.length >= MOST_AT_ONCE &&
            ` (${group ? "grouped" : "sorted"} among these)`}
        </span>
        <span className="spring" />
        <button type="button" onClick={() => setDialog("columns")}>
          Columns
        </button>
        <button type="button" disabled={saving || rows.length === 0} onClick={() => void exportRows()}>
          Download CSV
        </button>
        <button type="button" className="primary" onClick={() => setDialog("new")}>
          New job
        </button>
      </header>
      <form className="row filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label className="wide">
          Name contains
          <input type="search" value={get("name")} onChange={(e) => set("name", e.target.value)} />
        </label>
        <label className="wide">
          Tags and metrics
          <input
            type="search"
            value={get("where")}
            placeholder="accuracy > 0.9"
            onChange={(e) => set("where", e.target.value)}
          />
        </label>
        <label>
          State
          <select value={wanted.state} onChange={(e) => set("state", e.target.value)}>
            <option value="">any</option>
            <option value="active">active</option>
            {STATES.map((state) => (
              <option key={state}>{state}</option>
            ))}
          </select>
        </label>
        <label>
          Owner
          <select value={wanted.user} onChange={(e) => set("user", e.target.value)}>
            <option value="">everybody</option>
            {members.data?.map((member) => (
              <option key={member.id} value={member.id}>
                {member.name}
              </option>
            ))}
          </select>
        </label>
        <label>
          Group by
          <select value={group} onChange={(e) => set("group", e.target.value)}>
            <option value="">nothing</option>
            {["name", ...offered].map((column) => (
              <option key={column} value={column}>
                {column === "name" ? "Name" : titleOfColumn(column)}
              </option>
            ))}
          </select>
        </label>
      </form>
      <Actions project={project} rows={ticked} onDone={() => setChosen(NONE)} />
      {list.error && <Failure error={list.error} again={() => void list.refetch()} />}
      {list.data && rows.length === 0 ? (
        <p className="quiet">
          {filtered ? "No job fits these filters." : "No job yet: submit one here or with easel run."}
        </p>
      ) : (
        <Grid
          label="Jobs"
          rows={items}
          columns={columns}
          rowId={(item) => ("group" in item ? `group ${item.group}` : item.job.id)}
          sort={sort}
          onSort={(next) => set("sort", next)}
          sortable={["name", ...shown]}
          hasMore={hasNextPage && !needsAll}
          isFetching={isFetching}
          onMore={() => void fetchNextPage()}
          place={place}
        />
      )}
      {dialog === "new" && <NewJob project={project} onClose={() => setDialog(null)} />}
      {dialog === "columns" && (
        <ChooseColumns
          shown={shown}
          all={offered}
          onChange={(next) => set("columns", next.join(","))}
          onClose={() => setDialog(null)}
        />
      )}
    </div>
  );
}

const NONE: string[] = [];

/** By a column that only the page knows; what has no value comes last. */
export function byColumn(rows: Row[], sort: string): Row[] {
  const column = sort.replace(/^-/, "");
  const way = sort.startsWith("-") ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [one, two] = [cellOf(a, column).value, cellOf(b, column).value];
    if (one === null || two === null) return Number(one === null) - Number(two === null);
    if (typeof one === "number" && typeof two === "number") return way * (one - two);
    return way * String(one).localeCompare(String(two));
  });
}

function useColumns(
  project: string,
  shown: string[],
  chosen: string[],
  setChosen: (ids: string[]) => void,
): ColumnDef<Item>[] {
  return useMemo(() => {
    const tick: ColumnDef<Item> = {
      id: "choose",
      size: 44,
      header: () => <span className="unseen">Choose</span>,
      cell: ({ row: { original: item } }) => {
        const ids = "group" in item ? item.rows.map((row) => row.job.id) : [item.job.id];
        const on = ids.every((id) => chosen.includes(id));
        return (
          <input
            type="checkbox"
            aria-label={
              "group" in item ? `Choose all of ${item.group}` : `Choose ${item.job.name}, ${item.job.id}`
            }
            checked={on}
            onChange={() => {
              const others = chosen.filter((id) => !ids.includes(id));
              setChosen(on ? others : [...others, ...ids]);
            }}
          />
        );
      },
    };
    const name: ColumnDef<Item> = {
      id: "name",
      header: "Job",
      size: 260,
      cell: ({ row: { original: item } }) =>
        "group" in item ? (
          <strong className="clip" dir="auto">
            {item.group} ({plural(item.rows.length, "job")})
          </strong>
        ) : (
          <Link className="clip" dir="auto" title={item.job.name} to={jobPlace(project, item.job.id)}>
            {item.job.name}
          </Link>
        ),
    };
    const others = shown.map((column): ColumnDef<Item> => ({
      id: column,
      header: titleOfColumn(column),
      size: WIDTHS[column] ?? 110,
      cell: ({ row: { original: item } }) =>
        "group" in item ? (
          <Mean rows={item.rows} column={column} />
        ) : (
          <Value project={project} row={item} column={column} />
        ),
    }));
    return [tick, name, ...others];
  }, [project, shown, chosen, setChosen]);
}

const WIDTHS: Record<string, number> = { state: 130, cost: 140, reason: 160, input: 160, output: 160 };

function Mean({ rows, column }: { rows: Row[]; column: string }) {
  const found = meanOf(rows, column);
  return found && <span title={`Mean of ${found.of}`}>⌀ {figure(found.mean)}</span>;
}

function Value({ project, row, column }: { project: string; row: Row; column: string }) {
  const { job } = row;
  if (column === "state") return <State state={job.state} wanted={job.kill_requested} />;
  if (column === "submitted_at") return <Time at={job.submitted_at} />;
  if (column === "input" && job.input_set) return <DataLink project={project} reference={job.input_set} />;
  if (column === "output" && job.output_set) return <DataLink project={project} reference={job.output_set} />;
  const { text } = cellOf(row, column);
  return (
    <span className="clip" dir="auto" title={text}>
      {text}
    </span>
  );
}
