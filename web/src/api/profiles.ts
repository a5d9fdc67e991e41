import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { answer, api, type Schemas } from "./client";

export type Profile = Schemas["Profile"];
export type Offer = Schemas["Offer"];
export type Provisioned = Schemas["Provisioned"];
export type Values = Record<string, number>;

const RESERVED = ["cpus", "memory_mb", "input_mb"];

/** The newest version of each profile, newest first. */
export function useProfiles(project: string) {
  return useQuery({
    queryKey: [project, "profiles"],
    queryFn: async () => {
      const params = { path: { project }, query: { limit: 200 } };
      const { items } = await answer(api.GET("/api/v1/projects/{project}/profiles", { params }));
      const seen = new Set<string>();
      return items.filter((profile) => !seen.has(profile.name) && seen.add(profile.name));
    },
    refetchInterval: (query) =>
      query.state.data?.some((profile) => profile.state === "running") ? 2_000 : false,
  });
}

/** The arguments that the command takes, each with the numbers it was profiled at. */
export function argumentsOf(profile: Pick<Profile, "runs">): { name: string; seen: number[] }[] {
  const seen = new Map<string, Set<number>>();
  for (const run of profile.runs) {
    const features = (run.features ?? {}) as Record<string, number>;
    for (const [name, value] of Object.entries(features))
      if (!RESERVED.includes(name)) seen.set(name, (seen.get(name) ?? new Set()).add(value));
  }
  return [...seen].map(([name, values]) => ({ name, seen: [...values].sort((a, b) => a - b) }));
}

export const CPUS = Array.from({ length: 16 }, (_, i) => (i + 1) / 2);
export const MEMORIES = Array.from({ length: 16 }, (_, i) => (i + 1) * 512);

/** What every size would take and cost. */
export function useEstimates(
  project: string,
  name: string,
  values: Values | null,
  confidence: number | null,
) {
  return useQuery({
    queryKey: [project, "profiles", name, "estimate", values, confidence],
    enabled: values !== null,
    placeholderData: keepPreviousData,
    queryFn: () => {
      const shapes = CPUS.flatMap((vcpu) => MEMORIES.map((memory_mb) => ({ vcpu, memory_mb })));
      const params = { path: { project, name } };
      const body = { values: values!, shapes, confidence };
      return answer(api.POST("/api/v1/projects/{project}/profiles/{name}/estimate", { params, body })).then(
        (found) => found.items,
      );
    },
  });
}

export type Limits = { seconds: number | null; cost: number | null };

/** Why a size is left out, or nothing where it is within the limits. */
export function excluded(offer: Pick<Offer, "sure_seconds" | "sure_cost">, limits: Limits): string | null {
  if (limits.seconds !== null && offer.sure_seconds > limits.seconds) return "too slow";
  if (limits.cost !== null && offer.sure_cost > limits.cost) return "too dear";
  return null;
}
