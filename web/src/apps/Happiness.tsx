import { useQuery } from "@tanstack/react-query";
import { useApps } from "../api/apps";
import { answer, api } from "../api/client";
import { figure, plural } from "../ui/format";
import { Picture } from "../ui/Picture";
import { byMetric, meanNow, risingOption, type Rising } from "./rising";

/** Each app's best score over time: a picture for each metric, since scores of two metrics do not compare. */
export default function Happiness({ project }: { project: string }) {
  const found = useQuery({
    queryKey: [project, "apps", "happiness"],
    queryFn: () => answer(api.GET("/api/v1/projects/{project}/happiness", { params: { path: { project } } })),
    refetchInterval: 10_000,
  });
  const apps = useApps(project);
  if (!apps.data || !found.data || found.data.items.length === 0) return null;
  const metrics = new Map(apps.data.map((app) => [app.name, app.metric]));
  const shown = new Map(
    apps.data.flatMap((app) => (app.best?.shown == null ? [] : [[app.name, app.best.shown]])),
  );
  return (
    <section>
      <h2>Apps</h2>
      <div className="columns">
        {byMetric(found.data.items, metrics).map(([metric, items]) => (
          <div className="card" key={metric}>
            <Picture
              title={`Best ${metric} of each app over time`}
              about={`The best ${metric} over time of ${items.map((item) => item.app).join(", ")}`}
              option={risingOption(items, metric, Date.now())}
              height={260}
            />
            <p className="quiet">{sentence(metric, items, shown)}</p>
          </div>
        ))}
      </div>
    </section>
  );
}

function sentence(metric: string, items: Rising[], shown: Map<string, number>): string {
  const now = figure(meanNow(items, shown));
  const told =
    items.length === 1
      ? `${items[0]!.app} has a model; its ${metric} is ${now}`
      : `${plural(items.length, "app")} with a model; their mean ${metric} is ${now}`;
  return `${told}, without the luck of choosing the best of several, which the lines have.`;
}
