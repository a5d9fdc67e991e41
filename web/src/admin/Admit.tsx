import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api, type Member } from "../api/client";
import { Failure } from "../ui/Failure";

/** For platform admins: somebody who is in another project already, by the id that their account page shows. */
export function Admit({ project }: { project: string }) {
  const queries = useQueryClient();
  const [id, setId] = useState("");
  const [role, setRole] = useState<Member["role"]>("member");
  const admit = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/projects/{project}/users/admit", {
          params: { path: { project } },
          body: { user_id: id.trim(), role },
        }),
      ),
    onSuccess: () => {
      setId("");
      return queries.invalidateQueries({ queryKey: [project, "members"] });
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    admit.mutate();
  }
  return (
    <section>
      <form className="row" onSubmit={submit}>
        <label>
          Somebody from another project, by user id
          <input
            required
            maxLength={40}
            value={id}
            onChange={(e) => setId(e.target.value)}
            placeholder="usr_…"
          />
        </label>
        <label>
          Role here
          <select value={role} onChange={(e) => setRole(e.target.value as Member["role"])}>
            <option value="member">member</option>
            <option value="admin">admin</option>
          </select>
        </label>
        <button type="submit" disabled={admit.isPending}>
          Admit
        </button>
      </form>
      {admit.error && <Failure error={admit.error} />}
    </section>
  );
}
