import {
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef } from "react";
import { useEvents } from "../live/Live";
import { answer, api, type Event, type Schemas } from "./client";

export const STATES = [
  "queued",
  "launching",
  "downloading",
  "running",
  "uploading",
  "finished",
  "failed",
  "killed",
];
/** What the overview counts as running: all that holds or is about to hold a device. */
export const ACTIVE = ["launching", "downloading", "running", "uploading"];
const PAGE = 100;

/** `where` is a query on tags and metrics, as in the lake's search: accuracy > 0.9. */
export type Wanted = { name: string; state: string; user: string; sort: string; where: string };

/** The filter parameters of the API for what the page's form holds. */
export function filtersOf(wanted: Wanted): string[] {
  const found: string[] = [];
  if (wanted.name) found.push(`name:contains:${wanted.name}`);
  if (wanted.state === "active") found.push(`state:in:${ACTIVE.join(",")}`);
  else if (wanted.state) found.push(`state:eq:${wanted.state}`);
  if (wanted.user) found.push(`user_id:eq:${wanted.user}`);
  return found;
}

export function useCounts(project: string) {
  return useQuery({
    queryKey: [project, "job", "counts"],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/jobs/counts", { params: { path: { project } } })),
  });
}

/** The state that an event of a job leaves it in, if it says one. */
export function stateAfter(kind: string): string | null {
  const verb = kind.startsWith("job.") ? kind.slice(4) : "";
  return STATES.includes(verb) ? verb : null;
}

export type Row = Schemas["JobRow"];

/** A table's pages with the states of these events written in: cheap however far somebody has scrolled. */
export function patched<P extends { items: Row[] }>(pages: P[], events: Event[]): P[] {
  const states = new Map<string, string>();
  for (const event of events) {
    const state = stateAfter(event.kind);
    if (state) states.set(event.subject, state);
  }
  return pages.map((page) => {
    if (!page.items.some((row) => states.has(row.job.id))) return page;
    const items = page.items.map((row) => {
      const state = states.get(row.job.id);
      return state ? { ...row, job: { ...row.job, state } } : row;
    });
    return { ...page, items };
  });
}

/** Jobs page by page, with tags and costs. The first pages are fetched anew when something happens; deep in the table
 * rows are patched. */
export function useJobTable(project: string, wanted: Wanted) {
  const queries = useQueryClient();
  const { name, state, user, sort, where } = wanted;
  const key = useMemo(
    () => [project, "jobs", { name, state, user, sort, where }],
    [project, name, state, user, sort, where],
  );
  const query = useInfiniteQuery({
    queryKey: key,
    initialPageParam: undefined as string | undefined,
    placeholderData: keepPreviousData,
    structuralSharing: false, // comparing hundreds of pages with themselves whenever one more comes is felt
    queryFn: ({ pageParam, signal }) => {
      const filter = filtersOf({ name, state, user, sort, where });
      const params = { path: { project }, query: { limit: PAGE, cursor: pageParam, sort, filter, where } };
      return answer(api.GET("/api/v1/projects/{project}/jobs/table", { params, signal }));
    },
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  const again = useRef({ last: 0, timer: undefined as ReturnType<typeof setTimeout> | undefined });
  useEffect(() => {
    const state = again.current;
    return () => {
      clearTimeout(state.timer);
      state.timer = undefined;
    };
  }, [key]);
  useEvents(
    useCallback(
      (events: Event[]) => {
        if (!events.some((event) => event.kind.startsWith("job."))) return;
        const known = queries.getQueryData<{ pages: { items: Row[] }[]; pageParams: unknown[] }>(key);
        if (!known) return;
        queries.setQueryData(key, { ...known, pages: patched(known.pages, events) });
        if (known.pages.length > 2) return;
        // At most twice a second, but never not at all: the last event of a burst may be the one that counts.
        const state = again.current;
        state.timer ??= setTimeout(
          () => {
            state.timer = undefined;
            state.last = Date.now();
            void queries.invalidateQueries({ queryKey: key });
          },
          Math.max(0, state.last + 500 - Date.now()),
        );
      },
      [key, queries],
    ),
  );
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  return { ...query, rows };
}

export function useJob(project: string, job: string) {
  return useQuery({
    queryKey: [project, "job", job],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/jobs/{job}", { params: { path: { project, job } } })),
  });
}

/** What it was run for: apps, a study, a pipeline, a profile. */
export function useLinks(project: string, job: string) {
  return useQuery({
    queryKey: [project, "job", job, "links"],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/jobs/{job}/links", { params: { path: { project, job } } })),
  });
}

/** The moments at which it changed its state, oldest first. */
export function useJobHistory(project: string, job: string) {
  return useQuery({
    queryKey: [project, "job", job, "history"],
    queryFn: () => {
      const query = { filter: [`subject:eq:${job}`], sort: "seq", limit: 200 };
      return answer(api.GET("/api/v1/projects/{project}/events", { params: { path: { project }, query } }));
    },
  });
}

export type Curve = Schemas["SeriesPoints"];

/** All series of a job, thinned by the server to what a picture can show. */
export function curvesOf(project: string, job: string, running: boolean) {
  return {
    queryKey: [project, "job", job, "curves"],
    refetchInterval: running ? 2000 : (false as const),
    queryFn: async (): Promise<Curve[]> => {
      const path = { project, job };
      const { items } = await answer(
        api.GET("/api/v1/projects/{project}/jobs/{job}/metrics", { params: { path } }),
      );
      return Promise.all(
        items.map(({ name }) =>
          answer(
            api.GET("/api/v1/projects/{project}/jobs/{job}/metrics/{name}", {
              params: { path: { ...path, name }, query: { points: 1000 } },
            }),
          ),
        ),
      );
    },
  };
}

/** The reason that stays with a job which somebody ended from a page. */
export function killedBy(name: string): string {
  return `killed by ${name} from the dashboard`;
}

export function useKill(project: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ job, reason }: { job: string; reason: string }) =>
      answer(
        api.POST("/api/v1/projects/{project}/jobs/{job}/kill", {
          params: { path: { project, job } },
          body: { reason },
        }),
      ),
    onSettled: (_data, _error, { job }) => queries.invalidateQueries({ queryKey: [project, "job", job] }),
  });
}

export function useRerun(project: string) {
  return useMutation({
    mutationFn: (job: string) =>
      answer(
        api.POST("/api/v1/projects/{project}/jobs/{job}/rerun", {
          params: { path: { project, job } },
          body: {},
        }),
      ),
  });
}
