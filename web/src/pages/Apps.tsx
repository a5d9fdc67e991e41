import { useDeferredValue, useState } from "react";
import { Link } from "react-router";
import { useApps } from "../api/apps";
import { NewApp } from "../apps/NewApp";
import { count, figure } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { Time } from "../ui/Time";

/** What the project wants to learn, how well it is learned by now, and what comes next. */
export default function Apps() {
  const project = useProject();
  const apps = useApps(project);
  const [creating, setCreating] = useState(false);
  const [text, setText] = useState("");
  const wanted = useDeferredValue(text.toLowerCase());
  return (
    <>
      <header className="head">
        <h1>Apps</h1>
        <span className="spring" />
        <button type="button" className="primary" onClick={() => setCreating(true)}>
          New app
        </button>
      </header>
      <Loaded query={apps}>
        {(items) =>
          items.length === 0 ? (
            <p className="quiet">
              None yet. An app says what goes in and what comes out; Easel looks for the best model.
            </p>
          ) : (
            <>
              {items.length > 8 && (
                <div className="row">
                  <label>
                    Name contains
                    <input type="search" value={text} onChange={(e) => setText(e.target.value)} />
                  </label>
                </div>
              )}
              <div className="scroll">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">App</th>
                      <th scope="col">Learns</th>
                      <th scope="col" className="number">
                        Best so far
                      </th>
                      <th scope="col">Model</th>
                      <th scope="col" className="number">
                        Trials
                      </th>
                      <th scope="col" className="number">
                        Examples
                      </th>
                      <th scope="col">Improved</th>
                      <th scope="col">What it does</th>
                    </tr>
                  </thead>
                  <tbody>
                    {items
                      .filter((app) => app.name.toLowerCase().includes(wanted))
                      .map((app) => (
                        <tr key={app.id}>
                          <td>
                            <Link className="long" dir="auto" to={encodeURIComponent(app.name)}>
                              {app.name}
                            </Link>
                          </td>
                          <td>{app.template}</td>
                          <td className="number">
                            {app.best ? `${figure(app.best.shown)} ${app.metric}` : "–"}
                          </td>
                          <td>
                            <span className="clip" title={app.serving?.candidate}>
                              {app.serving?.candidate ?? "no model yet"}
                            </span>
                            {app.pinned && <span className="tag">pinned</span>}
                          </td>
                          <td className="number">
                            {count(app.trials)}
                            {app.running.length > 0 && `, ${count(app.running.length)} running`}
                          </td>
                          <td className="number">{count(app.examples - app.switched_off)}</td>
                          <td>
                            <Time at={app.last_improvement_at} />
                          </td>
                          <td>
                            <span className="clip" dir="auto" title={app.waiting}>
                              {app.waiting}
                            </span>
                          </td>
                        </tr>
                      ))}
                  </tbody>
                </table>
              </div>
            </>
          )
        }
      </Loaded>
      {creating && <NewApp project={project} onClose={() => setCreating(false)} />}
    </>
  );
}
