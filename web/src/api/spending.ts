import { useQuery } from "@tanstack/react-query";
import { answer, api, type Schemas } from "./client";

export type Budget = Schemas["Budget"];

/** With `since` it also says what was spent after that moment. */
export function useBudget(project: string, since?: string) {
  return useQuery({
    // Under "job", because what is spent changes when jobs run.
    queryKey: [project, "job", "budget", since],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/budget", { params: { path: { project }, query: { since } } }),
      ),
  });
}

/** When the viewer's day began. */
export function midnight(now: Date): string {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate()).toISOString();
}

export function useBill(project: string, job: string) {
  return useQuery({
    queryKey: [project, "job", job, "bill"],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/jobs/{job}/bill", { params: { path: { project, job } } })),
  });
}

/** Small sums keep two digits, to a millionth, never as powers of ten: a job may cost a hundredth of a cent. */
export function money(amount: number, currency = ""): string {
  if (amount > 0 && amount < MILLIONTH / 2) return `under 0.000001 ${currency}`.trim();
  const small = amount > 0 && amount < 0.01;
  const digits = small ? Math.min(6, Math.ceil(-Math.log10(amount)) + 1) : amount > 0 && amount < 1 ? 3 : 2;
  const shown = amount.toFixed(digits);
  return `${digits === 3 ? shown.replace(/0$/, "") : shown} ${currency}`.trim();
}

const MILLIONTH = 1e-6;

/** A sum on an axis whose title names the currency: two digits, so that neighbours differ, and no power of ten. */
export function sumOnAxis(amount: number): string {
  if (amount === 0) return "0";
  const digits = Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(Math.abs(amount)))));
  return digits > 0 ? String(amount.toFixed(digits).replace(/\.?0+$/, "")) : amount.toFixed(0);
}

/** What running jobs were expected to cost beyond what they have cost; `committed` holds what is spent, too. */
export function promised(budget: Pick<Budget, "spent" | "committed">): number {
  return Math.max(0, budget.committed - budget.spent);
}

/** What jobs that still run have run up: not in the bills yet. */
export function running(budget: Pick<Budget, "spent" | "billed">): number {
  return Math.max(0, budget.spent - (budget.billed ?? budget.spent));
}

/** How much of the budget is gone or promised, in words that do not need the colour. */
export function standing(
  budget: Pick<Budget, "limit" | "spent" | "committed" | "warn_at">,
): "none" | "well" | "warned" | "over" {
  if (budget.limit === null) return "none";
  const used = budget.spent + promised(budget);
  if (used >= budget.limit) return "over";
  return budget.warn_at.some((share) => used >= share * budget.limit!) ? "warned" : "well";
}
