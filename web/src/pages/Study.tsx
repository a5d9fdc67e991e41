import { useMemo, useState } from "react";
import { Link, useParams } from "react-router";
import {
  aimOf,
  dimensionsOf,
  unitOf,
  usePoints,
  useSteer,
  useVerify,
  useStudy,
  type Study as Facts,
  type StudyPoint,
} from "../api/studies";
import { useCurrency } from "../session";
import { Failure } from "../ui/Failure";
import { figure, plural } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { Picture } from "../ui/Picture";
import { Terms } from "../ui/Terms";
import { Front } from "../study/Front";
import { Importances } from "../study/Importances";
import { Models } from "../study/Models";
import { measured, parallelOption, pointText, quantityText, spendingOption } from "../study/pictures";
import { Points } from "../study/Points";

export default function Study() {
  const project = useProject();
  const name = useParams().study ?? "";
  const study = useStudy(project, name);
  return <Loaded query={study}>{(found) => <Shown key={found.id} project={project} study={found} />}</Loaded>;
}

function Shown({ project, study }: { project: string; study: Facts }) {
  const points = usePoints(project, study);
  const steer = useSteer(project, study.name);
  const currency = useCurrency();
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
      <Resume
        key={study.budget.amount}
        budget={study.budget}
        running={running}
        busy={steer.isPending}
        onResume={(amount) => steer.mutate({ budget: { [study.budget.kind]: amount } })}
      />
      {steer.error && <Failure error={steer.error} />}
      {study.reason && <p className="notice">{study.reason}</p>}
      <p>
        {aim.upwards ? "Maximise" : "Minimise"} <strong>{aim.quantity}</strong>
        {aim.constraints.length > 0 && ` where ${aim.constraints.join(" and ")}`}, with {study.strategy};{" "}
        {figure(study.budget.spent)} of {figure(study.budget.amount)} {unitOf(study.budget.kind, currency)}{" "}
        spent.
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

type ResumeProps = {
  budget: Facts["budget"];
  running: boolean;
  busy: boolean;
  onResume: (amount: number) => void;
};

/** Another total for the budget: lets an ended study go on, and a running one run longer. */
function Resume({ budget, running, busy, onResume }: ResumeProps) {
  const [amount, setAmount] = useState(String(moreBudget(budget)));
  const currency = useCurrency();
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        onResume(Number(amount));
      }}
    >
      <label>
        Budget in all, {unitOf(budget.kind, currency)}
        <input
          required
          type="number"
          min={0}
          step="any"
          value={amount}
          onChange={(e) => setAmount(e.target.value)}
        />
      </label>
      <button
        type="submit"
        disabled={busy || Number(amount) <= budget.spent || (running && Number(amount) === budget.amount)}
      >
        {running ? "Change the budget" : "Resume"}
      </button>
      <span className="quiet">
        {figure(budget.spent)} {running ? "are spent so far" : "are spent: a larger total lets it go on"}.
      </span>
    </form>
  );
}

function Best({ project, study }: { project: string; study: Facts }) {
  const verify = useVerify(project, study.name);
  const currency = useCurrency();
  if (!study.best) return <p className="quiet">Nothing is recommended yet.</p>;
  const { point, predicted, probability, observed } = study.best;
  const text = (name: string, value: number | null) => quantityText(name, value, currency);
  return (
    <section className="card">
      <h2>Recommended now</h2>
      <p className="long">{pointText(point)}</p>
      <p className="quiet">
        {observed
          ? `Measured there: ${Object.entries(observed)
              .map(([name, value]) => `${name} ${text(name, value)}`)
              .join(", ")}.`
          : `Predicted there: ${Object.entries(predicted)
              .map(
                ([name, e]) =>
                  `${name} ${text(name, e.median)} (${text(name, e.low)} to ${text(name, e.high)})`,
              )
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

type PicturesProps = { project: string; study: Facts; points: StudyPoint[] };

function Pictures({ project, study, points }: PicturesProps) {
  const aim = aimOf(study);
  const dimensions = dimensionsOf(study);
  const done = measured(points);
  const [brushed, setBrushed] = useState<number[] | null>(null);
  const [anew, setAnew] = useState(0);
  const unit = unitOf(study.budget.kind, useCurrency());
  const spending = useMemo(() => spendingOption(points, aim.quantity, unit), [points, aim.quantity, unit]);
  const parallel = useMemo(
    () => parallelOption(points, dimensions, aim.quantity),
    [points, dimensions, aim.quantity],
  );
  const drawn = done.filter((point) => point.values[aim.quantity] != null);
  const all = () => {
    setBrushed(null);
    setAnew(anew + 1); // drawn anew, without what was brushed
  };
  if (points.length === 0) return <p className="quiet">No point was started yet.</p>;
  return (
    <>
      {done.length > 0 && (
        <div className="charts pairs">
          <div className="card">
            <Picture
              title={`Recommended ${aim.quantity} over what was spent`}
              about={`${aim.quantity} of the recommendation after each of ${plural(done.length, "result")}, over the budget used`}
              option={spending}
            />
          </div>
          <div className="card">
            <Picture
              key={anew}
              title="Points, side by side"
              about={`Parallel coordinates of ${plural(done.length, "point")}: their dimensions and what was measured; the table below says the same`}
              option={parallel}
              wide
              onBrush={(chosen) => setBrushed(chosen?.map((i) => drawn[i]?.number ?? -1) ?? null)}
            />
            <p className="quiet">
              Drag along an axis to keep only the lines that pass there; the table below follows.
            </p>
          </div>
          <Front project={project} study={study} points={points} />
          <Importances
            project={project}
            name={study.name}
            quantities={[aim.quantity, ...aim.constrained]}
            known={done.length}
          />
        </div>
      )}
      <Models project={project} study={study} points={points} />
      <Points
        project={project}
        points={points}
        quantity={aim.quantity}
        dimensions={dimensions.map((one) => one.name)}
        brushed={brushed}
        onAll={all}
      />
    </>
  );
}
