import { keepPreviousData, useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { plural } from "../ui/format";
import { useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import { Failure } from "../ui/Failure";
import { useProject } from "../ui/Frame";
import { Time } from "../ui/Time";

/** Who did what: of one project, or for platform admins of the whole installation. */
export default function Audit() {
  const project = useProject();
  const [who, setWho] = useState("");
  const [path, setPath] = useState("");
  const [outcome, setOutcome] = useState("");
  const filter = [
    who && `actor_name:prefix:${who}`,
    path && `path:contains:${path}`,
    outcome && `outcome:eq:${outcome}`,
  ].filter(Boolean);
  const found = useInfiniteQuery({
    queryKey: [project, "audit", filter],
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor }): Promise<Schemas["Page_AuditEntry_"]> => {
      const query = { limit: 100, cursor, filter };
      return project
        ? answer(api.GET("/api/v1/projects/{project}/audit", { params: { path: { project }, query } }))
        : answer(api.GET("/api/v1/audit", { params: { query } }));
    },
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  const entries = found.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <>
      <header className="head">
        <h1>Audit</h1>
        {!project && <a href="/api/v1/audit/export">Export as JSON lines</a>}
      </header>
      {!project && <Verify />}
      <form className="row" onSubmit={(event) => event.preventDefault()}>
        <label>
          Who
          <input value={who} maxLength={64} onChange={(e) => setWho(e.target.value)} />
        </label>
        <label className="wide">
          Part of the address
          <input value={path} maxLength={200} onChange={(e) => setPath(e.target.value)} />
        </label>
        <label>
          Outcome
          <select value={outcome} onChange={(e) => setOutcome(e.target.value)}>
            <option value="">any</option>
            <option value="allowed">allowed</option>
            <option value="refused">refused</option>
            <option value="failed">failed</option>
            <option value="unanswered">unanswered</option>
          </select>
        </label>
      </form>
      {found.error && <Failure error={found.error} again={() => void found.refetch()} />}
      <div className="scroll" role="region" aria-label="Entries" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">Who</th>
              <th scope="col">From</th>
              <th scope="col">What</th>
              <th scope="col">Outcome</th>
            </tr>
          </thead>
          <tbody>
            {entries.map((entry) => (
              <tr key={entry.seq}>
                <td>
                  <Time at={entry.at} />
                </td>
                <td dir="auto" title={entry.token ?? undefined}>
                  {entry.actor_name ?? (entry.token ? "a worker" : "nobody")}
                </td>
                <td>{entry.address || "–"}</td>
                <td className="long">
                  <code>
                    {entry.method} {entry.path || entry.route}
                  </code>
                  {entry.count > 1 && ` × ${entry.count}`}
                </td>
                <td>
                  {entry.outcome} {entry.status > 0 && entry.status}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {entries.length === 0 && !found.isPending && <p className="quiet">Nothing was found.</p>}
      </div>
      {found.hasNextPage && (
        <button type="button" disabled={found.isFetching} onClick={() => void found.fetchNextPage()}>
          Earlier
        </button>
      )}
    </>
  );
}

function Verify() {
  const check = useMutation({ mutationFn: () => answer(api.GET("/api/v1/audit/verify")) });
  return (
    <section>
      <button type="button" disabled={check.isPending} onClick={() => check.mutate()}>
        {check.isPending ? "Checking…" : "Check the chain"}
      </button>{" "}
      {check.data &&
        (check.data.whole ? (
          <span role="status">
            Whole: {plural(check.data.entries, "entry", "entries")}. Last hash{" "}
            <code>{check.data.hash.slice(0, 16)}…</code>
          </span>
        ) : (
          <strong role="alert">
            Broken at entry {check.data.broken_at}: {check.data.why}
          </strong>
        ))}
      {check.error && <Failure error={check.error} />}
    </section>
  );
}
