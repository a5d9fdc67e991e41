import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answer, api } from "../api/client";
import { Failure } from "./Failure";
import { count } from "./format";
import { Loaded } from "./Loaded";

export function useQueues(project: string) {
  return useQuery({
    queryKey: [project, "queues"],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/queues", { params: { path: { project } } })).then(
        (q) => q.items,
      ),
  });
}

/** Who waits and who runs; admins pause, resume and set how many may run at once. */
export function Queues({ project, admin = false }: { project: string; admin?: boolean }) {
  const queries = useQueryClient();
  const queues = useQueues(project);
  const change = useMutation({
    mutationFn: (body: { user: string; paused?: boolean; max_active?: number }) =>
      answer(api.PATCH("/api/v1/projects/{project}/queues", { params: { path: { project } }, body })),
    onSettled: () => queries.invalidateQueries({ queryKey: [project, "queues"] }),
  });
  return (
    <Loaded query={queues}>
      {(found) => (
        <>
          {change.error && <Failure error={change.error} />}
          {found.length === 0 ? (
            <p className="quiet">Nobody has submitted a job yet.</p>
          ) : (
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Who</th>
                    <th scope="col" className="number">
                      Waiting
                    </th>
                    <th scope="col" className="number">
                      Active
                    </th>
                    <th scope="col">State</th>
                  </tr>
                </thead>
                <tbody>
                  {found.map((queue) => (
                    <tr key={queue.user_id}>
                      <td>{queue.user}</td>
                      <td className="number">{count(queue.queued)}</td>
                      <td className="number">
                        {count(queue.active)} of{" "}
                        {admin ? (
                          <input
                            key={queue.max_active}
                            type="number"
                            className="few"
                            min="1"
                            max="100000"
                            aria-label={`Most active jobs of ${queue.user}`}
                            defaultValue={queue.max_active}
                            onBlur={(event) => {
                              const limit = Number(event.target.value);
                              if (limit >= 1 && limit !== queue.max_active)
                                change.mutate({ user: queue.user, max_active: limit });
                            }}
                            onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
                          />
                        ) : (
                          count(queue.max_active)
                        )}
                      </td>
                      <td>
                        {queue.paused ? "paused " : "open "}
                        {admin && (
                          <button
                            type="button"
                            className="small"
                            aria-label={`${queue.paused ? "Resume" : "Pause"} the queue of ${queue.user}`}
                            onClick={() => change.mutate({ user: queue.user, paused: !queue.paused })}
                          >
                            {queue.paused ? "Resume" : "Pause"}
                          </button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </>
      )}
    </Loaded>
  );
}
