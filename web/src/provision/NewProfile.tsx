import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api } from "../api/client";
import { money } from "../api/spending";
import { useCurrency } from "../session";
import { Dialog } from "../ui/Dialog";
import { Failure } from "../ui/Failure";
import { plural } from "../ui/format";

/** A command with numbers to try in braces; what it would run and cost is shown before it is submitted. */
export function NewProfile({ project, onClose }: { project: string; onClose: () => void }) {
  const queries = useQueryClient();
  const currency = useCurrency();
  const [name, setName] = useState("");
  const [template, setTemplate] = useState("");
  const [code, setCode] = useState("");
  const [limit, setLimit] = useState("600");
  const params = { path: { project } };
  const body = { name, template, code: code.trim() || null, time_limit_s: Number(limit) };
  const plan = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/projects/{project}/profiles/plan", { params, body })),
  });
  const start = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/projects/{project}/profiles", { params, body })),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: [project, "profiles"] });
      onClose();
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (plan.data) start.mutate();
    else plan.mutate();
  }
  const changed = (set: (text: string) => void) => (event: { target: { value: string } }) => {
    plan.reset();
    set(event.target.value);
  };
  return (
    <Dialog title="Profile a command" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label>
          Name
          <input required maxLength={64} value={name} onChange={changed(setName)} />
        </label>
        <label>
          Command, with numbers to try in braces
          <textarea
            required
            rows={3}
            spellCheck={false}
            value={template}
            onChange={changed(setTemplate)}
            placeholder="python train.py --epoch {1,2,5}"
          />
        </label>
        <div className="row">
          <label>
            Code
            <input value={code} onChange={changed(setCode)} placeholder="file set or /code.zip" />
          </label>
          <label>
            Seconds for each run at most
            <input type="number" min="1" value={limit} onChange={changed(setLimit)} />
          </label>
        </div>
        {plan.data && (
          <p className="notice finished" role="status">
            {plural(plan.data.runs.length, "run")}, at most {money(plan.data.most_cost, currency)} in all.
          </p>
        )}
        {(plan.error ?? start.error) && <Failure error={plan.error ?? start.error} />}
        <button type="submit" className="primary" disabled={plan.isPending || start.isPending}>
          {plan.data ? "Start the runs" : "See what it would run"}
        </button>
      </form>
    </Dialog>
  );
}
