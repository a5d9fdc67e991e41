import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Failure } from "./Failure";

/** A query's three faces. Old data stays on the page while newer is fetched or cannot be. */
export function Loaded<T>({
  query,
  children,
}: {
  query: UseQueryResult<T>;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error) return <Failure error={query.error} again={() => void query.refetch()} />;
  return (
    <p className="quiet" role="status">
      Loading…
    </p>
  );
}
