import { useQuery } from "@tanstack/react-query";
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
