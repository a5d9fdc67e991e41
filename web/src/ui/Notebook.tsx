import { useQuery } from "@tanstack/react-query";
import { answer, api, type Job, type Schemas } from "../api/client";
import { useProject } from "./Frame";
import { isOver } from "./State";
import { outputOf, sourceOf, type Output, type Shown } from "./notebook";

type Cell = Schemas["NotebookCell"];

/** The notebook of a job as far as it has run. What cells left is shown and never run. */
export function Notebook({ job }: { job: Job }) {
  const project = useProject();
  const found = useQuery({
    queryKey: [project, "job", job.id, "notebook"],
    refetchInterval: isOver(job.state) ? false : 2000,
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/jobs/{job}/notebook", {
          params: { path: { project, job: job.id } },
        }),
      ),
  });
  if (!found.data) return null;
  const { cells, path } = found.data;
  return (
    <section aria-label="Notebook">
      <h2>Notebook</h2>
      <p className="quiet">
        {path},{" "}
        <a
          href={`/api/v1/projects/${encodeURIComponent(project)}/jobs/${job.id}/notebook.ipynb`}
          download={`${job.id}.ipynb`}
        >
          the executed copy
        </a>
      </p>
      {cells.length === 0 && <p>No cell has run yet.</p>}
      {cells.map((cell) => (
        <CellShown key={cell.number} cell={cell} />
      ))}
    </section>
  );
}

function CellShown({ cell }: { cell: Cell }) {
  const body = cell.body as { cell_type?: string; source?: unknown; outputs?: Output[] };
  const source = sourceOf(body.source);
  if (body.cell_type !== "code") return <div className="notebook-words">{source}</div>;
  const number = (cell.body as { execution_count?: number | null }).execution_count;
  return (
    <div className={`notebook-cell ${cell.state}`}>
      <span className="quiet" title={cell.state}>
        [{cell.state === "running" ? "*" : (number ?? " ")}]
      </span>
      <div>
        <pre className="preview" tabIndex={0} role="region" aria-label={`Code of cell ${cell.number + 1}`}>
          {source}
        </pre>
        {(body.outputs ?? []).map((output, i) => (
          <OutputShown key={i} shown={outputOf(output)} />
        ))}
      </div>
    </div>
  );
}

function OutputShown({ shown }: { shown: Shown }) {
  if (shown.as === "image") return <img src={shown.address} alt="Output of the cell" />;
  if (shown.as === "page")
    // An empty sandbox: no script, no form, no way out of the frame; and the page's own policy holds inside.
    return <iframe sandbox="" srcDoc={shown.text} title="Output of the cell" />;
  return (
    <pre className={`notebook-output ${shown.as}`} tabIndex={0} role="region" aria-label="Output of the cell">
      {shown.text}
    </pre>
  );
}
