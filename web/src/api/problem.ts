/** What went wrong, as the server said it (RFC 9457), or as we must say it for a server that does not answer. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    detail: string,
    readonly requestId: string | null = null,
    readonly retryAfter: number | null = null,
  ) {
    super(detail);
    this.name = "Problem";
  }
}

const WITHOUT_WORDS: Record<number, string> = {
  500: "The server met an unexpected error. Try again; if it stays, tell the admin.",
  502: "The server does not answer: it may be restarting. This page tries again by itself.",
  503: "The server is busy or being upgraded. This page tries again by itself.",
  504: "The server took too long to answer. This page tries again by itself.",
};

/** `body` is whatever came: a problem document, a proxy's HTML page, nothing. Only text is ever taken from it. */
export function problemOf(status: number, body: unknown, headers: Headers): Problem {
  const said = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const text = (name: string) => (typeof said[name] === "string" ? (said[name] as string) : null);
  const detail = text("detail") ?? WITHOUT_WORDS[status] ?? `The server answered with status ${status}.`;
  const after = Number(headers.get("retry-after"));
  return new Problem(
    status,
    text("kind") ?? "unexpected",
    detail,
    text("request_id") ?? headers.get("x-request-id"),
    after > 0 ? after : null,
  );
}

/** 0 is our status for "no answer at all". */
export function problemFrom(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof TypeError)
    return new Problem(0, "unreachable", "The server does not answer. This page tries again by itself.");
  return new Problem(-1, "page", error instanceof Error ? error.message : String(error));
}

/** Worth asking again: nothing was decided, the server was merely not able to answer. */
export function isPassing(error: unknown): boolean {
  return [0, 429, 502, 503, 504].includes(problemFrom(error).status);
}
