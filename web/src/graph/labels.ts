import type { Schemas } from "../api/client";

type Found = Pick<Schemas["Node"], "id" | "name" | "version" | "kind" | "app" | "creator"> & {
  made_by_name?: string | null;
};
type Joined = Pick<Schemas["Edge"], "source" | "target" | "job"> & { job_name?: string | null };

const AUTOMATIC = /^job_[0-9a-z]{26}-(output|artifacts)$/;
const MOST_LETTERS = 24;
/** Of more edges the names of their jobs would cover each other: the table beside the graph has them. */
export const MOST_NAMED = 40;

/** What people call a set: its own name, or the job's where nobody gave it one. */
export function titleOf(node: Found): string {
  return AUTOMATIC.test(node.name) && node.made_by_name ? node.made_by_name : node.id;
}

/** What a set is, in a few words. */
export function kindOf(node: Found): string {
  const of = node.app ? ` of ${node.app}` : "";
  if (node.kind === "members") return `ensemble's members${of}`;
  if (node.kind === "data") return `data, ${node.creator}`;
  if (node.kind === "output" && !AUTOMATIC.test(node.name) && node.made_by_name)
    return `by ${node.made_by_name}`;
  return `${node.kind}${of}`;
}

/** The name of the job that made one set from another, once for each pair; nothing where a set was made by hand. */
export function nameOfEdge(edge: Joined, edges: number): string | undefined {
  if (edges > MOST_NAMED || !edge.job) return undefined;
  const name = edge.job_name ?? edge.job;
  return name.length > MOST_LETTERS ? `${name.slice(0, MOST_LETTERS - 1)}…` : name;
}
