import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api } from "../api/client";
import type { components } from "../api/schema";
import { Failure } from "../ui/Failure";
import { bytes, count } from "../ui/format";
import { useProjects } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";

type Quota = components["schemas"]["Quota"];
const GB = 1e9;

/** The quotas of any project, for those who run the installation. */
export function AllQuotas() {
  const projects = useProjects();
  const [chosen, setChosen] = useState("");
  const project = chosen || projects.data?.[0]?.name;
  return (
    <section>
      <h2>Quotas</h2>
      <div className="row">
        <label>
          Project
          <select value={project ?? ""} onChange={(e) => setChosen(e.target.value)}>
            {projects.data?.map((one) => (
              <option key={one.id}>{one.name}</option>
            ))}
          </select>
        </label>
      </div>
      {project ? (
        <Quotas key={project} project={project} forProject />
      ) : (
        <p className="quiet">There is no project yet.</p>
      )}
    </section>
  );
}

/** What a project and its people may hold and use. Only platform admins change the project's own (`forProject`). */
export function Quotas({ project, forProject }: { project: string; forProject: boolean }) {
  const quotas = useQuery({
    queryKey: [project, "quotas"],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/quotas", { params: { path: { project } } })).then(
        (found) => found.items,
      ),
  });
  return (
    <Loaded query={quotas}>
      {(found) => (
        <>
          <div className="scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">Who</th>
                  <th scope="col">Bytes</th>
                  <th scope="col">GPU-hours this month</th>
                  <th scope="col">Jobs at a time</th>
                </tr>
              </thead>
              <tbody>
                {found.map((one) => (
                  <tr key={one.user ?? ""}>
                    <td dir="auto">{one.user ?? <strong>the project</strong>}</td>
                    <td>{used(one.used_bytes, one.bytes, bytes)}</td>
                    <td>{used(one.used_gpu_hours, one.gpu_hours, (hours) => hours.toFixed(1))}</td>
                    <td>{used(one.used_jobs, one.jobs, count)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <SetQuota project={project} known={found} forProject={forProject} />
        </>
      )}
    </Loaded>
  );
}

/** "3 of 10", or "3, no limit". */
export function used(
  amount: number,
  limit: number | null | undefined,
  show: (value: number) => string,
): string {
  return limit === null || limit === undefined
    ? `${show(amount)}, no limit`
    : `${show(amount)} of ${show(limit)}`;
}

function SetQuota({ project, known, forProject }: { project: string; known: Quota[]; forProject: boolean }) {
  const queries = useQueryClient();
  const [user, setUser] = useState("");
  const [gigabytes, setGigabytes] = useState("");
  const [hours, setHours] = useState("");
  const [jobs, setJobs] = useState("");
  const set = useMutation({
    mutationFn: () =>
      answer(
        api.PUT("/api/v1/projects/{project}/quotas", {
          params: { path: { project } },
          body: {
            user: user || null,
            bytes: gigabytes === "" ? null : Math.round(Number(gigabytes) * GB),
            gpu_hours: hours === "" ? null : Number(hours),
            jobs: jobs === "" ? null : Number(jobs),
          },
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: [project, "quotas"] }),
  });
  function choose(name: string) {
    const one = known.find((each) => (each.user ?? "") === name);
    setUser(name);
    setGigabytes(one?.bytes == null ? "" : String(one.bytes / GB));
    setHours(one?.gpu_hours == null ? "" : String(one.gpu_hours));
    setJobs(one?.jobs == null ? "" : String(one.jobs));
  }
  function submit(event: FormEvent) {
    event.preventDefault();
    set.mutate();
  }
  const number = (title: string, value: string, change: (text: string) => void, step: string) => (
    <label>
      {title}
      <input
        type="number"
        min={0}
        step={step}
        placeholder="no limit"
        value={value}
        onChange={(e) => change(e.target.value)}
      />
    </label>
  );
  return (
    <form className="row" onSubmit={submit}>
      <label>
        Quota of {forProject ? "(empty: the project)" : "the member"}
        <input
          maxLength={64}
          required={!forProject}
          value={user}
          list={`members-${project}`}
          onChange={(e) => choose(e.target.value)}
        />
        <datalist id={`members-${project}`}>
          {known.map((one) => one.user && <option key={one.user} value={one.user} />)}
        </datalist>
      </label>
      {number("Gigabytes", gigabytes, setGigabytes, "any")}
      {number("GPU-hours a month", hours, setHours, "any")}
      {number("Jobs at a time", jobs, setJobs, "1")}
      <button type="submit" disabled={set.isPending}>
        Set the quota
      </button>
      {set.error && <Failure error={set.error} />}
    </form>
  );
}
