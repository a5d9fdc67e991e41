import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api } from "../api/client";
import { queryOf, type Artifact, type Kind } from "../api/lake";
import { Failure } from "./Failure";

/** A value as people typed it: a number where it is one. */
export function valueOf(text: string): string | number {
  const number = Number(text);
  return text.trim() !== "" && Number.isFinite(number) ? number : text;
}

export function tagText(value: Artifact["tags"][string]): string {
  return typeof value === "object" ? String(value.time) : String(value);
}

/** The name and the version in a reference; a job is named by its id alone. */
export function partsOf(kind: Kind, reference: string): [name: string, version: string] {
  if (kind === "job") return [reference, "1"];
  const at = reference.lastIndexOf(":");
  return [reference.slice(0, at), reference.slice(at + 1)];
}

/** The tags of a file version, a file set or a job, and a form for one more. */
export function Tags({ project, kind, reference }: { project: string; kind: Kind; reference: string }) {
  const queries = useQueryClient();
  const [key, setKey] = useState("");
  const [value, setValue] = useState("");
  const queryKey = [project, "artifacts", kind, reference];
  const params = { path: { project } };
  const tags = useQuery({
    queryKey,
    queryFn: async () => {
      const [name, version] = partsOf(kind, reference);
      const query = queryOf([
        { key: "name", operator: "=", value: name },
        { key: "version", operator: "=", value: version },
      ]);
      const found = await answer(
        api.POST("/api/v1/projects/{project}/find", { params, body: { kind, query, limit: 1 } }),
      );
      return found.items[0] ?? null;
    },
  });
  const set = useMutation({
    mutationFn: (change: { tags?: Record<string, string | number>; remove?: string[] }) =>
      answer(
        api.POST("/api/v1/projects/{project}/tags", { params, body: { kind, ref: reference, ...change } }),
      ),
    onSuccess: (found) => {
      queries.setQueryData(queryKey, found);
      setKey("");
      setValue("");
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    set.mutate({ tags: { [key.trim()]: valueOf(value) } });
  }
  return (
    <div className="tags">
      {Object.entries(tags.data?.tags ?? {}).map(([name, one]) => (
        <span className="tag" dir="auto" key={name}>
          {name} {tagText(one)}{" "}
          <button
            type="button"
            className="plain"
            aria-label={`Remove the tag ${name}`}
            onClick={() => set.mutate({ remove: [name] })}
          >
            ✕
          </button>
        </span>
      ))}
      <form className="row" onSubmit={submit}>
        <label>
          Tag
          <input required size={12} maxLength={64} value={key} onChange={(e) => setKey(e.target.value)} />
        </label>
        <label>
          Value
          <input required size={12} value={value} onChange={(e) => setValue(e.target.value)} />
        </label>
        <button type="submit" disabled={set.isPending}>
          Set
        </button>
      </form>
      {(set.error ?? tags.error) && <Failure error={set.error ?? tags.error} />}
    </div>
  );
}
