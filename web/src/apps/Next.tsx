import { useProspects, type App } from "../api/apps";
import { Loaded } from "../ui/Loaded";
import { duration, figure, plural } from "../ui/format";
import { Picture } from "../ui/Picture";
import { posteriorOption, withinCeiling } from "./pictures";

/** What the policy would run next and why, with what it believes of every candidate. */
export function Next({ project, app }: { project: string; app: App }) {
  const prospects = useProspects(project, app.name);
  return (
    <Loaded query={prospects}>
      {(found) => (
        <>
          {found.next ? (
            <section className="card">
              <h2 className="long">{found.next.candidate}</h2>
              <p dir="auto">{found.next.why}</p>
              {found.next.first && <p className="quiet">It is the very next trial of the whole pool.</p>}
              <details>
                <summary>The numbers</summary>
                <p className="quiet" dir="auto">
                  {found.next.details}
                </p>
              </details>
            </section>
          ) : (
            <p dir="auto">
              {app.name} {app.waiting}.
            </p>
          )}
          {app.why && (
            <p className="quiet" dir="auto">
              When it was last chosen: {app.why}
            </p>
          )}
          {found.items.length > 0 && (
            <>
              <div className="card">
                <Picture
                  title="What is believed of each candidate"
                  about={`The believed score of ${plural(found.items.length, "candidate")}, each with the range that holds it nine times in ten; the table below says the same`}
                  option={posteriorOption(found.items, found.next?.candidate)}
                  height={Math.min(760, 130 + 18 * Math.min(40, found.items.length))}
                />
              </div>
              <h2>In numbers</h2>
              <div className="scroll" tabIndex={0} role="region" aria-label="Believed of each candidate">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Candidate</th>
                      <th scope="col">State</th>
                      <th scope="col" className="number">
                        Believed
                      </th>
                      <th scope="col" className="number">
                        Measured
                      </th>
                      <th scope="col" className="number">
                        Costs about
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {found.items.map((one) => (
                      <tr
                        key={one.candidate}
                        className={one.candidate === found.next?.candidate ? "best" : ""}
                      >
                        <td className="long">{one.candidate}</td>
                        <td>{one.state}</td>
                        <td className="number">
                          {figure(withinCeiling(one.mean))} ({figure(withinCeiling(one.low))} to{" "}
                          {figure(withinCeiling(one.high))})
                        </td>
                        <td className="number">{figure(one.quality)}</td>
                        <td className="number">{duration(one.cost_s)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </>
          )}
        </>
      )}
    </Loaded>
  );
}
