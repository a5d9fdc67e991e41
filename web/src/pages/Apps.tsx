import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../api/client";
import { count, figure } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { Time } from "../ui/Time";

/** What the project wants to learn, how well it is learned by now, and why what runs next does. */
export default function Apps() {
  const project = useProject();
  const apps = useQuery({
    queryKey: [project, "apps"],
    queryFn: () => answer(api.GET("/api/v1/projects/{project}/apps", { params: { path: { project } } })),
    refetchInterval: 5_000,
  });
  return (
    <>
      <header className="head">
        <h1>Apps</h1>
      </header>
      <Loaded query={apps}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="quiet">None yet: declare one with easel apps create.</p>
          ) : (
            <div className="cards">
              {items.map((app) => (
                <article className="card" key={app.id}>
                  <h2 className="long" dir="auto">
                    {app.name}
                  </h2>
                  <p>
                    {app.best ? `Best ${app.metric} ${figure(app.best.quality)}, ${app.best.candidate}` : "No model yet"}, {count(app.trials)} trials,{" "}
                    {count(app.running.length)} running
                  </p>
                  <p className="quiet">
                    {count(app.examples)} examples, {count(app.switched_off)} switched off; {app.template}
                  </p>
                  {app.last_improvement_at && (
                    <p className="quiet">
                      Improved <Time at={app.last_improvement_at} />
                    </p>
                  )}
                  {app.why && <p dir="auto">{app.why}</p>}
                  <pre tabIndex={0} aria-label={`Program of ${app.name}`}>
                    {app.program}
                  </pre>
                </article>
              ))}
            </div>
          )
        }
      </Loaded>
    </>
  );
}
