import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api } from "../api/client";
import { Failure } from "../ui/Failure";
import { Loaded } from "../ui/Loaded";
import { Secret } from "../ui/Secret";
import { Time } from "../ui/Time";

const VERBS = ["read", "write", "run", "manage"] as const;
type Verb = (typeof VERBS)[number];

/** Programs of this project, with tokens of their own: what each may do, until when, and when it was last used. */
export function ServiceAccounts({ project }: { project: string }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [verbs, setVerbs] = useState<Verb[]>(["read"]);
  const again = () => queries.invalidateQueries({ queryKey: [project, "service-accounts"] });
  const accounts = useQuery({
    queryKey: [project, "service-accounts"],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/service-accounts", { params: { path: { project } } })),
  });
  const add = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/projects/{project}/service-accounts", {
          params: { path: { project } },
          body: { name, role: "member" },
        }),
      ),
    onSuccess: () => {
      setName("");
      return again();
    },
  });
  const issue = useMutation({
    mutationFn: (account: string) =>
      answer(
        api.POST("/api/v1/projects/{project}/service-accounts/{account}/tokens", {
          params: { path: { project, account } },
          body: { name: "from the dashboard", verbs, projects: [], days: 90 },
        }),
      ),
    onSuccess: again,
  });
  const rotate = useMutation({
    mutationFn: ({ account, token_id }: { account: string; token_id: string }) =>
      answer(
        api.POST("/api/v1/projects/{project}/service-accounts/{account}/tokens/{token_id}/rotate", {
          params: { path: { project, account, token_id } },
          body: { overlap_hours: 24 },
        }),
      ),
    onSuccess: again,
  });
  const revoke = useMutation({
    mutationFn: ({ account, token_id }: { account: string; token_id: string }) =>
      answer(
        api.DELETE("/api/v1/projects/{project}/service-accounts/{account}/tokens/{token_id}", {
          params: { path: { project, account, token_id } },
        }),
      ),
    onSuccess: again,
  });
  const made = rotate.data?.secret ?? issue.data?.secret;
  const error = add.error ?? issue.error ?? rotate.error ?? revoke.error;
  function submit(event: FormEvent) {
    event.preventDefault();
    add.mutate();
  }
  return (
    <section>
      <h2>Service accounts</h2>
      <form className="row" onSubmit={submit}>
        <label>
          Name of a new program
          <input required maxLength={64} value={name} onChange={(e) => setName(e.target.value)} />
        </label>
        <button type="submit" disabled={add.isPending}>
          Create
        </button>
        <fieldset className="words">
          <legend>New tokens may</legend>
          {VERBS.map((verb) => (
            <label key={verb}>
              <input
                type="checkbox"
                checked={verbs.includes(verb)}
                onChange={(e) =>
                  setVerbs(e.target.checked ? [...verbs, verb] : verbs.filter((each) => each !== verb))
                }
              />{" "}
              {verb}
            </label>
          ))}
        </fieldset>
      </form>
      {made && <Secret text={made} />}
      {error && <Failure error={error} />}
      <Loaded query={accounts}>
        {(page) => (
          <div className="scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">Program</th>
                  <th scope="col">Token</th>
                  <th scope="col">May</th>
                  <th scope="col">Last used</th>
                  <th scope="col">Expires</th>
                  <th scope="col">
                    <span className="unseen">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {page.items.flatMap((account) => [
                  <tr key={account.id}>
                    <td>
                      <strong dir="auto">{account.name}</strong>
                      {account.disabled_at && " (disabled)"}
                    </td>
                    <td colSpan={4} />
                    <td>
                      <button
                        type="button"
                        className="small"
                        disabled={verbs.length === 0 || issue.isPending}
                        onClick={() => issue.mutate(account.id)}
                      >
                        New token
                      </button>
                    </td>
                  </tr>,
                  ...(account.tokens ?? [])
                    .filter((token) => !token.revoked_at)
                    .map((token) => (
                      <tr key={token.id}>
                        <td />
                        <td className="long">{token.name}</td>
                        <td>{token.scope?.verbs.join(", ") ?? "everything"}</td>
                        <td>
                          <Time at={token.last_used_at} />
                        </td>
                        <td>{token.expires_at ? <Time at={token.expires_at} /> : "never"}</td>
                        <td>
                          <button
                            type="button"
                            className="small"
                            onClick={() => rotate.mutate({ account: account.id, token_id: token.id })}
                          >
                            Rotate
                          </button>{" "}
                          <button
                            type="button"
                            className="small"
                            onClick={() => revoke.mutate({ account: account.id, token_id: token.id })}
                          >
                            Revoke
                          </button>
                        </td>
                      </tr>
                    )),
                ])}
              </tbody>
            </table>
            {page.items.length === 0 && <p className="quiet">None yet.</p>}
          </div>
        )}
      </Loaded>
    </section>
  );
}
