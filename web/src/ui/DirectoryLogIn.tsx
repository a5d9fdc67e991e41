import { useState, type FormEvent } from "react";
import { answer, api, type Me } from "../api/client";
import { Failure } from "./Failure";

/** Name and password for a directory (LDAP); the session is the same as with a token. */
export function DirectoryLogIn({
  name,
  label,
  onLogIn,
}: {
  name: string;
  label: string;
  onLogIn: (me: Me) => void;
}) {
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);

  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const path = { path: { provider: name } };
      await answer(
        api.POST("/api/v1/sign-on/{provider}/password", { params: path, body: { user, password } }),
      );
      onLogIn(await answer(api.GET("/api/v1/me")));
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  }

  return (
    <form className="card log-in" onSubmit={(event) => void submit(event)}>
      <h2>{label}</h2>
      <label>
        Name
        <input
          autoComplete="username"
          required
          value={user}
          onChange={(event) => setUser(event.target.value)}
        />
      </label>
      <label>
        Password
        <input
          type="password"
          autoComplete="current-password"
          required
          value={password}
          onChange={(event) => setPassword(event.target.value)}
        />
      </label>
      <button type="submit" className="primary" disabled={busy || !user || !password}>
        {busy ? "Logging in…" : "Log in"}
      </button>
      {error !== null && <Failure error={error} titles={{ 401: "Name or password is wrong" }} />}
    </form>
  );
}
