import { Link } from "react-router";

/** The page of what a reference names: a version of a file set, a file, or a folder of either. */
export function placeOf(project: string, reference: string): string {
  const base = `/p/${encodeURIComponent(project)}/lake`;
  if (reference.startsWith("/")) {
    if (reference.endsWith("/") || reference.includes("@"))
      return `${base}?${new URLSearchParams({ in: reference }).toString()}`;
    const [path, version] = versioned(reference);
    const folder = path.slice(0, path.lastIndexOf("/") + 1);
    const query = { in: folder, file: path, ...(version && { version }) };
    return `${base}?${new URLSearchParams(query).toString()}`;
  }
  const [set, version] = versioned(reference);
  return `${base}/sets?${new URLSearchParams({ set, ...(version && { version }) }).toString()}`;
}

function versioned(reference: string): [name: string, version: string | undefined] {
  const found = /^(.*):(\d+)$/.exec(reference);
  return found ? [found[1]!, found[2]] : [reference, undefined];
}

/** A file set or a file by its reference, as a link to where it is looked at. */
export function DataLink({ project, reference }: { project: string; reference: string }) {
  return (
    <Link className="long" dir="auto" to={placeOf(project, reference)}>
      {reference}
    </Link>
  );
}

export function jobPlace(project: string, job: string): string {
  return `/p/${encodeURIComponent(project)}/jobs/${encodeURIComponent(job)}`;
}

export function appPlace(project: string, app: string, tab?: string): string {
  return `/p/${encodeURIComponent(project)}/apps/${encodeURIComponent(app)}${tab ? `?tab=${tab}` : ""}`;
}

export function studyPlace(project: string, study: string): string {
  return `/p/${encodeURIComponent(project)}/studies/${encodeURIComponent(study)}`;
}

export function pipelinePlace(project: string, pipeline: string): string {
  return `/p/${encodeURIComponent(project)}/pipelines/${encodeURIComponent(pipeline)}`;
}

export function provenancePlace(project: string, set: string): string {
  return `/p/${encodeURIComponent(project)}/provenance?from=${encodeURIComponent(set)}`;
}
