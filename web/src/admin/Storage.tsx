import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answer, api } from "../api/client";
import { Failure } from "../ui/Failure";
import { bytes, count, duration, plural } from "../ui/format";
import { Loaded } from "../ui/Loaded";
import { Time } from "../ui/Time";

/** Who holds how many bytes, over all projects. */
export function Storage() {
  const report = useQuery({ queryKey: ["storage"], queryFn: () => answer(api.GET("/api/v1/storage")) });
  return (
    <section>
      <h2>Storage</h2>
      <Loaded query={report}>
        {(found) => (
          <>
            <p className="quiet">
              The blob store has {bytes(found.stored_bytes)} in {plural(found.objects, "object")}; equal bytes
              lie there once.
            </p>
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Project</th>
                    <th scope="col">Person</th>
                    <th scope="col">File versions</th>
                    <th scope="col">Bytes</th>
                    <th scope="col">Logs</th>
                  </tr>
                </thead>
                <tbody>
                  {found.holders.slice(0, 50).map((each) => (
                    <tr key={`${each.project} ${each.user}`}>
                      <td>{each.project}</td>
                      <td>{each.user}</td>
                      <td>{count(each.files)}</td>
                      <td>{bytes(each.bytes)}</td>
                      <td>{bytes(each.log_bytes)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </>
        )}
      </Loaded>
    </section>
  );
}

/** By which plan backups are made, how the last ones went, and a button for one now. */
export function Backups() {
  const queries = useQueryClient();
  const backups = useQuery({
    queryKey: ["backups"],
    queryFn: () => answer(api.GET("/api/v1/backups")),
    refetchInterval: 15_000,
  });
  const ask = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/backups")),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["backups"] }),
  });
  return (
    <section>
      <h2>Backups</h2>
      {ask.error && <Failure error={ask.error} />}
      <Loaded query={backups}>
        {(found) =>
          found.plan ? (
            <>
              <p>
                To {found.plan.target}, every {duration(found.plan.every_s)}; {found.plan.keep} are kept.{" "}
                <button
                  type="button"
                  disabled={ask.isPending || found.plan.asked}
                  onClick={() => ask.mutate()}
                >
                  {found.plan.asked ? "One is about to begin" : "Back up now"}
                </button>
              </p>
              <table>
                <thead>
                  <tr>
                    <th scope="col">Started</th>
                    <th scope="col">Name</th>
                    <th scope="col">How it went</th>
                  </tr>
                </thead>
                <tbody>
                  {found.runs.map((run) => (
                    <tr key={run.started_at}>
                      <td>
                        <Time at={run.started_at} />
                      </td>
                      <td>{run.name ?? "–"}</td>
                      <td>
                        {run.error ??
                          (run.ended_at
                            ? `${plural(run.rows ?? 0, "row")}, ${plural(run.blobs ?? 0, "new blob")}`
                            : "being made")}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </>
          ) : (
            <p>
              None are planned. On the server&apos;s machine:{" "}
              <code>easel backup --to s3://… --every day --keep 14</code>
            </p>
          )
        }
      </Loaded>
    </section>
  );
}
