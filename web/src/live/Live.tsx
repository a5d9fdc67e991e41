import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useState, type ReactNode } from "react";
import { answer, api, type Event } from "../api/client";
import { follow, type Connection } from "./stream";

type Listener = (events: Event[]) => void;
const listeners = new Set<Listener>();
const State = createContext<Connection>("connecting");

/** Which cached answers an event makes stale: the first word of its kind names the noun. */
export function staleKeys(kind: string): string[] {
  const noun = kind.split(".")[0] ?? "";
  const known: Record<string, string[]> = {
    job: ["job", "queues"],
    queue: ["queues"],
    project: ["projects"],
    user: ["members"],
    member: ["members"],
    token: ["tokens"],
    fileset: ["filesets", "graph"],
    file: ["files", "graph"],
    upload: ["files", "filesets", "graph"],
    tags: ["artifacts"],
    secret: ["secrets"],
    app: ["apps"],
    study: ["studies"],
  };
  return ["events", ...(known[noun] ?? [noun])];
}

const GATHER_MS = 500;
const AT_ONCE_MS = 40;

/** One stream for the project that is open: it refreshes what the events touch, gathered so that a burst costs once;
 * what comes after a quiet while is shown at once. */
export function LiveProject({ project, children }: { project: string; children: ReactNode }) {
  const queries = useQueryClient();
  const [state, setState] = useState<Connection>("connecting");
  useEffect(() => start(project, queries, setState), [project, queries]);
  return <State.Provider value={state}>{children}</State.Provider>;
}

function start(project: string, queries: QueryClient, setState: (state: Connection) => void): () => void {
  let gathered: Event[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stop: (() => void) | null = null;
  let left = false;
  let flushed = 0;

  function flush(): void {
    timer = undefined;
    flushed = Date.now();
    const events = gathered;
    gathered = [];
    for (const key of new Set(events.flatMap((event) => staleKeys(event.kind))))
      void queries.invalidateQueries({ queryKey: [project, key] });
    for (const listener of listeners) listener(events);
  }

  // The history so far is on the page already: begin after its newest line.
  const path = { params: { path: { project }, query: { limit: 1 } } };
  const newest = answer(api.GET("/api/v1/projects/{project}/events", path)).then(
    (page) => page.items[0]?.seq ?? 0,
  );
  void newest
    .catch(() => 0)
    .then((after) => {
      if (left) return;
      stop = follow({
        url: () => `/api/v1/projects/${encodeURIComponent(project)}/events/stream?after=${after}`,
        onState: setState,
        onMessage({ data }) {
          gathered.push(JSON.parse(data) as Event);
          timer ??= setTimeout(flush, Math.max(AT_ONCE_MS, flushed + GATHER_MS - Date.now()));
        },
      });
    });
  return () => {
    left = true;
    clearTimeout(timer);
    stop?.();
  };
}

export function useConnection(): Connection {
  return useContext(State);
}

/** For what a refetch would be too dear: long lists that are patched row by row. */
export function useEvents(listener: Listener): void {
  useEffect(() => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, [listener]);
}
