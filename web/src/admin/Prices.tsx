import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api } from "../api/client";
import { Failure } from "../ui/Failure";
import { moment } from "../ui/format";
import { Loaded } from "../ui/Loaded";

/** The price books over time; a new one holds from now or from a moment to come. */
export function Prices() {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [toml, setToml] = useState("");
  const [since, setSince] = useState("");
  const prices = useQuery({ queryKey: ["prices"], queryFn: () => answer(api.GET("/api/v1/prices")) });
  const set = useMutation({
    mutationFn: () =>
      answer(
        api.PUT("/api/v1/prices", {
          body: {
            name: name || null,
            toml: name ? null : toml,
            since: since ? new Date(since).toISOString() : null,
          },
        }),
      ),
    onSuccess: (found) => {
      queries.setQueryData(["prices"], found);
      setToml("");
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    set.mutate();
  }
  return (
    <section>
      <h2>Prices</h2>
      <Loaded query={prices}>
        {(found) => (
          <>
            {found.items.length === 0 ? (
              <p className="quiet">No prices are set: jobs cost nothing.</p>
            ) : (
              <ul className="list">
                {found.items.map((change) => (
                  <li key={change.since}>
                    <details>
                      <summary>
                        {String(change.book.name ?? "a book")}, since {moment(change.since)}
                      </summary>
                      <pre tabIndex={0}>{JSON.stringify(change.book, null, 2)}</pre>
                    </details>
                  </li>
                ))}
              </ul>
            )}
            <form className="stack" onSubmit={submit}>
              <div className="row">
                <label>
                  Price book
                  <select value={name} onChange={(e) => setName(e.target.value)}>
                    <option value="">my own, as TOML</option>
                    {found.shipped.map((one) => (
                      <option key={one}>{one}</option>
                    ))}
                  </select>
                </label>
                <label>
                  From (empty: now)
                  <input type="datetime-local" value={since} onChange={(e) => setSince(e.target.value)} />
                </label>
                <button type="submit" disabled={set.isPending}>
                  Set the prices
                </button>
              </div>
              {!name && (
                <label>
                  The book
                  <textarea
                    required
                    rows={6}
                    spellCheck={false}
                    value={toml}
                    onChange={(e) => setToml(e.target.value)}
                  />
                </label>
              )}
            </form>
          </>
        )}
      </Loaded>
      {set.error && <Failure error={set.error} />}
    </section>
  );
}
