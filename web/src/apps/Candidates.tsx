import { Link } from "react-router";
import { useChange, useTrials, type App, type Trial } from "../api/apps";
import { answer, api } from "../api/client";
import { Failure } from "../ui/Failure";
import { count, duration, figure, plural } from "../ui/format";
import { Loaded } from "../ui/Loaded";
import { Picture } from "../ui/Picture";
import { Time } from "../ui/Time";
import { candidatesOption } from "./pictures";

/** What was tried: score against cost, and each with its reasons. */
export function Candidates({ project, app }: { project: string; app: App }) {
  const trials = useTrials(project, app.name);
  const params = { path: { project, name: app.name } };
  const pin = useChange(project, app.name, (model: string) =>
    answer(api.PUT("/api/v1/projects/{project}/apps/{name}/pin", { params, body: { model } })),
  );
  return (
    <Loaded query={trials}>
      {(found) =>
        found.length === 0 ? (
          <p className="quiet">Nothing was tried yet.</p>
        ) : (
          <>
            {found.some((trial) => trial.quality !== null) && (
              <div className="card">
                <Picture
                  title="Score against cost"
                  about={`${app.metric} against training seconds of ${plural(found.length, "trial")}; the table below says the same`}
                  option={candidatesOption(found, app.metric)}
                />
              </div>
            )}
            {pin.error && <Failure error={pin.error} />}
            <h2>Trials</h2>
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Candidate</th>
                    <th scope="col">State</th>
                    <th scope="col" className="number">
                      {app.metric}
                    </th>
                    <th scope="col" className="number">
                      Took
                    </th>
                    <th scope="col" className="number">
                      Examples
                    </th>
                    <th scope="col">When</th>
                    <th scope="col">
                      <span className="unseen">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {[...found].reverse().map((trial) => (
                    <Row
                      key={trial.job}
                      project={project}
                      trial={trial}
                      pinned={app.pinned === trial.model}
                      onPin={(model) => pin.mutate(model)}
                    />
                  ))}
                </tbody>
              </table>
            </div>
          </>
        )
      }
    </Loaded>
  );
}

const STATES: Record<Trial["state"], string> = { running: "running", done: "finished", failed: "failed" };

function Row({
  project,
  trial,
  pinned,
  onPin,
}: {
  project: string;
  trial: Trial;
  pinned: boolean;
  onPin: (model: string) => void;
}) {
  return (
    <tr>
      <td className="long">
        <Link to={`/p/${encodeURIComponent(project)}/jobs/${trial.job}`}>{trial.candidate}</Link>
        <details className="why">
          <summary>why</summary>
          {trial.why}
        </details>
      </td>
      <td>
        <span className={`state ${STATES[trial.state]}`}>{STATES[trial.state]}</span>
      </td>
      <td className="number">{figure(trial.quality)}</td>
      <td className="number">
        {trial.seconds === null ? `about ${duration(trial.cost_s)}` : duration(trial.seconds)}
      </td>
      <td className="number">{count(trial.examples)}</td>
      <td>
        <Time at={trial.started_at} />
      </td>
      <td>
        {trial.model &&
          (pinned ? (
            <span className="tag">pinned</span>
          ) : (
            <button
              type="button"
              className="small"
              aria-label={`Pin ${trial.candidate}`}
              onClick={() => onPin(trial.model!)}
            >
              Pin
            </button>
          ))}
      </td>
    </tr>
  );
}
