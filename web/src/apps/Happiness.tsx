import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../api/client";
import { count, figure } from "../ui/format";
import { Picture } from "../ui/Picture";
import { happinessOption } from "./rising";

/** Each app's best score over time, and their mean in bold. */
export default function Happiness({ project }: { project: string }) {
  const found = useQuery({
    queryKey: [project, "apps", "happiness"],
    queryFn: () => answer(api.GET("/api/v1/projects/{project}/happiness", { params: { path: { project } } })),
    refetchInterval: 10_000,
  });
  if (!found.data || found.data.items.length === 0) return null;
  const now = found.data.mean.at(-1)?.quality;
  return (
    <section>
      <h2>Apps</h2>
      <div className="card">
        <Picture
          title="Best score of each app over time"
          about={`The best score of ${found.data.items.length} apps over time; their mean is now ${figure(now)}`}
          option={happinessOption(found.data, Date.now())}
          height={240}
        />
        <p className="quiet">
          {found.data.items.length === 1
            ? `One app has a model; its score is ${figure(now)}.`
            : `${count(found.data.items.length)} apps have a model; their mean score is ${figure(now)}.`}
        </p>
      </div>
    </section>
  );
}
