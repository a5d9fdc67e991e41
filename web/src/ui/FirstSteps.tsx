import { Link } from "react-router";
import { useApps } from "../api/apps";
import { useCounts } from "../api/jobs";
import { useMembers } from "../api/members";
import { midnight, useBudget } from "../api/spending";
import { useMe } from "../session";
import { useDevices } from "./Devices";
import { useRemembered } from "./remembered";
import { firstSteps } from "./steps";

/** What to do first in a project where little has happened, on the page and by a command. */
export function FirstSteps({ project }: { project: string }) {
  const me = useMe();
  const [hidden, hide] = useRemembered(`${project} first steps hidden`, false);
  const counts = useCounts(project).data;
  const members = useMembers(project).data;
  const budget = useBudget(project, midnight(new Date())).data;
  const role = members?.find((member) => member.id === me.user.id)?.role;
  const found = firstSteps(
    {
      jobs: counts && Object.values(counts.states).reduce((sum, some) => sum + some, 0),
      apps: useApps(project).data?.length,
      devices: useDevices().data?.filter((device) => device.connected).length,
      members: members?.length,
      budget: budget && budget.limit !== null,
    },
    me.user.platform_admin || role === "admin",
  );
  if (hidden || !found) return null;
  return (
    <section className="card first-steps" aria-labelledby="first-steps">
      <header className="head">
        <h2 id="first-steps">First steps</h2>
        <button type="button" className="small" onClick={() => hide(true)}>
          Hide the first steps
        </button>
      </header>
      <div className="columns">
        {found.map(({ who, steps }) => (
          <div key={who}>
            <h3>{who}</h3>
            <ul>
              {steps.map((step) => (
                <li key={step.text}>
                  <span aria-hidden="true">{step.done ? "☑" : "☐"}</span>{" "}
                  <Link to={`/p/${encodeURIComponent(project)}${step.to && `/${step.to}`}`}>{step.text}</Link>
                  {step.done && " (done)"}
                  <br />
                  <code>{step.command}</code>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </div>
    </section>
  );
}
