import { describe, expect, it } from "vitest";
import { isPassing, Problem, problemFrom, problemOf } from "./problem";

describe("problems", () => {
  it("carry the server's words and the request's id", () => {
    const problem = problemOf(409, { detail: "taken", kind: "conflict", request_id: "r1" }, new Headers());
    expect([problem.message, problem.kind, problem.requestId]).toEqual(["taken", "conflict", "r1"]);
  });
  it("are explained also when a proxy answers with a page", () => {
    expect(problemOf(503, "<html>", new Headers({ "retry-after": "7" }))).toMatchObject({
      status: 503,
      retryAfter: 7,
    });
    expect(problemOf(503, "<html>", new Headers()).message).toContain("tries again");
  });
  it("are worth repeating only when nothing was decided", () => {
    expect(isPassing(new TypeError("fetch failed"))).toBe(true);
    expect(isPassing(new Problem(503, "try-later", ""))).toBe(true);
    expect(isPassing(new Problem(404, "not-found", ""))).toBe(false);
    expect(problemFrom(new TypeError("x")).status).toBe(0);
  });
});
