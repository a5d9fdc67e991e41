import { isRouteErrorResponse, useRouteError } from "react-router";
import { problemFrom, Problem } from "../api/problem";

const TITLES: Record<number, string> = {
  0: "No answer",
  401: "Your session has ended",
  403: "Not allowed",
  404: "Nothing here",
  429: "Too many requests",
  500: "The server failed",
  503: "The server is busy",
};

/** What went wrong and what to do, never a blank page. */
export function Failure({
  error,
  again,
  titles = {},
}: {
  error: unknown;
  again?: () => void;
  titles?: Record<number, string>;
}) {
  const problem = problemFrom(error);
  return (
    <div className="failure" role="alert">
      <strong>{titles[problem.status] ?? TITLES[problem.status] ?? "That did not work"}</strong>
      <p dir="auto">{problem.message}</p>
      {problem.requestId && problem.status >= 500 && (
        <p className="quiet">
          Request <code>{problem.requestId}</code>
        </p>
      )}
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** For errors of the page itself, and for parts that could not be loaded after an upgrade of the server. */
export function PageFailure() {
  const error = useRouteError();
  const shown = isRouteErrorResponse(error)
    ? new Problem(error.status, "page", "There is no such page.")
    : error;
  return (
    <main className="alone">
      <Failure error={shown} again={() => location.reload()} />
      <p>
        <a href="/">Back to the start</a>
      </p>
    </main>
  );
}
