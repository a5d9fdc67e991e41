import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Job, type Schemas } from "../api/client";
import { FileDiff } from "./FileDiff";
import { useProject } from "./Frame";
import { Loaded } from "./Loaded";

type Difference = Schemas["Difference"];
const MOST = 200;

/** The code that a job ran, where it came from, and what differs from another job's. */
export function JobCode({ job }: { job: Job }) {
  const project = useProject();
  const [other, setOther] = useState("");
  const code = job.code_set;
  if (!code || code.startsWith("/")) return null;
  const origin = (job.spec as { origin?: Record<string, unknown> | null }).origin;
  const commit = typeof origin?.commit === "string" ? origin.commit : "";
  const branch = typeof origin?.branch === "string" ? origin.branch : "";
  return (
    <section aria-label="Code">
      <h2>Code</h2>
      <p>
        <a href={`/p/${encodeURIComponent(project)}/lake/sets`}>{code}</a>
        {commit && (
          <>
            , commit <code>{commit.slice(0, 12)}</code>
            {branch && ` of ${branch}`}
            {origin?.changed === true && ", with changes that were not committed"}
          </>
        )}
      </p>
      <Files project={project} code={code} />
      <Others project={project} job={job} code={code} other={other} onOther={setOther} />
      {other && <Differences project={project} before={other} after={code} />}
    </section>
  );
}

function Files({ project, code }: { project: string; code: string }) {
  const [open, setOpen] = useState(false);
  const files = useQuery({
    enabled: open,
    queryKey: [project, "code", code],
    staleTime: Infinity, // versions never change
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/files", {
          params: { path: { project }, query: { ref: `/@${code}`, recursive: true, limit: MOST } },
        }),
      ),
  });
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Its files</summary>
      {open && (
        <Loaded query={files}>
          {(page) => (
            <>
              <ul className="list">
                {page.items.map((file) => (
                  <li key={file.path} className="long" dir="auto">
                    {inCode(file.path)}
                  </li>
                ))}
              </ul>
              {page.next_cursor && <p className="quiet">The first {MOST}.</p>}
            </>
          )}
        </Loaded>
      )}
    </details>
  );
}

type OthersProps = {
  project: string;
  job: Job;
  code: string;
  other: string;
  onOther: (code: string) => void;
};

/** Recent jobs whose code is another version of the same set. */
function Others({ project, job, code, other, onOther }: OthersProps) {
  const jobs = useQuery({
    queryKey: [project, "jobs", "code", job.id],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/jobs", { params: { path: { project }, query: { limit: 100 } } }),
      ),
  });
  const name = code.split(":")[0];
  const choices = (jobs.data?.items ?? []).filter(
    (one) =>
      one.id !== job.id && one.code_set && one.code_set !== code && one.code_set.split(":")[0] === name,
  );
  if (choices.length === 0) return null;
  return (
    <label>
      What differs from the code of
      <select value={other} onChange={(event) => onOther(event.target.value)}>
        <option value="">none</option>
        {choices.map((one) => (
          <option key={one.id} value={one.code_set ?? ""}>
            {one.name} ({one.code_set})
          </option>
        ))}
      </select>
    </label>
  );
}

function Differences({ project, before, after }: { project: string; before: string; after: string }) {
  const found = useQuery({
    queryKey: [project, "code", before, after],
    staleTime: Infinity,
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/filesets/{ref}/diff", {
          params: { path: { project, ref: before }, query: { to: after, limit: MOST } },
        }),
      ),
  });
  return (
    <Loaded query={found}>
      {(page) =>
        page.items.length === 0 ? (
          <p>The same files.</p>
        ) : (
          <ul className="list">
            {page.items.map((one) => (
              <li key={one.path}>
                <Difference project={project} one={one} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}

function Difference({ project, one }: { project: string; one: Difference }) {
  const [open, setOpen] = useState(false);
  const versions = useQuery({
    enabled: open,
    queryKey: [project, "files", "versions", one.path],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/files/versions", {
          params: { path: { project }, query: { path: one.path } },
        }),
      ),
  });
  const named = (version: number | null | undefined) =>
    versions.data?.items.find((each) => each.version === version);
  const [before, after] = [named(one.before), named(one.after)];
  const word = one.before == null ? "added" : one.after == null ? "removed" : "changed";
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {inCode(one.path)} <span className="quiet">{word}</span>
      </summary>
      {open && before && after && (
        <FileDiff project={project} path={one.path} before={before} after={after} />
      )}
    </details>
  );
}

/** The path inside the folder that went along. */
function inCode(path: string): string {
  return path.replace(/^\/code\/[^/]+\//, "");
}
