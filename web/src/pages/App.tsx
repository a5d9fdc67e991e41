import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearchParams } from "react-router";
import { useApp, type App as Facts } from "../api/apps";
import { answer, api } from "../api/client";
import { Candidates } from "../apps/Candidates";
import { Code } from "../apps/Code";
import { Examples } from "../apps/Examples";
import { Model } from "../apps/Model";
import { Next } from "../apps/Next";
import { Report } from "../apps/Report";
import { TryIt } from "../apps/TryIt";
import { Failure } from "../ui/Failure";
import { count, figure, plural } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { Terms } from "../ui/Terms";

const TABS = {
  model: "Best model",
  report: "Report and checks",
  examples: "Examples",
  candidates: "Candidates",
  next: "What is next",
  try: "Try it",
  code: "Code",
};
type Tab = keyof typeof TABS;

export default function App() {
  const project = useProject();
  const name = useParams().app ?? "";
  const app = useApp(project, name);
  return <Loaded query={app}>{(found) => <Shown key={found.id} project={project} app={found} />}</Loaded>;
}

function Shown({ project, app }: { project: string; app: Facts }) {
  const [address] = useSearchParams();
  const navigate = useNavigate();
  const tab: Tab = (Object.keys(TABS) as Tab[]).find((one) => one === address.get("tab")) ?? "model";
  const remove = useMutation({
    mutationFn: () =>
      answer(
        api.DELETE("/api/v1/projects/{project}/apps/{name}", {
          params: { path: { project, name: app.name } },
        }),
      ),
    onSuccess: () => navigate(`/p/${encodeURIComponent(project)}/apps`),
  });
  return (
    <>
      <header className="head">
        <h1 className="long" dir="auto">
          {app.name}
        </h1>
        <span className="quiet">
          {app.template}, {app.best ? `best ${app.metric} ${figure(app.best.shown)}` : "no model yet"},{" "}
          {plural(app.trials, "trial")}
          {app.running.length > 0 && `, ${count(app.running.length)} running`}
        </span>
        <span className="spring" />
        <button
          type="button"
          className="danger"
          disabled={remove.isPending}
          onClick={() =>
            confirm(
              `Delete ${app.name}? Its running trials end; its examples and models stay in the lake's history.`,
            ) && remove.mutate()
          }
        >
          Delete
        </button>
      </header>
      {remove.error && <Failure error={remove.error} />}
      <p dir="auto" aria-live="polite">
        {app.name} {app.waiting}.
      </p>
      <Terms project={project} kind="apps" name={app.name} terms={app.terms} />
      <nav className="tabs" aria-label="Parts of the app">
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
      </nav>
      {tab === "model" && <Model project={project} app={app} />}
      {tab === "report" && <Report project={project} app={app} />}
      {tab === "examples" && <Examples project={project} app={app} />}
      {tab === "candidates" && <Candidates project={project} app={app} />}
      {tab === "next" && <Next project={project} app={app} />}
      {tab === "try" && <TryIt project={project} app={app} />}
      {tab === "code" && <Code project={project} app={app} />}
    </>
  );
}
