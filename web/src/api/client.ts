import createClient from "openapi-fetch";
import type { components, paths } from "./schema";
import { Problem, problemOf } from "./problem";

export type Schemas = components["schemas"];
export type Me = Schemas["Me"];
export type Project = Schemas["Project"];
export type Member = Schemas["Member"];
export type Token = Schemas["Token"];
export type Job = Schemas["Job"];
export type Event = Schemas["Event"];
export type Device = Schemas["Device"];
export type Queue = Schemas["Queue"];
export type LogLine = Schemas["LogLine"];

let csrf: string | null = null;
let onSignedOut: () => void = () => {};

/** What a change must carry to prove that it comes from this page; the server gives it with `/me`. */
export function setCsrf(token: string | null | undefined): void {
  csrf = token ?? null;
}

export function csrfHeaders(): Record<string, string> {
  return csrf ? { "X-CSRF-Token": csrf } : {};
}

/** Called when any answer says that the session is over. */
export function whenSignedOut(call: () => void): void {
  onSignedOut = call;
}

export const api = createClient<paths>({
  baseUrl: "/",
  querySerializer: { array: { style: "form", explode: true } },
});

api.use({
  onRequest({ request }) {
    if (request.method !== "GET")
      for (const [name, value] of Object.entries(csrfHeaders())) request.headers.set(name, value);
    if (request.method === "POST") request.headers.set("Idempotency-Key", randomKey());
    return request;
  },
});

/** `crypto.randomUUID` exists only over HTTPS, and labs run plain HTTP inside. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join(
    "",
  );
}

/** The answer's data, or a Problem thrown. */
export async function answer<T>(
  call: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  const { data, error, response } = await call;
  if (response.ok) return data as T;
  throw failed(problemOf(response.status, error, response.headers));
}

/** For streams, which openapi-fetch does not read. */
export function failed(problem: Problem): Problem {
  if (problem.status === 401) onSignedOut();
  return problem;
}
