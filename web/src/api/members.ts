import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { answer, api, type Member } from "./client";

async function all(project: string): Promise<Member[]> {
  const found: Member[] = [];
  let cursor: string | undefined;
  do {
    const params = { path: { project }, query: { limit: 200, cursor } };
    const page = await answer(api.GET("/api/v1/projects/{project}/users", { params }));
    found.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor);
  return found;
}

export function useMembers(project: string) {
  return useQuery({ queryKey: [project, "members"], queryFn: () => all(project), enabled: project !== "" });
}

/** A user's name by id; people who have left the project keep their id only. The same function until people change. */
export function useNames(project: string): (id: string | null) => string {
  const { data } = useMembers(project);
  const names = useMemo(() => data && new Map(data.map((member) => [member.id, member.name])), [data]);
  return useCallback(
    (id) => (id === null ? "–" : (names?.get(id) ?? (names ? `…${id.slice(-6)}` : "…"))),
    [names],
  );
}
