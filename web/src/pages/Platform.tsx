import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { Link } from "react-router";
import { answer, api } from "../api/client";
import { Prices } from "../admin/Prices";
import { Backups, Storage } from "../admin/Storage";
import { useMe } from "../session";
import { DeviceTable } from "../ui/Devices";
import { EventList } from "../ui/Events";
import { Failure } from "../ui/Failure";
import { useProjects } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import PoolHistory from "../ui/PoolHistory";
import { Time } from "../ui/Time";

/** For platform admins: all projects, the pool, everything that happens. */
export default function Platform() {
  const me = useMe();
  if (!me.user.platform_admin)
    return (
      <>
        <header className="head">
          <h1>Platform</h1>
        </header>
        <p>
          This page is for the admins of the whole installation: projects, prices and the pool. Ask one of
          them for a new project; your own are in the menu above.
        </p>
      </>
    );
  return <ForAdmins />;
}

function ForAdmins() {
  const events = useQuery({
    queryKey: ["platform-events"],
    queryFn: () => answer(api.GET("/api/v1/events", { params: { query: { limit: 30 } } })),
    refetchInterval: 10_000,
  });
  return (
    <>
      <header className="head">
        <h1>Platform</h1>
      </header>
      <Health />
      <Projects />
      <section>
        <h2>Pool</h2>
        <DeviceTable drains />
        <PoolHistory />
      </section>
      <Storage />
      <Backups />
      <Prices />
      <section>
        <h2>What happened</h2>
        <Loaded query={events}>{(page) => <EventList events={page.items} />}</Loaded>
      </section>
    </>
  );
}

const MARKS = { ok: "✓", warning: "–", failed: "✗" };

function Health() {
  const health = useQuery({
    queryKey: ["health"],
    queryFn: () => answer(api.GET("/api/v1/health")),
    refetchInterval: 15_000,
  });
  return (
    <section>
      <h2>Health</h2>
      <Loaded query={health}>
        {(found) => (
          <table>
            <tbody>
              {found.checks.map((check) => (
                <tr key={check.name}>
                  <td>
                    <span role="img" aria-label={check.severity}>
                      {MARKS[check.severity]}
                    </span>
                  </td>
                  <th scope="row">{check.name}</th>
                  <td className="long">{check.detail}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
    </section>
  );
}

function Projects() {
  const projects = useProjects();
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const add = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/projects", { body: { name, description } })),
    onSuccess: () => {
      setName("");
      setDescription("");
      return queries.invalidateQueries({ queryKey: ["projects"] });
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    add.mutate();
  }
  return (
    <section>
      <h2>Projects</h2>
      <form className="row" onSubmit={submit}>
        <label>
          Name
          <input
            required
            maxLength={64}
            value={name}
            onChange={(e) => setName(e.target.value)}
            placeholder="astro"
          />
        </label>
        <label className="wide">
          Description
          <input maxLength={2000} value={description} onChange={(e) => setDescription(e.target.value)} />
        </label>
        <button type="submit" disabled={add.isPending}>
          Open a project
        </button>
      </form>
      {add.error && <Failure error={add.error} />}
      <Loaded query={projects}>
        {(found) => (
          <div className="scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">Project</th>
                  <th scope="col">Description</th>
                  <th scope="col">Since</th>
                </tr>
              </thead>
              <tbody>
                {found.map((project) => (
                  <tr key={project.id}>
                    <td>
                      <Link to={`/p/${encodeURIComponent(project.name)}/people`}>{project.name}</Link>
                    </td>
                    <td className="long" dir="auto">
                      {project.description || "–"}
                    </td>
                    <td>
                      <Time at={project.created_at} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
            {found.length === 0 && <p className="quiet">None yet: open the first one above.</p>}
          </div>
        )}
      </Loaded>
    </section>
  );
}
