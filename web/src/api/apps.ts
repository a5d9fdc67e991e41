import {
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { answer, api, type Schemas } from "./client";
import { upload, type Progress } from "./lake";

export type App = Schemas["App"];
export type Example = Schemas["FedExample"];
export type Trial = Schemas["TrialView"];
export type Report = Schemas["Report"];
export type Prospect = Schemas["Prospect"];
export type Fed = Schemas["Fed"];
export type Answers = Schemas["Answers"];

const EVERY = 5_000; // trials end without an event of the app

export function useApps(project: string) {
  return useQuery({
    queryKey: [project, "apps"],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/apps", { params: { path: { project } } })).then(
        (found) => found.items,
      ),
    refetchInterval: EVERY,
  });
}

export function useApp(project: string, name: string) {
  return useQuery({
    queryKey: [project, "apps", name],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/apps/{name}", { params: { path: { project, name } } })),
    refetchInterval: EVERY,
  });
}

/** Checks a program while it is written; what is wrong with it is the error. */
export function useMatch(program: string) {
  return useQuery({
    queryKey: ["match", program],
    enabled: program.trim() !== "",
    retry: false,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
    queryFn: () => answer(api.POST("/api/v1/programs/match", { body: { program } })),
  });
}

export function useTrials(project: string, name: string) {
  return useQuery({
    queryKey: [project, "apps", name, "trials"],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/apps/{name}/trials", { params: { path: { project, name } } }),
      ).then((found) => found.items),
    refetchInterval: EVERY,
  });
}

export function useAppProgress(project: string, name: string) {
  return useQuery({
    queryKey: [project, "apps", name, "progress"],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/apps/{name}/progress", { params: { path: { project, name } } }),
      ),
    refetchInterval: EVERY,
  });
}

/** `model` is part of the key: another model answers, another report. */
export function useReport(project: string, name: string, model: string | undefined) {
  return useQuery({
    queryKey: [project, "apps", name, "report", model],
    enabled: model !== undefined,
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/apps/{name}/report", { params: { path: { project, name } } }),
      ),
    refetchInterval: (query) => (query.state.data?.job && !query.state.data.findings ? EVERY : false),
  });
}

export function useProspects(project: string, name: string) {
  return useQuery({
    queryKey: [project, "apps", name, "next"],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/apps/{name}/next", { params: { path: { project, name } } })),
    refetchInterval: EVERY,
  });
}

export type Wanted = { of: string; on: string; text: string };

/** The filter parameters of the API for what the form above the examples holds. */
export function exampleFilters(wanted: Wanted): string[] {
  const found: string[] = [];
  if (wanted.of) found.push(`class:eq:${wanted.of}`);
  if (wanted.on) found.push(`on:eq:${wanted.on}`);
  if (wanted.text) found.push(`preview:contains:${wanted.text}`);
  return found;
}

export function useExamples(project: string, name: string, wanted: Wanted) {
  const query = useInfiniteQuery({
    queryKey: [project, "apps", name, "examples", wanted],
    initialPageParam: undefined as string | undefined,
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam }) => {
      const filter = exampleFilters(wanted);
      const params = { path: { project, name }, query: { limit: 60, cursor: pageParam, filter } };
      return answer(api.GET("/api/v1/projects/{project}/apps/{name}/examples", { params }));
    },
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  return { ...query, examples: query.data?.pages.flatMap((page) => page.items) ?? [] };
}

export function useSuspects(project: string, name: string, enabled: boolean) {
  return useQuery({
    queryKey: [project, "apps", name, "suspects"],
    enabled,
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/apps/{name}/suspects", {
          params: { path: { project, name }, query: { limit: 100 } },
        }),
      ),
    refetchInterval: (query) =>
      ["queued", "launching", "downloading", "running", "uploading"].includes(query.state.data?.state ?? "")
        ? 2_000
        : false,
  });
}

/** Changes of an app make everything that was known of it old. */
export function useChange<T, R>(project: string, name: string, change: (given: T) => Promise<R>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => queries.invalidateQueries({ queryKey: [project, "apps", name] }),
  });
}

/** Into the app's own folder of the lake, then fed from there: nothing is visible before all of it is there. */
export async function feed(
  project: string,
  app: App,
  files: { path: string; file: File }[],
  stamp: string,
  tell: (progress: Progress) => void,
): Promise<Fed> {
  const folder = `${(app.folder ?? "").replace(/\/$/, "")}/uploads/${stamp}/`;
  await upload(
    project,
    files.map(({ path, file }) => ({ path: folder + path, file })),
    tell,
  );
  tell({ phase: "Feeding", done: 1, total: 1 });
  const reference = files.length === 1 && !files[0]!.path.includes("/") ? folder + files[0]!.path : folder;
  const params = { path: { project, name: app.name } };
  return answer(
    api.POST("/api/v1/projects/{project}/apps/{name}/feed/files", {
      params,
      body: { reference, skip_bad: true },
    }),
  );
}

export function thumbnail(project: string, app: string, digest: string): string {
  return `/api/v1/projects/${encodeURIComponent(project)}/apps/${encodeURIComponent(app)}/examples/${digest}/thumbnail`;
}
