import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api } from "../api/client";
import { Failure } from "../ui/Failure";
import { Loaded } from "../ui/Loaded";

/** What jobs may name in their environment. Values go in and never come out. */
export function Secrets({ project }: { project: string }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const queryKey = [project, "secrets"];
  const again = () => queries.invalidateQueries({ queryKey });
  const names = useQuery({
    queryKey,
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/secrets", { params: { path: { project } } })).then(
        (found) => found.items,
      ),
  });
  const put = useMutation({
    mutationFn: () =>
      answer(
        api.PUT("/api/v1/projects/{project}/secrets/{name}", {
          params: { path: { project, name } },
          body: { value },
        }),
      ),
    onSuccess: () => {
      setName("");
      setValue("");
      return again();
    },
  });
  const remove = useMutation({
    mutationFn: (which: string) =>
      answer(
        api.DELETE("/api/v1/projects/{project}/secrets/{name}", {
          params: { path: { project, name: which } },
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
      <h2>Secrets</h2>
      <form className="row" onSubmit={submit}>
        <label>
          Secret's name
          <input
            required
            maxLength={64}
            value={name}
            onChange={(e) => setName(e.target.value)}
            placeholder="wandb-key"
          />
        </label>
        <label className="wide">
          Secret value
          <input
            required
            type="password"
            autoComplete="off"
            value={value}
            onChange={(e) => setValue(e.target.value)}
          />
        </label>
        <button type="submit" disabled={put.isPending}>
          Save the secret
        </button>
      </form>
      {(put.error ?? remove.error) && <Failure error={put.error ?? remove.error} />}
      <Loaded query={names}>
        {(found) =>
          found.length === 0 ? (
            <p className="quiet">None. A job names a secret in its environment and gets its value.</p>
          ) : (
            <ul className="list">
              {found.map((one) => (
                <li key={one}>
                  <code>{one}</code>{" "}
                  <button
                    type="button"
                    className="small"
                    aria-label={`Remove the secret ${one}`}
                    onClick={() =>
                      confirm(`Remove the secret ${one}? Jobs that name it fail from now on.`) &&
                      remove.mutate(one)
                    }
                  >
                    Remove
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  );
}
