import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { Link } from "react-router";
import { answer, api, type Me } from "../api/client";
import { Failure } from "./Failure";
import { Secret } from "./Secret";

/** For somebody without an account: join a project with the code of an invitation, as a new person. */
export function AcceptInvitation({ onLogIn }: { onLogIn: (me: Me) => void }) {
  const [code, setCode] = useState("");
  const [name, setName] = useState("");
  const accept = useMutation({
    mutationFn: () =>
      answer(api.POST("/api/v1/invitations/accept", { body: { code: code.trim(), name: name.trim() } })),
  });
  const enter = useMutation({
    mutationFn: (token: string) => answer(api.POST("/api/v1/session", { body: { token } })),
    onSuccess: onLogIn,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    accept.mutate();
  }
  const secret = accept.data?.token.secret;
  if (accept.data && secret)
    return (
      <section className="card log-in" aria-label="You have joined">
        <p role="status">
          You are <strong dir="auto">{accept.data.member.name}</strong> in{" "}
          <strong dir="auto">{accept.data.project}</strong>. This token is your way in:
        </p>
        <Secret text={secret} />
        <button
          type="button"
          className="primary"
          disabled={enter.isPending}
          onClick={() => enter.mutate(secret)}
        >
          I have kept it: go on
        </button>
        {enter.error && <Failure error={enter.error} />}
      </section>
    );
  return (
    <details className="card log-in" open={new URLSearchParams(location.search).has("invitation")}>
      <summary>I have an invitation</summary>
      <form className="stack" onSubmit={submit}>
        <label>
          Code of the invitation
          <input required maxLength={200} value={code} onChange={(e) => setCode(e.target.value)} />
        </label>
        <label>
          Your name here
          <input
            required
            maxLength={64}
            value={name}
            placeholder="ana"
            onChange={(e) => setName(e.target.value)}
          />
        </label>
        <button type="submit" className="primary" disabled={accept.isPending}>
          Join
        </button>
        {accept.error && (
          <Failure error={accept.error} titles={{ 401: "No open invitation has this code" }} />
        )}
      </form>
    </details>
  );
}

/** For somebody who is logged in: join one more project with a code. */
export function JoinProject() {
  const queries = useQueryClient();
  const [code, setCode] = useState("");
  const join = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/invitations/join", { body: { code: code.trim() } })),
    onSuccess: () => {
      setCode("");
      return queries.invalidateQueries({ queryKey: ["projects"] });
    },
  });
  return (
    <section>
      <h2>Join a project</h2>
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          join.mutate();
        }}
      >
        <label className="wide">
          Code of an invitation
          <input required maxLength={200} value={code} onChange={(e) => setCode(e.target.value)} />
        </label>
        <button type="submit" disabled={join.isPending}>
          Join
        </button>
      </form>
      {join.data && (
        <p role="status">
          You are in{" "}
          <Link to={`/p/${encodeURIComponent(join.data.project)}`} dir="auto">
            {join.data.project}
          </Link>
          .
        </p>
      )}
      {join.error && <Failure error={join.error} />}
    </section>
  );
}
