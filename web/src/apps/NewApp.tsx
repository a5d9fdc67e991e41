import { useMutation } from "@tanstack/react-query";
import { useEffect, useState, type FormEvent } from "react";
import { useNavigate } from "react-router";
import { useMatch } from "../api/apps";
import { answer, api, type Schemas } from "../api/client";
import { problemFrom } from "../api/problem";
import { Dialog } from "../ui/Dialog";
import { Drop } from "../ui/Drop";
import { Failure } from "../ui/Failure";
import { duration, plural } from "../ui/format";
import { proposalOf } from "./propose";

const EXAMPLE = "{input: {[Tensor[28, 28, 1]], []}, output: {[Category[cat, dog]], []}}";

/** What goes in and what comes out, written or read off some data; checked while it is written. */
export function NewApp({ project, onClose }: { project: string; onClose: () => void }) {
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [program, setProgram] = useState("");
  const [metric, setMetric] = useState("");
  const settled = useSettled(program, 300);
  const match = useMatch(settled);
  const propose = useMutation({
    mutationFn: (seen: Schemas["ProposeProgram"]) =>
      answer(api.POST("/api/v1/programs/propose", { body: seen })),
    onSuccess: (found) => setProgram(found.program),
  });
  const look = useMutation({
    mutationFn: proposalOf,
    onSuccess: (seen) => propose.mutate(seen),
  });
  const create = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/projects/{project}/apps", {
          params: { path: { project } },
          body: { name, program, metric: metric || null },
        }),
      ),
    onSuccess: (made) =>
      navigate(`/p/${encodeURIComponent(project)}/apps/${encodeURIComponent(made.name)}?tab=examples`),
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    create.mutate();
  }
  const columns = look.data?.header ?? [];
  const wrong = match.error && settled.trim() ? problemFrom(match.error).message : null;
  const metrics = match.data?.metrics ?? [];
  return (
    <Dialog title="New app" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label>
          Name
          <input
            required
            maxLength={64}
            value={name}
            onChange={(e) => setName(e.target.value)}
            placeholder="flowers"
          />
        </label>
        <Drop
          folders
          busy={look.isPending || propose.isPending}
          progress={null}
          onFiles={(files) => look.mutate(files)}
        >
          <span>
            Infer the program: drop a table (CSV), or a folder of pictures with one folder for each class, or
          </span>
        </Drop>
        {(look.error ?? propose.error) && <Failure error={look.error ?? propose.error} />}
        {look.data && columns.length > 1 && (
          <label>
            Predict the column
            <select
              value={propose.data?.target ?? ""}
              onChange={(e) => propose.mutate({ ...look.data, target: e.target.value })}
            >
              {columns.map((column) => (
                <option key={column}>{column}</option>
              ))}
            </select>
          </label>
        )}
        {propose.data && (
          <ul className="quiet" aria-label="Why this program">
            {propose.data.reasons.slice(0, 8).map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        )}
        <label>
          Program
          <textarea
            required
            rows={5}
            spellCheck={false}
            value={program}
            placeholder={EXAMPLE}
            aria-invalid={wrong !== null}
            aria-describedby="checked"
            onChange={(e) => setProgram(e.target.value)}
          />
        </label>
        <div id="checked" role="status">
          {wrong ? (
            <pre className="wrong">{wrong}</pre>
          ) : (
            match.data && program.trim() && <Matched found={match.data} />
          )}
        </div>
        {metrics.length > 0 && !wrong && (
          <label>
            Judged by
            <select value={metric} onChange={(e) => setMetric(e.target.value)}>
              {metrics.map((one, i) => (
                <option key={one} value={i === 0 ? "" : one}>
                  {one}
                </option>
              ))}
            </select>
          </label>
        )}
        {create.error && <Failure error={create.error} />}
        <button type="submit" className="primary" disabled={create.isPending || wrong !== null}>
          Create the app
        </button>
      </form>
    </Dialog>
  );
}

function Matched({ found }: { found: NonNullable<ReturnType<typeof useMatch>["data"]> }) {
  return (
    <>
      <p>
        Matches <strong>{found.template}</strong> ({found.task}):{" "}
        {plural(found.candidates.length, "candidate")}.
      </p>
      <details>
        <summary>The candidates, with seconds for a thousand examples</summary>
        <ul className="list some">
          {found.candidates.map((candidate) => (
            <li key={candidate.name}>
              {candidate.name} <span className="quiet">{duration(candidate.cost_s)}</span>
            </li>
          ))}
        </ul>
      </details>
    </>
  );
}

/** A value that has not changed for a while. */
function useSettled(value: string, ms: number): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
