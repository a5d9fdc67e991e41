import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { Link } from "react-router";
import { answer, api, type Project } from "../api/client";
import { Failure } from "../ui/Failure";
import { useProjects } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { Time } from "../ui/Time";

/** All projects: open one, archive one (reads only), bring it back. */
export function Projects() {
  const projects = useProjects();
  const queries = useQueryClient();
  const again = () => queries.invalidateQueries({ queryKey: ["projects"] });
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const add = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/projects", { body: { name, description } })),
    onSuccess: () => {
      setName("");
      setDescription("");
      return again();
    },
  });
  const archive = useMutation({
    mutationFn: ({ project, archived }: { project: string; archived: boolean }) =>
      answer(api.PATCH("/api/v1/projects/{project}", { params: { path: { project } }, body: { archived } })),
    onSuccess: again,
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
      {(add.error ?? archive.error) && <Failure error={add.error ?? archive.error} />}
      <Loaded query={projects}>
        {(found) => (
          <div className="scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">Project</th>
                  <th scope="col">Description</th>
                  <th scope="col">Since</th>
                  <th scope="col">
                    <span className="unseen">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {found.map((project) => (
                  <Row
                    key={project.id}
                    project={project}
                    busy={archive.isPending}
                    onArchive={(archived) => archive.mutate({ project: project.name, archived })}
                  />
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

function Row({
  project,
  busy,
  onArchive,
}: {
  project: Project;
  busy: boolean;
  onArchive: (archived: boolean) => void;
}) {
  const archived = Boolean(project.archived_at);
  const warning = `Archive ${project.name}? It can then only be read, until it is brought back.`;
  return (
    <tr>
      <td>
        <Link to={`/p/${encodeURIComponent(project.name)}/people`}>{project.name}</Link>
        {archived && <span className="tag">archived</span>}
      </td>
      <td className="long" dir="auto">
        {project.description || "–"}
      </td>
      <td>
        <Time at={project.created_at} />
      </td>
      <td>
        <button
          type="button"
          className="small"
          disabled={busy}
          aria-label={`${archived ? "Bring back" : "Archive"} ${project.name}`}
          onClick={() => (archived || confirm(warning)) && onArchive(!archived)}
        >
          {archived ? "Bring back" : "Archive"}
        </button>
      </td>
    </tr>
  );
}
