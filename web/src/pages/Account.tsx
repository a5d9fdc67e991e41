import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api } from "../api/client";
import { useMe } from "../session";
import { Failure } from "../ui/Failure";
import { JoinProject } from "../ui/Invited";
import { Loaded } from "../ui/Loaded";
import { Secret } from "../ui/Secret";
import { Time } from "../ui/Time";

export default function Account() {
  const me = useMe();
  const queries = useQueryClient();
  const leave = useMutation({
    mutationFn: async () => {
      const { url } = await answer(api.GET("/api/v1/log-out-address"));
      await answer(api.DELETE("/api/v1/session"));
      return url;
    },
    onSuccess: (url) => {
      queries.setQueryData(["me"], null);
      if (url) location.assign(url); // log out of the provider too
    },
  });
  return (
    <>
      <header className="head">
        <h1>Account</h1>
        <button type="button" onClick={() => leave.mutate()}>
          Log out
        </button>
      </header>
      {leave.error && <Failure error={leave.error} />}
      <dl className="facts">
        <div>
          <dt>Name</dt>
          <dd dir="auto">{me.user.name}</dd>
        </div>
        <div>
          <dt>Role</dt>
          <dd>{me.user.platform_admin ? "Platform admin" : "Member of projects"}</dd>
        </div>
        <div>
          <dt>User id</dt>
          <dd>
            <code>{me.user.id}</code>
          </dd>
        </div>
        <div>
          <dt>Since</dt>
          <dd>
            <Time at={me.user.created_at} />
          </dd>
        </div>
      </dl>
      <Tokens current={me.token_id} />
      <JoinProject />
    </>
  );
}

function Tokens({ current }: { current: string }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const again = () => queries.invalidateQueries({ queryKey: ["tokens"] });
  const tokens = useQuery({
    queryKey: ["tokens"],
    queryFn: () => answer(api.GET("/api/v1/tokens", { params: { query: { limit: 200 } } })),
  });
  const add = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/tokens", { body: { name } })),
    onSuccess: () => {
      setName("");
      return again();
    },
  });
  const revoke = useMutation({
    mutationFn: (id: string) =>
      answer(api.DELETE("/api/v1/tokens/{token_id}", { params: { path: { token_id: id } } })),
    onSuccess: again,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    add.mutate();
  }
  return (
    <section>
      <h2>Tokens</h2>
      <p className="quiet">
        For the command line (easel login) and the Python client. Each opens all that you may do.
      </p>
      <form className="row" onSubmit={submit}>
        <label>
          Name of a new token
          <input
            required
            maxLength={100}
            value={name}
            onChange={(e) => setName(e.target.value)}
            placeholder="laptop"
          />
        </label>
        <button type="submit" disabled={add.isPending}>
          Create
        </button>
      </form>
      {add.data?.secret && <Secret text={add.data.secret} />}
      {(add.error ?? revoke.error) && <Failure error={add.error ?? revoke.error} />}
      <Loaded query={tokens}>
        {(page) => (
          <div className="scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Made</th>
                  <th scope="col">Last used</th>
                  <th scope="col">Expires</th>
                  <th scope="col">
                    <span className="unseen">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {page.items.map((token) => (
                  <tr key={token.id}>
                    <td className="long" dir="auto">
                      {token.name}
                      {token.id === current && <span className="tag">this session</span>}
                    </td>
                    <td>
                      <Time at={token.created_at} />
                    </td>
                    <td>
                      <Time at={token.last_used_at} />
                    </td>
                    <td>{token.expires_at ? <Time at={token.expires_at} /> : "never"}</td>
                    <td>
                      {token.revoked_at ? (
                        "revoked"
                      ) : (
                        <button
                          type="button"
                          className="small"
                          aria-label={`Revoke ${token.name}`}
                          onClick={() => revoke.mutate(token.id)}
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
        )}
      </Loaded>
    </section>
  );
}
