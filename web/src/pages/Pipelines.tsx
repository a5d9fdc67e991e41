import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { answer, api } from "../api/client";
import { count } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { pipelinePlace } from "../ui/places";
import { Time } from "../ui/Time";

/** Jobs that depend on each other, submitted as one. */
export default function Pipelines() {
  const project = useProject();
  const pipelines = useQuery({
    queryKey: [project, "job", "pipelines"],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/pipelines", {
          params: { path: { project }, query: { limit: 100 } },
        }),
      ),
  });
  return (
    <>
      <header className="head">
        <h1>Pipelines</h1>
      </header>
      <Loaded query={pipelines}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="quiet">
              None yet. A pipeline is a file of steps that need each other:{" "}
              <code>easel pipelines run FILE</code>.
            </p>
          ) : (
            <div className="scroll" tabIndex={0} role="region" aria-label="All pipelines">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Pipeline</th>
                    <th scope="col">State</th>
                    <th scope="col" className="number">
                      Steps
                    </th>
                    <th scope="col">Submitted</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((one) => (
                    <tr key={one.id}>
                      <td className="long">
                        <Link dir="auto" to={pipelinePlace(project, one.id)}>
                          {one.name}
                        </Link>
                      </td>
                      <td>
                        <span className={`state ${one.state}`}>{one.state}</span>
                      </td>
                      <td className="number">{count(one.steps.length)}</td>
                      <td>
                        <Time at={one.created_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </>
  );
}
