import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api, type Schemas } from "../api/client";
import { Failure } from "../ui/Failure";
import { Loaded } from "../ui/Loaded";

type Grant = Schemas["Grant"];
type Scope = Schemas["PutGrant"]["scope"];

/** Who may read or write what; where nothing is granted, every member may. */
export function Grants({ project }: { project: string }) {
  const queries = useQueryClient();
  const params = { path: { project } };
  const grants = useQuery({
    queryKey: [project, "grants"],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/grants", { params })).then((found) => found.items),
  });
  const again = () => queries.invalidateQueries({ queryKey: [project, "grants"] });
  const [form, setForm] = useState({
    scope: "path" as Scope,
    pattern: "",
    principal: "",
    read: true,
    write: false,
  });
  const put = useMutation({
    mutationFn: () => answer(api.PUT("/api/v1/projects/{project}/grants", { params, body: form })),
    onSuccess: () => {
      setForm({ ...form, pattern: "", principal: "" });
      return again();
    },
  });
  const remove = useMutation({
    mutationFn: ({ scope, pattern, principal }: Grant) =>
      answer(
        api.DELETE("/api/v1/projects/{project}/grants", {
          params: { ...params, query: { scope: scope as Scope, pattern, principal } },
        }),
      ),
    onSettled: again,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    put.mutate();
  }
  return (
    <section>
      <h2>Who may read and write</h2>
      <form className="row" onSubmit={submit}>
        <label>
          What
          <select value={form.scope} onChange={(e) => setForm({ ...form, scope: e.target.value as Scope })}>
            <option value="path">files below a path</option>
            <option value="fileset">file sets by name</option>
          </select>
        </label>
        <label>
          Path or name
          <input
            required
            value={form.pattern}
            onChange={(e) => setForm({ ...form, pattern: e.target.value })}
            placeholder={form.scope === "path" ? "/private/" : "labels"}
          />
        </label>
        <label>
          For whom
          <input
            required
            value={form.principal}
            onChange={(e) => setForm({ ...form, principal: e.target.value })}
            placeholder="user:ana, group:lab"
          />
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={form.read}
            onChange={(e) => setForm({ ...form, read: e.target.checked })}
          />{" "}
          read
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={form.write}
            onChange={(e) => setForm({ ...form, write: e.target.checked })}
          />{" "}
          write
        </label>
        <button type="submit" disabled={put.isPending}>
          Grant
        </button>
      </form>
      {(put.error ?? remove.error) && <Failure error={put.error ?? remove.error} />}
      <Loaded query={grants}>
        {(found) =>
          found.length === 0 ? (
            <p className="quiet">
              Nothing is granted: every member may read and write everything in this project.
            </p>
          ) : (
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">What</th>
                    <th scope="col">For whom</th>
                    <th scope="col">May</th>
                    <th scope="col">
                      <span className="unseen">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {found.map((grant) => (
                    <tr key={`${grant.scope} ${grant.pattern} ${grant.principal}`}>
                      <td className="long" dir="auto">
                        {grant.scope === "path" ? "files below" : "file sets"} {grant.pattern}
                      </td>
                      <td>{grant.principal}</td>
                      <td>
                        {[grant.read && "read", grant.write && "write"].filter(Boolean).join(" and ") ||
                          "nothing"}
                      </td>
                      <td>
                        <button
                          type="button"
                          className="small"
                          aria-label={`Take back ${grant.pattern} from ${grant.principal}`}
                          onClick={() => remove.mutate(grant)}
                        >
                          Take back
                        </button>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
      <Groups project={project} />
    </section>
  );
}

function Groups({ project }: { project: string }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [members, setMembers] = useState("");
  const groups = useQuery({
    queryKey: [project, "groups"],
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/groups", { params: { path: { project } } })).then(
        (found) => found.items,
      ),
  });
  const set = useMutation({
    mutationFn: () => {
      const body = {
        members: members
          .split(",")
          .map((one) => one.trim())
          .filter(Boolean),
      };
      return answer(
        api.PUT("/api/v1/projects/{project}/groups/{name}", { params: { path: { project, name } }, body }),
      );
    },
    onSuccess: () => {
      setName("");
      setMembers("");
      return queries.invalidateQueries({ queryKey: [project, "groups"] });
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    set.mutate();
  }
  return (
    <>
      <h3>Groups</h3>
      <form className="row" onSubmit={submit}>
        <label>
          Group
          <input
            required
            maxLength={64}
            value={name}
            onChange={(e) => setName(e.target.value)}
            placeholder="lab"
          />
        </label>
        <label className="wide">
          Its members, by commas; none removes it
          <input value={members} onChange={(e) => setMembers(e.target.value)} placeholder="ana, ben" />
        </label>
        <button type="submit" disabled={set.isPending}>
          Set the group
        </button>
      </form>
      {set.error && <Failure error={set.error} />}
      <Loaded query={groups}>
        {(found) => (
          <ul className="list">
            {found.map((group) => (
              <li key={group.name}>
                <strong>{group.name}</strong>: {group.members.join(", ")}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </>
  );
}
