import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api, type Me } from "../api/client";
import { DirectoryLogIn } from "../ui/DirectoryLogIn";
import { Failure } from "../ui/Failure";
import { AcceptInvitation } from "../ui/Invited";

export function LogIn({ ended, onLogIn }: { ended: boolean; onLogIn: (me: Me) => void }) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);

  const ways = useQuery({ queryKey: ["me", "sign-on"], queryFn: () => answer(api.GET("/api/v1/sign-on")) });
  const here = encodeURIComponent(location.pathname + location.search);

  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      onLogIn(await answer(api.POST("/api/v1/session", { body: { token: token.trim() } })));
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  }

  return (
    <main className="alone">
      <form className="card log-in" onSubmit={(event) => void submit(event)}>
        <h1>
          <img src="/easel.svg" alt="" width="36" height="36" /> Easel
        </h1>
        <p>One pool of devices, shared by everybody's models.</p>
        {ended && (
          <p role="status" className="notice">
            Your session has ended. Log in to go on where you were.
          </p>
        )}
        {ways.data?.items
          .filter((way) => !way.password)
          .map((way) => (
            <a key={way.name} className="button" href={`/api/v1/sign-on/${way.name}/start?next=${here}`}>
              Log in with {way.label}
            </a>
          ))}
        <label>
          Token
          <input
            type="password"
            name="token"
            autoComplete="current-password"
            required
            autoFocus
            value={token}
            onChange={(event) => setToken(event.target.value)}
            placeholder="easel_…"
          />
        </label>
        <button type="submit" className="primary" disabled={busy || !token.trim()}>
          {busy ? "Logging in…" : "Log in"}
        </button>
        {error !== null && <Failure error={error} titles={{ 401: "This token opens nothing" }} />}
        <p className="quiet">
          A project's admin hands out tokens. The first one of a new server was printed by{" "}
          <code>easel up</code>.
        </p>
      </form>
      {ways.data?.items
        .filter((way) => way.password)
        .map((way) => (
          <DirectoryLogIn key={way.name} name={way.name} label={way.label} onLogIn={onLogIn} />
        ))}
      <AcceptInvitation onLogIn={onLogIn} />
    </main>
  );
}
