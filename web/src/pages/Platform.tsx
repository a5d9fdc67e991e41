import { Link, useSearchParams } from "react-router";
import { Charges } from "../admin/Charges";
import { Everybody } from "../admin/Everybody";
import { Health } from "../admin/Health";
import { Outbox } from "../admin/Outbox";
import { Prices } from "../admin/Prices";
import { Projects } from "../admin/Projects";
import { AllQuotas } from "../admin/Quotas";
import { Reservations } from "../admin/Reservations";
import { Backups, Storage } from "../admin/Storage";
import { WorkerTokens } from "../admin/WorkerTokens";
import { useMe } from "../session";
import { DeviceTable } from "../ui/Devices";
import PoolHistory from "../ui/PoolHistory";

const TABS = {
  projects: "Projects",
  people: "People",
  devices: "Devices",
  quotas: "Quotas",
  storage: "Storage",
  prices: "Prices",
  messages: "Messages",
  health: "Health",
} as const;
type Tab = keyof typeof TABS;

/** For platform admins: what the whole installation holds, by parts. */
export default function Platform() {
  const me = useMe();
  const [params] = useSearchParams();
  const asked = params.get("tab") ?? "";
  const tab: Tab = asked in TABS ? (asked as Tab) : "projects";
  if (!me.user.platform_admin)
    return (
      <>
        <header className="head">
          <h1>Platform</h1>
        </header>
        <p>
          This page is for the admins of the whole installation: projects, prices and the pool. Ask one of
          them for a new project; your own are in the menu above.
        </p>
      </>
    );
  return (
    <>
      <header className="head">
        <h1>Platform</h1>
      </header>
      <nav className="tabs" aria-label="Parts of the platform">
        {(Object.entries(TABS) as [Tab, string][]).map(([key, title]) => (
          <Link
            key={key}
            to={`?tab=${key}`}
            className={key === tab ? "active" : ""}
            aria-current={key === tab ? "page" : undefined}
          >
            {title}
          </Link>
        ))}
        <Link to="/audit">Audit</Link>
      </nav>
      {tab === "projects" && <Projects />}
      {tab === "people" && <Everybody />}
      {tab === "devices" && <Devices />}
      {tab === "quotas" && <AllQuotas />}
      {tab === "storage" && (
        <>
          <Storage />
          <Backups />
        </>
      )}
      {tab === "prices" && (
        <>
          <Prices />
          <Charges />
        </>
      )}
      {tab === "messages" && <Outbox />}
      {tab === "health" && <Health />}
    </>
  );
}

function Devices() {
  return (
    <>
      <section>
        <h2>Devices</h2>
        <DeviceTable drains />
        <PoolHistory />
      </section>
      <Reservations />
      <WorkerTokens />
    </>
  );
}
