import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useNavigate } from "react-router";
import { answer, api } from "../api/client";
import { useCurrency } from "../session";
import { Dialog } from "../ui/Dialog";
import { Failure } from "../ui/Failure";
import { EMPTY, EMPTY_DIMENSION, studyOf, type DimensionRow, type StudyForm } from "./form";

const EXAMPLE = `name: digits
job:
  command: python train.py --rate {rate} --optimiser {optimiser}
space:
  - {name: rate, type: float, low: 1e-4, high: 1e-1, log: true}
  - {name: optimiser, type: categorical, values: [sgd, adam]}
goal:
  maximise: accuracy
  constraints: ["time <= 60"]
  budget: {count: 20}
`;
const STRATEGIES = [
  "auto",
  "nephele",
  "lynceus",
  "fabulinus",
  "fabolas",
  "ei-c",
  "ei",
  "hyperband",
  "bohb",
  "random",
  "lhs",
  "grid",
];

/** By a form for the common case, or by the same YAML that `easel studies create` takes. */
export function NewStudy({ project, onClose }: { project: string; onClose: () => void }) {
  const navigate = useNavigate();
  const [by, setBy] = useState<"form" | "yaml">("form");
  const [text, setText] = useState(EXAMPLE);
  const [form, setForm] = useState<StudyForm>(EMPTY);
  const params = { path: { project } };
  const create = useMutation({
    mutationFn: () =>
      by === "yaml"
        ? answer(api.POST("/api/v1/projects/{project}/studies/file", { params, body: { text } }))
        : answer(api.POST("/api/v1/projects/{project}/studies", { params, body: studyOf(form) })),
    onSuccess: (made) =>
      navigate(`/p/${encodeURIComponent(project)}/studies/${encodeURIComponent(made.name)}`),
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    create.mutate();
  }
  return (
    <Dialog title="New study" onClose={onClose}>
      <div className="row" role="group" aria-label="How to describe it">
        <button type="button" aria-pressed={by === "form"} onClick={() => setBy("form")}>
          Form
        </button>
        <button type="button" aria-pressed={by === "yaml"} onClick={() => setBy("yaml")}>
          YAML
        </button>
      </div>
      <form className="stack" onSubmit={submit}>
        {by === "yaml" ? (
          <label>
            The study
            <textarea
              rows={16}
              spellCheck={false}
              required
              value={text}
              onChange={(e) => setText(e.target.value)}
            />
          </label>
        ) : (
          <Fields form={form} set={(change) => setForm({ ...form, ...change })} />
        )}
        {create.error && <Failure error={create.error} />}
        <button type="submit" className="primary" disabled={create.isPending}>
          Start the study
        </button>
      </form>
    </Dialog>
  );
}

function Fields({ form, set }: { form: StudyForm; set: (change: Partial<StudyForm>) => void }) {
  const currency = useCurrency();
  const change = (i: number, row: Partial<DimensionRow>) =>
    set({ dimensions: form.dimensions.map((old, j) => (j === i ? { ...old, ...row } : old)) });
  return (
    <>
      <label>
        Name
        <input required maxLength={64} value={form.name} onChange={(e) => set({ name: e.target.value })} />
      </label>
      <label>
        Command, with {"{name}"} for a dimension's value
        <textarea
          rows={3}
          required
          spellCheck={false}
          value={form.command}
          onChange={(e) => set({ command: e.target.value })}
          placeholder="python train.py --rate {rate}"
        />
      </label>
      <div className="row">
        <label>
          Code
          <input
            size={14}
            value={form.code}
            onChange={(e) => set({ code: e.target.value })}
            placeholder="file set"
          />
        </label>
        <label>
          Input
          <input
            size={14}
            value={form.input}
            onChange={(e) => set({ input: e.target.value })}
            placeholder="name:version"
          />
        </label>
        <label>
          vCPU
          <input
            type="number"
            min="0.5"
            step="0.5"
            value={form.vcpu}
            onChange={(e) => set({ vcpu: e.target.value })}
          />
        </label>
        <label>
          Memory, MB
          <input
            type="number"
            min="16"
            value={form.memory}
            onChange={(e) => set({ memory: e.target.value })}
          />
        </label>
      </div>
      <fieldset>
        <legend>Search space</legend>
        {form.dimensions.map((row, i) => (
          <div className="row" key={i}>
            <label>
              Dimension
              <input size={10} value={row.name} onChange={(e) => change(i, { name: e.target.value })} />
            </label>
            <label>
              Kind
              <select
                value={row.type}
                onChange={(e) => change(i, { type: e.target.value as DimensionRow["type"] })}
              >
                <option value="float">real</option>
                <option value="integer">whole</option>
                <option value="categorical">one of</option>
              </select>
            </label>
            {row.type === "categorical" ? (
              <label className="wide">
                Values, by commas
                <input value={row.values} onChange={(e) => change(i, { values: e.target.value })} />
              </label>
            ) : (
              <>
                <label>
                  From
                  <input
                    size={6}
                    inputMode="decimal"
                    value={row.low}
                    onChange={(e) => change(i, { low: e.target.value })}
                  />
                </label>
                <label>
                  To
                  <input
                    size={6}
                    inputMode="decimal"
                    value={row.high}
                    onChange={(e) => change(i, { high: e.target.value })}
                  />
                </label>
                <label className="check">
                  <input
                    type="checkbox"
                    checked={row.log}
                    onChange={(e) => change(i, { log: e.target.checked })}
                  />{" "}
                  log
                </label>
              </>
            )}
            <button
              type="button"
              className="small"
              aria-label={`Remove dimension ${i + 1}`}
              onClick={() => set({ dimensions: form.dimensions.filter((_, j) => j !== i) })}
            >
              Remove
            </button>
          </div>
        ))}
        <button
          type="button"
          className="small"
          onClick={() => set({ dimensions: [...form.dimensions, EMPTY_DIMENSION] })}
        >
          Add a dimension
        </button>
      </fieldset>
      <fieldset>
        <legend>Goal</legend>
        <div className="row">
          <label>
            Aim
            <select value={form.aim} onChange={(e) => set({ aim: e.target.value as StudyForm["aim"] })}>
              <option value="maximise">maximise</option>
              <option value="minimise">minimise</option>
            </select>
          </label>
          <label>
            Quantity
            <input
              required
              size={12}
              value={form.quantity}
              onChange={(e) => set({ quantity: e.target.value })}
            />
          </label>
          <label className="wide">
            Constraints, by commas
            <input
              value={form.constraints}
              onChange={(e) => set({ constraints: e.target.value })}
              placeholder="accuracy >= 0.85, time <= 300"
            />
          </label>
        </div>
        <div className="row">
          <label>
            Budget
            <input
              type="number"
              min="0"
              step="any"
              required
              value={form.amount}
              onChange={(e) => set({ amount: e.target.value })}
            />
          </label>
          <label>
            of
            <select
              value={form.budget}
              onChange={(e) => set({ budget: e.target.value as StudyForm["budget"] })}
            >
              <option value="count">points</option>
              <option value="cost">{currency}</option>
              <option value="time">seconds</option>
            </select>
          </label>
          <label>
            Strategy
            <select value={form.strategy} onChange={(e) => set({ strategy: e.target.value })}>
              {STRATEGIES.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <label>
            At once
            <input
              type="number"
              min="1"
              max="100"
              value={form.workers}
              onChange={(e) => set({ workers: e.target.value })}
            />
          </label>
        </div>
      </fieldset>
    </>
  );
}
