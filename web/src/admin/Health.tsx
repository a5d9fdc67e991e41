import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../api/client";
import { EventList } from "../ui/Events";
import { Loaded } from "../ui/Loaded";

const MARKS = { ok: "✓", warning: "–", failed: "✗" };

/** What is well and what is wrong with the server that answers, and what happened lately. */
export function Health() {
  const health = useQuery({
    queryKey: ["health"],
    queryFn: () => answer(api.GET("/api/v1/health")),
    refetchInterval: 15_000,
  });
  const events = useQuery({
    queryKey: ["platform-events"],
    queryFn: () => answer(api.GET("/api/v1/events", { params: { query: { limit: 30 } } })),
    refetchInterval: 10_000,
  });
  return (
    <>
      <section>
        <h2>Health</h2>
        <Loaded query={health}>
          {(found) => (
            <>
              <p role="status">
                {found.ready
                  ? found.checks.every((check) => check.severity === "ok")
                    ? "All is well."
                    : "Requests are served; something needs a look."
                  : "This server should get no requests now."}{" "}
                <span className="quiet">Easel {found.version}</span>
              </p>
              <div className="scroll">
                <table>
                  <tbody>
                    {found.checks.map((check) => (
                      <tr key={check.name}>
                        <td>
                          <span role="img" aria-label={check.severity} className={`mark ${check.severity}`}>
                            {MARKS[check.severity]}
                          </span>
                        </td>
                        <th scope="row">{check.name}</th>
                        <td className="long">{check.detail}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              <p className="quiet">
                On the server&apos;s machine <code>easel doctor</code> looks deeper: stored bytes, orphan
                rows, file modes, clock, tokens.
              </p>
            </>
          )}
        </Loaded>
      </section>
      <section>
        <h2>What happened</h2>
        <Loaded query={events}>{(page) => <EventList events={page.items} />}</Loaded>
      </section>
    </>
  );
}
