import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useSearchParams } from "react-router";
import { answer, api } from "../api/client";
import { Failure } from "../ui/Failure";
import { Time } from "../ui/Time";

/** The command line that opened this browser waits on this machine, on a port of its own. */
export function wayBack(params: URLSearchParams, code: string | null): string | null {
  const port = Number(params.get("port"));
  const state = params.get("state");
  if (!Number.isInteger(port) || port < 1024 || port > 65535 || !state) return null;
  const told = new URLSearchParams(code ? { state, code } : { state, error: "access_denied" });
  return `http://127.0.0.1:${port}/?${told.toString()}`;
}

/** Where somebody types the code in that `easel login` shows on another machine. */
export default function Device() {
  const [params] = useSearchParams();
  const [code, setCode] = useState(params.get("code") ?? "");
  const path = { user_code: code.trim() };
  const look = useMutation({
    mutationFn: () => answer(api.GET("/api/v1/device/{user_code}", { params: { path } })),
  });
  const reply = useMutation({
    mutationFn: (allow: boolean) =>
      answer(api.POST("/api/v1/device/{user_code}", { params: { path }, body: { allow } })),
    onSuccess: (found) => {
      const back = wayBack(params, found.code ?? null);
      if (back) location.assign(back);
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    look.mutate();
  }
  return (
    <>
      <header className="head">
        <h1>Log in another machine</h1>
      </header>
      {reply.data ? (
        <p role="status">{reply.variables ? "Allowed: the command line is logged in as you." : "Denied."}</p>
      ) : (
        <>
          <form className="row" onSubmit={submit}>
            <label>
              The code that it shows
              <input
                required
                autoFocus
                maxLength={20}
                value={code}
                placeholder="BCDF-GHJK"
                onChange={(e) => {
                  setCode(e.target.value);
                  look.reset();
                }}
              />
            </label>
            <button type="submit" disabled={look.isPending}>
              Look up the code
            </button>
          </form>
          {look.data && (
            <section className="card">
              <p>
                <strong dir="auto">{look.data.client}</strong> at {look.data.address} asked{" "}
                <Time at={look.data.created_at} /> to act as you. Allow it only if you have just begun this
                yourself.
              </p>
              <button
                type="button"
                className="primary"
                disabled={reply.isPending}
                onClick={() => reply.mutate(true)}
              >
                Allow
              </button>{" "}
              <button type="button" disabled={reply.isPending} onClick={() => reply.mutate(false)}>
                Deny
              </button>
            </section>
          )}
        </>
      )}
      {(look.error ?? reply.error) && <Failure error={look.error ?? reply.error} />}
    </>
  );
}
