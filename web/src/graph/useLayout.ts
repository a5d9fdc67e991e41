import { useCallback, useEffect, useRef, useState } from "react";
import type { Link, Place } from "./visible";

type Places = Map<string, Place>;
/** Asks for the places of these nodes; the answer to a question that was taken back is not told. */
type Ask = (ids: string[], links: Link[], tell: (places: Places) => void) => () => void;

/** A worker that lays graphs out, so that thousands of nodes never freeze the page. It starts while the graph is fetched. */
export function useLayouter(): Ask {
  const worker = useRef<Worker | null>(null);
  const open = useRef(new Map<number, (places: Places) => void>());
  const turn = useRef(0);
  const started = useCallback(() => {
    if (worker.current) return worker.current;
    const made = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    made.onmessage = (event: MessageEvent<{ turn: number; places: Places }>) => {
      open.current.get(event.data.turn)?.(event.data.places);
      open.current.delete(event.data.turn);
    };
    return (worker.current = made);
  }, []);
  useEffect(() => {
    started();
    return () => {
      worker.current?.terminate();
      worker.current = null;
    };
  }, [started]);
  return useCallback(
    (ids, links, tell) => {
      const mine = ++turn.current;
      open.current.set(mine, tell);
      started().postMessage({ turn: mine, ids, links });
      return () => void open.current.delete(mine);
    },
    [started],
  );
}

/** The last places stay while new ones are looked for. */
export function useLayout(ask: Ask, ids: string[], links: Link[]): { places: Places; busy: boolean } {
  const [state, setState] = useState<{ places: Places; of: string[] | null }>({
    places: new Map(),
    of: null,
  });
  useEffect(() => ask(ids, links, (places) => setState({ places, of: ids })), [ask, ids, links]);
  return { places: state.places, busy: state.of !== ids };
}
