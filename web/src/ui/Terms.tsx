import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api } from "../api/client";
import type { components } from "../api/schema";
import { useCurrency } from "../session";
import { Failure } from "./Failure";

type Facts = components["schemas"]["Terms"];
type Change = components["schemas"]["SetTerms"];

/** What people say about an app or a study: how much it matters, until when, for how much, what is enough. */
export function Terms({
  project,
  kind,
  name,
  terms,
}: {
  project: string;
  kind: "apps" | "studies";
  name: string;
  terms: Facts;
}) {
  const queries = useQueryClient();
  const currency = useCurrency();
  const [weight, setWeight] = useState(String(terms.weight));
  const [deadline, setDeadline] = useState(localMoment(terms.deadline));
  const [budget, setBudget] = useState(text(terms.budget));
  const [until, setUntil] = useState(text(terms.until));
  const params = { path: { project, name } };
  const change = useMutation({
    mutationFn: (body: Change) =>
      kind === "apps"
        ? answer(api.PATCH("/api/v1/projects/{project}/apps/{name}/terms", { params, body }))
        : answer(api.PATCH("/api/v1/projects/{project}/studies/{name}/terms", { params, body })),
    onSettled: () => queries.invalidateQueries({ queryKey: [project, kind] }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change.mutate({
      weight: Number(weight),
      ...(deadline !== localMoment(terms.deadline) && {
        deadline: deadline ? new Date(deadline).toISOString() : null,
      }),
      ...(budget !== text(terms.budget) && { budget: budget ? Number(budget) : null }),
      ...(until !== text(terms.until) && { until: until ? Number(until) : null }),
    });
  };
  return (
    <details>
      <summary>Weight, deadline, budget{terms.paused ? " (paused)" : ""}</summary>
      <form className="row" onSubmit={submit}>
        <label>
          Weight{" "}
          <input
            type="number"
            min={0}
            max={1e6}
            step="any"
            value={weight}
            onChange={(e) => setWeight(e.target.value)}
          />
        </label>
        <label>
          Deadline{" "}
          <input type="datetime-local" value={deadline} onChange={(e) => setDeadline(e.target.value)} />
        </label>
        <label>
          Budget, {currency}{" "}
          <input
            type="number"
            min={0}
            step="any"
            value={budget}
            onChange={(e) => setBudget(e.target.value)}
          />
        </label>
        <label>
          Enough at{" "}
          <input type="number" step="any" value={until} onChange={(e) => setUntil(e.target.value)} />
        </label>
        <button type="submit" disabled={change.isPending}>
          Save
        </button>
        <button
          type="button"
          disabled={change.isPending}
          onClick={() => change.mutate({ paused: !terms.paused })}
        >
          {terms.paused ? "Resume" : "Pause"}
        </button>
      </form>
      {change.error && <Failure error={change.error} />}
    </details>
  );
}

function text(value: number | null | undefined): string {
  return value === null || value === undefined ? "" : String(value);
}

/** As an input of type datetime-local writes it: here, not in UTC. */
function localMoment(value: string | null | undefined): string {
  if (!value) return "";
  const at = new Date(value);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
