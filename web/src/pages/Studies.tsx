import { useState } from "react";
import { Link } from "react-router";
import { aimOf, unitOf, useStudies } from "../api/studies";
import { useCurrency } from "../session";
import { count, figure } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { Time } from "../ui/Time";
import { NewStudy } from "../study/NewStudy";

/** Searches under a budget: what each is for, how far it is, what it recommends now. */
export default function Studies() {
  const project = useProject();
  const studies = useStudies(project);
  const [creating, setCreating] = useState(false);
  const currency = useCurrency();
  return (
    <>
      <header className="head">
        <h1>Studies</h1>
        <span className="spring" />
        <button type="button" className="primary" onClick={() => setCreating(true)}>
          New study
        </button>
      </header>
      <Loaded query={studies}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="quiet">
              None yet. A study looks for the best point of a search space under a budget.
            </p>
          ) : (
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Study</th>
                    <th scope="col">State</th>
                    <th scope="col">For</th>
                    <th scope="col" className="number">
                      Points
                    </th>
                    <th scope="col" className="number">
                      Spent
                    </th>
                    <th scope="col">Best so far</th>
                    <th scope="col">Since</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((study) => {
                    const aim = aimOf(study);
                    const best =
                      study.best?.observed?.[aim.quantity] ?? study.best?.predicted[aim.quantity]?.median;
                    return (
                      <tr key={study.id}>
                        <td>
                          <Link to={encodeURIComponent(study.name)} dir="auto">
                            {study.name}
                          </Link>
                        </td>
                        <td>
                          <span className={`state ${study.state}`}>{study.state}</span>
                        </td>
                        <td className="long">
                          {aim.upwards ? "maximise" : "minimise"} {aim.quantity}
                          {aim.constraints.length > 0 && ` where ${aim.constraints.join(" and ")}`}
                        </td>
                        <td className="number">
                          {count(Object.values(study.points).reduce((sum, n) => sum + n, 0))}
                        </td>
                        <td className="number">
                          {figure(study.budget.spent)} of {figure(study.budget.amount)}{" "}
                          {unitOf(study.budget.kind, currency)}
                        </td>
                        <td className="number">{figure(best)}</td>
                        <td>
                          <Time at={study.created_at} />
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
      {creating && <NewStudy project={project} onClose={() => setCreating(false)} />}
    </>
  );
}
