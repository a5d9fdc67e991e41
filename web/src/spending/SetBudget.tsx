import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api } from "../api/client";
import type { Budget } from "../api/spending";
import { Failure } from "../ui/Failure";
import { budgetForm } from "./figures";

/** The project's budget, to be changed by its admins. */
export function SetBudget({ project, now }: { project: string; now: Budget }) {
  const queries = useQueryClient();
  const begin = budgetForm(now);
  const [limit, setLimit] = useState(begin.limit);
  const [period, setPeriod] = useState<"month" | "total">(begin.period);
  const [stop, setStop] = useState(begin.stop);
  const again = () => queries.invalidateQueries({ queryKey: [project, "job", "budget"] });
  const params = { path: { project } };
  const set = useMutation({
    mutationFn: () =>
      answer(
        api.PUT("/api/v1/projects/{project}/budget", {
          params,
          body: { limit: Number(limit), period, hard_stop: stop, warn_at: begin.warnAt },
        }),
      ),
    onSuccess: again,
  });
  const remove = useMutation({
    mutationFn: () => answer(api.DELETE("/api/v1/projects/{project}/budget", { params })),
    onSuccess: again,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    set.mutate();
  }
  return (
    <>
      <form className="row" onSubmit={submit}>
        <label>
          Limit
          <input
            required
            type="number"
            min="0"
            step="any"
            value={limit}
            onChange={(e) => setLimit(e.target.value)}
          />
        </label>
        <label>
          Period
          <select value={period} onChange={(e) => setPeriod(e.target.value as typeof period)}>
            <option value="month">a month</option>
            <option value="total">in all</option>
          </select>
        </label>
        <label className="check">
          <input type="checkbox" checked={stop} onChange={(e) => setStop(e.target.checked)} /> Stop jobs at
          the limit
        </label>
        <button type="submit" disabled={set.isPending}>
          Set the budget
        </button>
        <button type="button" onClick={() => remove.mutate()}>
          No limit
        </button>
      </form>
      {(set.error ?? remove.error) && <Failure error={set.error ?? remove.error} />}
    </>
  );
}
