import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "../api/client";
import { Failure } from "../ui/Failure";
import { Loaded } from "../ui/Loaded";
import { Secret } from "../ui/Secret";
import { Time } from "../ui/Time";

/** The credentials with which machines join the pool. */
export function WorkerTokens() {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const again = () => queries.invalidateQueries({ queryKey: ["worker-tokens"] });
  const tokens = useQuery({
    queryKey: ["worker-tokens"],
    queryFn: () => answer(api.GET("/api/v1/worker-tokens")).then((found) => found.items),
  });
  const add = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/worker-tokens", { body: { name } })),
    onSuccess: () => {
      setName("");
      return again();
    },
  });
  const revoke = useMutation({
    mutationFn: (token_id: string) =>
      answer(api.DELETE("/api/v1/worker-tokens/{token_id}", { params: { path: { token_id } } })),
    onSuccess: again,
  });
  return (
    <section>
      <h2>Machines that may join</h2>
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          add.mutate();
        }}
      >
        <label>
          Name of a new machine&apos;s token
          <input
            required
            maxLength={64}
            value={name}
            placeholder="node7"
            onChange={(e) => setName(e.target.value)}
          />
        </label>
        <button type="submit" disabled={add.isPending}>
          Create a token
        </button>
      </form>
      {add.data?.secret && <Secret text={add.data.secret} />}
      {(add.error ?? revoke.error) && <Failure error={add.error ?? revoke.error} />}
      <Loaded query={tokens}>
        {(found) =>
          found.length === 0 ? (
            <p className="quiet">
              None: only this server&apos;s own machine runs jobs. There <code>easel worker</code> needs one.
            </p>
          ) : (
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Made</th>
                    <th scope="col">Last used</th>
                    <th scope="col">
                      <span className="unseen">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {found.map((token) => (
                    <tr key={token.id}>
                      <td className="long">{token.name}</td>
                      <td>
                        <Time at={token.created_at} />
                      </td>
                      <td>
                        <Time at={token.last_used_at} />
                      </td>
                      <td>
                        {token.revoked_at ? (
                          "revoked"
                        ) : (
                          <button
                            type="button"
                            className="small"
                            aria-label={`Revoke the token ${token.name}`}
                            onClick={() =>
                              confirm(`Revoke ${token.name}? Its machines are lost to the pool.`) &&
                              revoke.mutate(token.id)
                            }
                          >
                            Revoke
                          </button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </section>
  );
}
