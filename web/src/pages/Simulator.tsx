import { useMutation, useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useApps } from "../api/apps";
import { answer, api, type Schemas } from "../api/client";
import { Failure } from "../ui/Failure";
import { count, figure, plural } from "../ui/format";
import { useProject } from "../ui/Frame";
import { historyOf, REFERENCES, simulationOption } from "../simulator/pictures";
import { Picture } from "../ui/Picture";

type Simulated = Schemas["Simulated"];
type History = NonNullable<Schemas["Simulate"]["history"]>;
const COMMON = ["easel", "hybrid", "greedy", "round-robin", "fcfs", "random", "mm-gp-ei"];

const MEANINGS = [
  ["Numbers of devices", "The pools that are compared, separated by commas: 1, 2, 4."],
  [
    "Apps at once",
    "How many apps of the history share the pool; what the others reached is known beforehand.",
  ],
  [
    "Length, as a share",
    "How long is replayed, measured by all trials of these apps one after another on one device: 0.2 is a fifth of that time. The shorter, the more the order counts.",
  ],
  ["Repetitions", "How many times it is replayed with other apps drawn from the history; the mean is shown."],
  ["Chance of failure", "How many of the trials fail and are tried again: 0.1 is one in ten."],
  ["Spread of costs", "How far true costs lie from predicted ones: 0 is exact, 1 about a factor of three."],
] as const;

/** The project's own history under other policies and other numbers of devices: how many should we buy? */
export default function Simulator() {
  const project = useProject();
  const apps = useApps(project);
  const policies = useQuery({
    queryKey: ["policies"],
    staleTime: Infinity,
    queryFn: () => answer(api.GET("/api/v1/policies")).then((found) => found.items),
  });
  const [chosen, setChosen] = useState(["easel", "round-robin", "fcfs"]);
  const [more, setMore] = useState(false);
  const [form, setForm] = useState({
    devices: "1, 2, 4",
    serve: "10",
    share: "0.2",
    repetitions: "5",
    failures: "0",
    noise: "0",
  });
  const [history, setHistory] = useState<{ name: string; rows: History } | null>(null);
  const set = (name: keyof typeof form) => (event: { target: { value: string } }) =>
    setForm({ ...form, [name]: event.target.value });
  const run = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/projects/{project}/simulations", {
          params: { path: { project } },
          body: {
            policies: chosen,
            devices: form.devices
              .split(/[\s,;]+/)
              .filter(Boolean)
              .map(Number),
            serve: Number(form.serve),
            share: Number(form.share),
            repetitions: Number(form.repetitions),
            failures: Number(form.failures),
            cost_noise: Number(form.noise),
            history: history?.rows ?? null,
          },
        }),
      ),
  });
  const read = useMutation({
    mutationFn: async (file: File) => ({ name: file.name, rows: await historyOf(file) }),
    onSuccess: setHistory,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    run.mutate();
  }
  const learned = (apps.data ?? []).filter((app) => app.trials > 0).length;
  const lacks = history === null && apps.data !== undefined && learned < 2;
  const names = more ? (policies.data ?? COMMON) : COMMON;
  return (
    <>
      <header className="head">
        <h1>Simulator</h1>
      </header>
      <p>
        Replays what trials reached and cost, in the order in which other policies would have run them on
        other numbers of devices. Nothing runs.
      </p>
      <form onSubmit={submit}>
        <fieldset>
          <legend>Policies</legend>
          <div className="row">
            {names.map((name) => (
              <label className="check" key={name}>
                <input
                  type="checkbox"
                  checked={chosen.includes(name)}
                  onChange={(e) =>
                    setChosen(e.target.checked ? [...chosen, name] : chosen.filter((other) => other !== name))
                  }
                />{" "}
                {name}
              </label>
            ))}
            <button type="button" className="small" onClick={() => setMore(!more)}>
              {more ? "Fewer" : "All policies"}
            </button>
          </div>
        </fieldset>
        <div className="row">
          <label>
            Numbers of devices
            <input required value={form.devices} onChange={set("devices")} />
          </label>
          <label>
            Apps at once
            <input type="number" min="1" max="200" value={form.serve} onChange={set("serve")} />
          </label>
          <label>
            Length, as a share
            <input type="number" min="0.01" max="1" step="any" value={form.share} onChange={set("share")} />
          </label>
          <label>
            Repetitions
            <input type="number" min="1" max="100" value={form.repetitions} onChange={set("repetitions")} />
          </label>
          <label>
            Chance of failure
            <input
              type="number"
              min="0"
              max="0.99"
              step="any"
              value={form.failures}
              onChange={set("failures")}
            />
          </label>
          <label>
            Spread of costs
            <input type="number" min="0" max="3" step="any" value={form.noise} onChange={set("noise")} />
          </label>
          <label>
            History
            <input
              type="file"
              accept=".csv,text/csv"
              aria-label="Another history, as CSV with tenant, candidate, quality and cost"
              onChange={(event) => {
                const file = event.target.files?.[0];
                run.reset();
                read.reset();
                if (file) read.mutate(file);
                else setHistory(null);
              }}
            />
          </label>
          <button type="submit" className="primary" disabled={run.isPending || chosen.length === 0 || lacks}>
            {run.isPending ? "Simulating…" : "Simulate"}
          </button>
        </div>
      </form>
      <details>
        <summary>What these mean</summary>
        <dl>
          {MEANINGS.map(([term, meaning]) => (
            <div key={term}>
              <dt>{term}</dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
      </details>
      <p className="quiet" role="status">
        {history
          ? `${plural(history.rows.length, "trial")} of ${history.name}`
          : lacks
            ? `This project has ${plural(learned, "app")} with trials, and a replay needs at least two apps: one to serve, one to learn from. Choose a history.`
            : "Without a file, this project's own trials are replayed."}
      </p>
      {(run.error ?? read.error) && <Failure error={run.error ?? read.error} />}
      {run.isPending && <p role="status">Simulating: this can take a minute.</p>}
      {run.data && <Result found={run.data} />}
    </>
  );
}

/** What is left of nothing by adding fractions is nothing. */
function rounded(loss: number | undefined): number | undefined {
  return loss !== undefined && Math.abs(loss) < 1e-9 ? 0 : loss;
}

function Result({ found }: { found: Simulated }) {
  const best = Math.min(
    ...found.runs.filter((run) => !REFERENCES.includes(run.policy)).map((run) => run.mean_loss),
  );
  return (
    <section>
      <p className="quiet">
        {plural(found.tenants, "app")}, {plural(found.candidates, "candidate")},{" "}
        {plural(found.trials, "trial")}.
      </p>
      <div className="card">
        <Picture
          title="Mean loss over time"
          about="Mean distance to the best possible score over time, one line for each policy and number of devices; the table below has their means"
          option={simulationOption(found)}
          height={420}
        />
      </div>
      <h2>In numbers</h2>
      <div className="scroll" tabIndex={0} role="region" aria-label="Policies side by side">
        <table>
          <thead>
            <tr>
              <th scope="col">Policy</th>
              <th scope="col" className="number">
                Devices
              </th>
              <th scope="col" className="number">
                Mean loss
              </th>
              <th scope="col" className="number">
                Loss at the end
              </th>
            </tr>
          </thead>
          <tbody>
            {found.runs.map((run) => (
              <tr key={`${run.policy} ${run.devices}`} className={run.mean_loss === best ? "best" : ""}>
                <td>
                  {run.policy}
                  {run.policy === "greedy with hindsight" && (
                    <span className="quiet"> (knows every quality beforehand)</span>
                  )}
                  {run.policy === "bound" && <span className="quiet"> (no order can do better)</span>}
                </td>
                <td className="number">{count(run.devices)}</td>
                <td className="number">{figure(rounded(run.mean_loss))}</td>
                <td className="number">{figure(rounded(run.loss.at(-1)))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
