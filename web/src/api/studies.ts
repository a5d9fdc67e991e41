import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answer, api, type Schemas } from "./client";

export type Study = Schemas["Study"];
export type StudyPoint = Schemas["StudyPoint"];
export type Slice = Schemas["DimensionProfile"];
export type Region = Schemas["Region"];
export type NewStudy = Schemas["CreateStudy"];

/** A dimension of a search space, as the API writes it. */
export type Dimension = {
  name: string;
  type: "float" | "integer" | "ordinal" | "categorical";
  low?: number;
  high?: number;
  log?: boolean;
  values?: (string | number | boolean)[];
};

export function dimensionsOf(study: Pick<Study, "space">): Dimension[] {
  const found = study.space.dimensions;
  return Array.isArray(found) ? (found as Dimension[]) : [];
}

/** What a study's budget is counted in; money by its currency. */
export function unitOf(kind: string, currency: string): string {
  return { cost: currency, time: "seconds", count: "points" }[kind] ?? kind;
}

/** What the study is for: "maximise accuracy where cost <= 0.1". */
export function aimOf(study: Pick<Study, "goal">): {
  quantity: string;
  upwards: boolean;
  constraints: string[];
  /** The quantities that the constraints are about. */
  constrained: string[];
} {
  const goal = study.goal as { minimise?: string; maximise?: string; constraints?: string[] };
  return {
    quantity: goal.maximise ?? goal.minimise ?? "",
    upwards: goal.maximise !== undefined,
    constraints: goal.constraints ?? [],
    constrained: [...new Set((goal.constraints ?? []).map((one) => one.split(/\s*[<>]/, 1)[0]!))],
  };
}

export function useStudies(project: string) {
  return useQuery({
    queryKey: [project, "studies"],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/studies", {
          params: { path: { project }, query: { limit: 200 } },
        }),
      ),
  });
}

/** It changes with every point, and points end without an event of the study: look again while it runs. */
export function useStudy(project: string, name: string) {
  return useQuery({
    queryKey: [project, "studies", name],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/studies/{name}", { params: { path: { project, name } } })),
    refetchInterval: (query) => (query.state.data?.state === "running" ? 3_000 : false),
  });
}

export function usePoints(project: string, study: Study) {
  return useQuery({
    queryKey: [project, "studies", study.name, "points"],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/studies/{name}/points", {
          params: { path: { project, name: study.name }, query: { limit: 10_000 } },
        }),
      ).then((found) => found.items),
    refetchInterval: study.state === "running" ? 3_000 : false,
  });
}

/** The models need some points; until then the server says so and the page leaves the picture out. */
export function useSlice(project: string, name: string, dimension: string, known: number) {
  return useQuery({
    queryKey: [project, "studies", name, "slice", dimension, known],
    enabled: known > 1 && dimension !== "",
    retry: false,
    placeholderData: (old) => old,
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/studies/{name}/slice", {
          params: { path: { project, name }, query: { dimension } },
        }),
      ),
  });
}

export function useRegion(project: string, name: string, x: string, y: string, known: number) {
  return useQuery({
    queryKey: [project, "studies", name, "region", x, y, known],
    enabled: known > 1 && x !== "" && y !== "" && x !== y,
    retry: false,
    placeholderData: (old) => old,
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/studies/{name}/region", {
          params: { path: { project, name }, query: { x, y } },
        }),
      ),
  });
}

export function useSteer(project: string, name: string) {
  const queries = useQueryClient();
  const params = { path: { project, name } };
  return useMutation({
    /** Another total of the budget, or as before. */
    mutationFn: (verb: "stop" | { budget: Record<string, number> | null }) =>
      verb === "stop"
        ? answer(api.POST("/api/v1/projects/{project}/studies/{name}/stop", { params }))
        : answer(api.POST("/api/v1/projects/{project}/studies/{name}/start", { params, body: verb })),
    onSettled: () => queries.invalidateQueries({ queryKey: [project, "studies"] }),
  });
}

/** The numbers of the points that no other beats in everything. */
export function useFront(project: string, name: string, known: number) {
  return useQuery({
    queryKey: [project, "studies", name, "front", known],
    enabled: known > 1,
    retry: false,
    placeholderData: (old) => old,
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/studies/{name}/front", { params: { path: { project, name } } }),
      ).then((found) => found.items.map((point) => point.number)),
  });
}

/** Runs what is recommended, so that what is predicted becomes measured. */
export function useVerify(project: string, name: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/projects/{project}/studies/{name}/verify", {
          params: { path: { project, name } },
          body: {},
        }),
      ),
    onSettled: () => queries.invalidateQueries({ queryKey: [project, "studies"] }),
  });
}

/** How much each dimension matters for a quantity; the models need three points. */
export function useImportances(project: string, name: string, quantity: string, known: number) {
  return useQuery({
    queryKey: [project, "studies", name, "importances", quantity, known],
    enabled: known > 2,
    retry: false,
    placeholderData: (old) => old,
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/studies/{name}/importances", {
          params: { path: { project, name }, query: { quantity } },
        }),
      ),
  });
}
