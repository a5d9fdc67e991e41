import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answer, api, type Schemas } from "./client";
import type { Kind } from "./lake";

export type Note = Schemas["ArtifactNote"];

/** What people wrote about a job, a file set (a model is one) or a file. */
export function useNotes(project: string, kind: Kind, ref: string) {
  return useQuery({
    queryKey: [project, "notes", kind, ref],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/notes", { params: { path: { project }, query: { kind, ref } } }),
      ).then((found) => found.items),
  });
}

/** Writes a note, or removes one by its id. */
export function useChangeNotes(project: string, kind: Kind, ref: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (change: { text: string } | { remove: string }) => {
      if ("text" in change)
        await answer(
          api.POST("/api/v1/projects/{project}/notes", {
            params: { path: { project } },
            body: { kind, ref, text: change.text },
          }),
        );
      else
        await answer(
          api.DELETE("/api/v1/projects/{project}/notes/{note}", {
            params: { path: { project, note: change.remove }, query: { kind, ref } },
          }),
        );
    },
    onSettled: () => queries.invalidateQueries({ queryKey: [project, "notes", kind, ref] }),
  });
}
