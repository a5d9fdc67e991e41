import { useState } from "react";
import { Link, useParams } from "react-router";
import {
  aimOf,
  dimensionsOf,
  usePoints,
  useFront,
  useSteer,
  useVerify,
  useStudy,
  type Study as Facts,
  type StudyPoint,
} from "../api/studies";
import { Failure } from "../ui/Failure";
import { figure } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { Picture } from "../ui/Picture";
import { Terms } from "../ui/Terms";
import {
  frontOption,
  measured,
  parallelOption,
  pointText,
  sortedPoints,
  spendingOption,
  type Sorting,
} from "../study/pictures";
import { Models } from "../study/Models";

const UNITS: Record<string, string> = { cost: "money", time: "seconds", count: "points" };

export default function Study() {
  const project = useProject();
  const name = useParams().study ?? "";
  const study = useStudy(project, name);
  return <Loaded query={study}>{(found) => <Shown key={found.id} project={project} study={found} />}</Loaded>;
}

function Shown({ project, study }: { project: string; study: Facts }) {
  const points = usePoints(project, study);
  const steer = useSteer(project, study.name);
  const aim = aimOf(study);
  const running = study.state === "running";
  return (
    <>
      <header className="head">
        <h1 className="long" dir="auto">
          {study.name}
        </h1>
        <span className={`state ${study.state}`}>{study.state}</span>
        <span className="spring" />
        <a
          className="button"
          href={`/api/v1/projects/${encodeURIComponent(project)}/studies/${encodeURIComponent(study.name)}/csv`}
          download={`${study.name}.csv`}
        >
          Download CSV
        </a>
        {running && (
          <button
            type="button"
            className="danger"
            disabled={steer.isPending}
            onClick={() => steer.mutate("stop")}
          >
            Stop
          </button>
        )}
      </header>
      {!running && (
        <Resume
          key={study.budget.amount}
          budget={study.budget}
          busy={steer.isPending}
          onResume={(amount) => steer.mutate({ budget: { [study.budget.kind]: amount } })}
        />
      )}
      {steer.error && <Failure error={steer.error} />}
      {study.reason && <p className="notice">{study.reason}</p>}
      <p>
        {aim.upwards ? "Maximise" : "Minimise"} <strong>{aim.quantity}</strong>
        {aim.constraints.length > 0 && ` where ${aim.constraints.join(" and ")}`}, with {study.strategy};{" "}
        {figure(study.budget.spent)} of {figure(study.budget.amount)}{" "}
        {UNITS[study.budget.kind] ?? study.budget.kind} spent.
      </p>
      <meter aria-label="Spent of the budget" min={0} max={study.budget.amount} value={study.budget.spent} />
      <Best project={project} study={study} />
      <p dir="auto" aria-live="polite">
        {study.name} {study.waiting}.
      </p>
      <Terms project={project} kind="studies" name={study.name} terms={study.terms} />
      {study.why && (
        <p className="quiet" dir="auto">
          Why it was last served: {study.why}
        </p>
      )}
      <Loaded query={points}>{(found) => <Pictures project={project} study={study} points={found} />}</Loaded>
    </>
  );
}

/** What to propose as the new total: as much again where all is spent, else what was asked for. */
export function moreBudget(budget: { amount: number; spent: number }): number {
  return budget.spent >= budget.amount ? Number((2 * budget.amount).toPrecision(4)) : budget.amount;
}

function Resume({
  budget,
  busy,
  onResume,
}: {
  budget: Facts["budget"];
  busy: boolean;
  onResume: (amount: number) => void;
}) {
  const [amount, setAmount] = useState(String(moreBudget(budget)));
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        onResume(Number(amount));
      }}
    >
      <label>
        Budget in all, {UNITS[budget.kind] ?? budget.kind}
        <input
          required
          type="number"
          min={0}
          step="any"
          value={amount}
          onChange={(e) => setAmount(e.target.value)}
        />
      </label>
      <button type="submit" disabled={busy || Number(amount) <= budget.spent}>
        Resume
      </button>
      <span className="quiet">{figure(budget.spent)} are spent: a larger total lets it go on.</span>
    </form>
  );
}

function Best({ project, study }: { project: string; study: Facts }) {
  const verify = useVerify(project, study.name);
  if (!study.best) return <p className="quiet">Nothing is recommended yet.</p>;
  const { point, predicted, probability, observed } = study.best;
  return (
    <section className="card">
      <h2>Recommended now</h2>
      <p className="long">{pointText(point)}</p>
      <p className="quiet">
        {observed
          ? `Measured there: ${pointText(observed)}.`
          : `Predicted there: ${Object.entries(predicted)
              .map(([name, e]) => `${name} ${figure(e.median)} (${figure(e.low)} to ${figure(e.high)})`)
              .join(", ")}.`}
        {probability !== null && ` All constraints hold with probability ${figure(probability)}.`}
      </p>
      {!observed && (
        <p>
          <button type="button" disabled={verify.isPending} onClick={() => verify.mutate()}>
            Run the recommended point
          </button>
        </p>
      )}
      {verify.data?.job_id && (
        <p role="status">
          Point {verify.data.number} runs as{" "}
          <Link to={`/p/${encodeURIComponent(project)}/jobs/${verify.data.job_id}`}>its job</Link>.
        </p>
      )}
      {verify.error && <Failure error={verify.error} />}
    </section>
  );
}

function Pictures({ project, study, points }: { project: string; study: Facts; points: StudyPoint[] }) {
  const aim = aimOf(study);
  const dimensions = dimensionsOf(study);
  const done = measured(points);
  if (points.length === 0) return <p className="quiet">No point was started yet.</p>;
  return (
    <>
      {done.length > 0 && (
        <div className="charts">
          <div className="card">
            <Picture
              title={`Recommended ${aim.quantity} over what was spent`}
              about={`${aim.quantity} of the recommendation after each of ${done.length} results, over the budget used`}
              option={spendingOption(points, aim.quantity, UNITS[study.budget.kind] ?? study.budget.kind)}
            />
          </div>
          <div className="card">
            <Picture
              title="Points, side by side"
              about={`Parallel coordinates of ${done.length} points: their dimensions and what was measured; the table below says the same`}
              option={parallelOption(points, dimensions, aim.quantity)}
            />
          </div>
        </div>
      )}
      <Front project={project} study={study} points={points} />
      <Models project={project} study={study} points={points} />
      <Points
        project={project}
        points={points}
        quantity={aim.quantity}
        dimensions={dimensions.map((one) => one.name)}
      />
    </>
  );
}

/** The objective against what it costs: those that no other beats in both. */
function Front({ project, study, points }: { project: string; study: Facts; points: StudyPoint[] }) {
  const { quantity } = aimOf(study);
  const done = measured(points);
  const front = useFront(project, study.name, done.length);
  const others = [...new Set(done.flatMap((point) => Object.keys(point.values)))].filter(
    (name) => name !== quantity,
  );
  const [chosen, setChosen] = useState("");
  const other = others.includes(chosen) ? chosen : others[0];
  if (!front.data || other === undefined) return null;
  return (
    <section className="card">
      <label>
        {quantity} against
        <select value={other} onChange={(e) => setChosen(e.target.value)}>
          {others.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <Picture
        title="Pareto front"
        about={`${quantity} against ${other} of ${done.length} points; ${front.data.length} are beaten by no other in everything`}
        option={frontOption(points, front.data, quantity, other)}
      />
    </section>
  );
}

type PointsProps = { project: string; points: StudyPoint[]; quantity: string; dimensions: string[] };

function Points({ project, points, quantity, dimensions }: PointsProps) {
  const [only, setOnly] = useState(false);
  const [sorting, setSorting] = useState<Sorting>({ by: "#", down: true });
  const shown = sortedPoints(
    points.filter((point) => !only || point.feasible),
    sorting,
  );
  const others = [...new Set(points.flatMap((point) => Object.keys(point.values)))].filter(
    (name) => name !== quantity,
  );
  const heading = (name: string) => (
    <th
      scope="col"
      key={name}
      className="number"
      aria-sort={sorting.by === name ? (sorting.down ? "descending" : "ascending") : "none"}
    >
      <button
        type="button"
        className="plain"
        dir="auto"
        onClick={() => setSorting({ by: name, down: sorting.by === name ? !sorting.down : false })}
      >
        {name} <span aria-hidden="true">{sorting.by === name ? (sorting.down ? "▾" : "▴") : "↕"}</span>
      </button>
    </th>
  );
  return (
    <section>
      <header className="head">
        <h2>Points</h2>
        <label className="check">
          <input type="checkbox" checked={only} onChange={(e) => setOnly(e.target.checked)} /> Only those that
          meet the constraints
        </label>
      </header>
      <div className="scroll" tabIndex={0} role="region" aria-label="All points">
        <table>
          <thead>
            <tr>
              {["#", ...dimensions].map(heading)}
              <th scope="col">State</th>
              {[quantity, ...others].map(heading)}
              <th scope="col">Constraints</th>
              <th scope="col">Job</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((point) => (
              <tr key={point.number}>
                <td className="number" title={point.why ?? undefined}>
                  {point.number}
                </td>
                {dimensions.map((name) => (
                  <td className="number" dir="auto" key={name}>
                    {shownValue(point.point[name])}
                  </td>
                ))}
                <td>
                  <span className={`state ${point.state}`} title={point.reason ?? undefined}>
                    {point.state}
                  </span>
                </td>
                {[quantity, ...others].map((name) => (
                  <td className="number" key={name}>
                    {figure(point.values[name])}
                  </td>
                ))}
                <td>{point.feasible === null ? "–" : point.feasible ? "met" : "not met"}</td>
                <td>
                  {point.job_id ? (
                    <Link to={`/p/${encodeURIComponent(project)}/jobs/${point.job_id}`}>
                      …{point.job_id.slice(-6)}
                    </Link>
                  ) : (
                    "–"
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function shownValue(value: unknown): string {
  if (value === undefined) return "–";
  return typeof value === "number" ? figure(value) : String(value);
}
