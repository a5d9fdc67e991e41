import { createParser } from "eventsource-parser";
import { failed } from "../api/client";
import { Problem, problemFrom, problemOf } from "../api/problem";

export type Message = { id: string | undefined; event: string | undefined; data: string };
export type Connection = "connecting" | "live" | "waiting" | "refused";

/** Seconds until the next attempt: doubling, at most half a minute, spread so that many pages do not come at once. */
export function pause(attempt: number, random: () => number): number {
  return Math.min(30, 0.5 * 2 ** attempt) * (0.5 + random() / 2);
}

type Options = {
  /** The address for a given place in the stream. */
  url: (lastId: string | null) => string;
  onMessage: (message: Message) => void;
  onState?: (state: Connection) => void;
  /** True once the stream has said all it has to say. */
  isOver?: (message: Message) => boolean;
};

/**
 * Follows a stream of server-sent events until the returned function is called. It goes on after a broken
 * connection or a restart of the server from the last id it saw. A hidden page lets go of its connection, because a
 * browser has only six for a server and tabs share them. (EventSource itself cannot listen to all kinds of events.)
 */
export function follow({ url, onMessage, onState = () => {}, isOver = () => false }: Options): () => void {
  let lastId: string | null = null;
  let attempt = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let current: AbortController | null = null;
  let done = false;

  async function connect(): Promise<void> {
    const mine = new AbortController();
    current = mine;
    onState("connecting");
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (lastId !== null) headers["Last-Event-ID"] = lastId;
      const response = await fetch(url(lastId), { headers, signal: mine.signal, cache: "no-store" });
      if (!response.ok || response.body === null) {
        const body: unknown = await response.json().catch(() => null);
        throw failed(problemOf(response.status, body, response.headers));
      }
      onState("live");
      const parser = createParser({
        onEvent(message) {
          attempt = 0;
          if (message.id !== undefined) lastId = message.id;
          const found = { id: message.id, event: message.event, data: message.data };
          if (isOver(found)) done = true;
          onMessage(found);
        },
      });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done: ended } = await reader.read();
        if (ended || done) break;
        parser.feed(value);
      }
      if (!done) throw new Problem(0, "unreachable", "the stream ended");
      mine.abort();
    } catch (error) {
      if (mine.signal.aborted) return;
      const { status } = problemFrom(error);
      if (status >= 400 && status < 500 && status !== 429) return onState("refused");
      onState("waiting");
      timer = setTimeout(() => void connect(), 1000 * pause(attempt++, Math.random));
    }
  }

  function stop(): void {
    clearTimeout(timer);
    current?.abort();
    current = null;
  }

  function visibility(): void {
    if (document.hidden) stop();
    else if (current === null && !done) void connect();
  }

  document.addEventListener("visibilitychange", visibility);
  if (!document.hidden) void connect();
  return () => {
    done = true;
    document.removeEventListener("visibilitychange", visibility);
    stop();
  };
}
