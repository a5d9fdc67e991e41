import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { Link } from "react-router";
import { answer, api } from "../api/client";
import { killedBy } from "../api/jobs";
import { problemFrom } from "../api/problem";
import { useMe } from "../session";
import { Confirm } from "../ui/Confirm";
import { plural } from "../ui/format";
import { valueOf } from "../ui/Tags";
import { isOver } from "../ui/State";
import type { Row } from "./columns";

type Outcome = { verb: string; done: number; refused: { name: string; why: string }[] };

/** What can be done with the rows that are ticked: compare, kill, run again, tag. */
export function Actions({ project, rows, onDone }: { project: string; rows: Row[]; onDone: () => void }) {
  const me = useMe();
  const queries = useQueryClient();
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const each = useMutation({
    mutationFn: async ({
      verb,
      of,
      act,
    }: {
      verb: string;
      of: Row[];
      act: (id: string) => Promise<unknown>;
    }) => {
      const refused: Outcome["refused"] = [];
      for (const row of of)
        await act(row.job.id).catch((error: unknown) =>
          refused.push({ name: row.job.name, why: problemFrom(error).message }),
        );
      setOutcome({ verb, done: of.length - refused.length, refused });
    },
    onSettled: async () => {
      onDone();
      await queries.invalidateQueries({ queryKey: [project, "jobs"] });
    },
  });
  const params = (job: string) => ({ path: { project, job } });
  const alive = rows.filter((row) => !isOver(row.job.state));
  const kill = (id: string) =>
    answer(
      api.POST("/api/v1/projects/{project}/jobs/{job}/kill", {
        params: params(id),
        body: { reason: killedBy(me.user.name) },
      }),
    );
  const rerun = (id: string) =>
    answer(api.POST("/api/v1/projects/{project}/jobs/{job}/rerun", { params: params(id), body: {} }));
  return (
    <>
      {rows.length > 0 && (
        <div className="row actions" role="group" aria-label="What to do with the chosen jobs">
          <strong>{plural(rows.length, "job")} chosen</strong>
          {rows.length > 1 && (
            <Link className="button" to={`compare?${rows.map((row) => `job=${row.job.id}`).join("&")}`}>
              Compare {rows.length}
            </Link>
          )}
          <button
            type="button"
            disabled={each.isPending}
            onClick={() => each.mutate({ verb: "submitted again", of: rows, act: rerun })}
          >
            Run again
          </button>
          <Tag
            busy={each.isPending}
            onTag={(key, value) => {
              const act = (id: string) =>
                answer(
                  api.POST("/api/v1/projects/{project}/tags", {
                    params: { path: { project } },
                    body: { kind: "job", ref: id, tags: { [key]: value } },
                  }),
                );
              each.mutate({ verb: "tagged", of: rows, act });
            }}
          />
          {alive.length > 0 && (
            <Confirm
              label={`Kill ${alive.length}`}
              title={`Kill ${plural(alive.length, "job")}`}
              disabled={each.isPending}
              onConfirm={() => each.mutate({ verb: "asked to end", of: alive, act: kill })}
            >
              <p>These end, and what they have not uploaded is lost:</p>
              <ul className="list">
                {alive.slice(0, 20).map((row) => (
                  <li key={row.job.id} dir="auto">
                    {row.job.name} of {row.job.user}
                  </li>
                ))}
                {alive.length > 20 && <li>and {alive.length - 20} more</li>}
              </ul>
            </Confirm>
          )}
          <button type="button" className="plain" onClick={onDone}>
            Choose none
          </button>
        </div>
      )}
      {outcome && (
        <div className={`notice ${outcome.refused.length > 0 ? "failed" : "finished"}`} role="status">
          {plural(outcome.done, "job")} {outcome.verb}.
          {outcome.refused.map((one) => (
            <p key={one.name} dir="auto">
              {one.name}: {one.why}
            </p>
          ))}
        </div>
      )}
    </>
  );
}

function Tag({ busy, onTag }: { busy: boolean; onTag: (key: string, value: string | number) => void }) {
  const [key, setKey] = useState("");
  const [value, setValue] = useState("");
  function submit(event: FormEvent) {
    event.preventDefault();
    onTag(key.trim(), valueOf(value));
    setKey("");
    setValue("");
  }
  return (
    <form className="row" onSubmit={submit}>
      <input
        required
        size={8}
        maxLength={64}
        aria-label="Tag of the chosen jobs"
        placeholder="tag"
        value={key}
        onChange={(e) => setKey(e.target.value)}
      />
      <input
        required
        size={8}
        aria-label="Value of the tag"
        placeholder="value"
        value={value}
        onChange={(e) => setValue(e.target.value)}
      />
      <button type="submit" disabled={busy}>
        Tag
      </button>
    </form>
  );
}
