import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { Link } from "react-router";
import { answer, api, type Member } from "../api/client";
import { useMembers } from "../api/members";
import { useMe } from "../session";
import { Admit } from "../admin/Admit";
import { Invitations } from "../admin/Invitations";
import { ServiceAccounts } from "../admin/ServiceAccounts";
import { Grants } from "../admin/Grants";
import { Quotas } from "../admin/Quotas";
import { Secrets } from "../admin/Secrets";
import { Failure } from "../ui/Failure";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { Queues } from "../ui/Queues";
import { Secret } from "../ui/Secret";
import { Time } from "../ui/Time";

export default function People() {
  const project = useProject();
  const members = useMembers(project);
  const me = useMe();
  const mine = members.data?.find((member) => member.id === me.user.id);
  const admin = me.user.platform_admin || mine?.role === "admin";
  return (
    <>
      <header className="head">
        <h1>People</h1>
        {admin && <Link to={`/p/${encodeURIComponent(project)}/audit`}>Audit</Link>}
      </header>
      {admin && <NewPerson project={project} />}
      {me.user.platform_admin && <Admit project={project} />}
      <Loaded query={members}>
        {(found) => <Members project={project} members={found} admin={admin} />}
      </Loaded>
      <section>
        <h2>Queues</h2>
        <Queues project={project} admin={admin} />
      </section>
      {admin && (
        <section>
          <h2>Quotas</h2>
          <Quotas project={project} forProject={me.user.platform_admin} />
        </section>
      )}
      {admin && <Invitations project={project} />}
      {admin && <ServiceAccounts project={project} />}
      {admin && <Secrets project={project} />}
      {admin && <Grants project={project} />}
    </>
  );
}

function NewPerson({ project }: { project: string }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Member["role"]>("member");
  const add = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/projects/{project}/users", { params: { path: { project } }, body: { name, role } }),
      ),
    onSuccess: () => {
      setName("");
      return queries.invalidateQueries({ queryKey: [project, "members"] });
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    add.mutate();
  }
  return (
    <section>
      <form className="row" onSubmit={submit}>
        <label>
          New person
          <input
            required
            maxLength={64}
            value={name}
            onChange={(e) => setName(e.target.value)}
            placeholder="ana"
          />
        </label>
        <label>
          Role
          <select value={role} onChange={(e) => setRole(e.target.value as Member["role"])}>
            <option value="member">member</option>
            <option value="admin">admin</option>
          </select>
        </label>
        <button type="submit" disabled={add.isPending}>
          Add
        </button>
      </form>
      {add.error && <Failure error={add.error} />}
      {add.data?.token.secret && (
        <>
          <p>
            A first token to hand to <strong>{add.data.name}</strong>:
          </p>
          <Secret text={add.data.token.secret} />
        </>
      )}
    </section>
  );
}

function Members({ project, members, admin }: { project: string; members: Member[]; admin: boolean }) {
  const queries = useQueryClient();
  const again = () => queries.invalidateQueries({ queryKey: [project, "members"] });
  const change = useMutation({
    mutationFn: ({ id, role }: { id: string; role: Member["role"] }) =>
      answer(
        api.PATCH("/api/v1/projects/{project}/users/{user}", {
          params: { path: { project, user: id } },
          body: { role },
        }),
      ),
    onSettled: again,
  });
  const remove = useMutation({
    mutationFn: (id: string) =>
      answer(
        api.DELETE("/api/v1/projects/{project}/users/{user}", { params: { path: { project, user: id } } }),
      ),
    onSettled: again,
  });
  const disable = useMutation({
    mutationFn: ({ id, off }: { id: string; off: boolean }) => {
      const params = { path: { project, user: id } };
      return off
        ? answer(
            api.POST("/api/v1/projects/{project}/users/{user}/disable", {
              params,
              body: { kill_running: false },
            }),
          ).then(() => undefined)
        : answer(api.POST("/api/v1/projects/{project}/users/{user}/enable", { params })).then(
            () => undefined,
          );
    },
    onSettled: again,
  });
  const error = change.error ?? remove.error ?? disable.error;
  return (
    <section>
      <h2>Members</h2>
      {error && <Failure error={error} />}
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Role</th>
              <th scope="col">Since</th>
              {admin && (
                <th scope="col">
                  <span className="unseen">Actions</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {members.map((member) => (
              <tr key={member.id}>
                <td>
                  {member.name}
                  {member.service && <span className="tag">program</span>}
                  {member.disabled_at && <span className="tag">disabled</span>}
                </td>
                <td>
                  {admin ? (
                    <select
                      aria-label={`Role of ${member.name}`}
                      value={member.role}
                      onChange={(e) =>
                        change.mutate({ id: member.id, role: e.target.value as Member["role"] })
                      }
                    >
                      <option value="member">member</option>
                      <option value="admin">admin</option>
                    </select>
                  ) : (
                    member.role
                  )}
                </td>
                <td>
                  <Time at={member.since} />
                </td>
                {admin && (
                  <td>
                    <button
                      type="button"
                      className="small"
                      aria-label={`Remove ${member.name}`}
                      onClick={() =>
                        confirm(`Remove ${member.name} from this project?`) && remove.mutate(member.id)
                      }
                    >
                      Remove
                    </button>{" "}
                    <button
                      type="button"
                      className="small"
                      aria-label={`${member.disabled_at ? "Enable" : "Disable"} ${member.name}`}
                      onClick={() =>
                        (member.disabled_at ||
                          confirm(
                            `Disable ${member.name}? Sessions, tokens and waiting jobs end at once; their work stays.`,
                          )) &&
                        disable.mutate({ id: member.id, off: !member.disabled_at })
                      }
                    >
                      {member.disabled_at ? "Enable" : "Disable"}
                    </button>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
