import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api, type Member } from "../api/client";
import { Failure } from "../ui/Failure";
import { Loaded } from "../ui/Loaded";
import { Secret } from "../ui/Secret";
import { Time } from "../ui/Time";

/** Codes with which people join this project. */
export function Invitations({ project }: { project: string }) {
  const queries = useQueryClient();
  const [note, setNote] = useState("");
  const [role, setRole] = useState<Member["role"]>("member");
  const again = () => queries.invalidateQueries({ queryKey: [project, "invitations"] });
  const open = useQuery({
    queryKey: [project, "invitations"],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/invitations", {
          params: { path: { project }, query: { limit: 100 } },
        }),
      ),
  });
  const invite = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/projects/{project}/invitations", {
          params: { path: { project } },
          body: { role, note, days: 7 },
        }),
      ),
    onSuccess: again,
  });
  const withdraw = useMutation({
    mutationFn: (invitation: string) =>
      answer(
        api.DELETE("/api/v1/projects/{project}/invitations/{invitation}", {
          params: { path: { project, invitation } },
        }),
      ),
    onSuccess: again,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    invite.mutate();
  }
  return (
    <section>
      <h2>Invitations</h2>
      <form className="row" onSubmit={submit}>
        <label className="wide">
          Note (who it is meant for)
          <input value={note} maxLength={200} onChange={(e) => setNote(e.target.value)} />
        </label>
        <label>
          Invited as
          <select value={role} onChange={(e) => setRole(e.target.value as Member["role"])}>
            <option value="member">member</option>
            <option value="admin">admin</option>
          </select>
        </label>
        <button type="submit" disabled={invite.isPending}>
          Invite
        </button>
      </form>
      {invite.data?.code && <Secret text={invite.data.code} />}
      {(invite.error ?? withdraw.error) && <Failure error={invite.error ?? withdraw.error} />}
      <Loaded query={open}>
        {(page) => (
          <ul>
            {page.items
              .filter((each) => !each.ended_at)
              .map((each) => (
                <li key={each.id}>
                  <span dir="auto">{each.note || "no note"}</span> ({each.role}), until{" "}
                  <Time at={each.expires_at} />{" "}
                  <button type="button" className="small" onClick={() => withdraw.mutate(each.id)}>
                    Withdraw
                  </button>
                </li>
              ))}
          </ul>
        )}
      </Loaded>
    </section>
  );
}
