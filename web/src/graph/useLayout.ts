import { useEffect, useRef, useState } from "react";
import type { Link, Place } from "./visible";

/** Lays the graph out in a worker, so that thousands of nodes never freeze the page. The last places stay meanwhile. */
export function useLayout(ids: string[], links: Link[]): { places: Map<string, Place>; busy: boolean } {
  const worker = useRef<Worker | null>(null);
  const turn = useRef(0);
  const [state, setState] = useState({ places: new Map<string, Place>(), turn: 0 });
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    const made = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    made.onmessage = (event: MessageEvent<{ turn: number; places: Map<string, Place> }>) => setState(event.data);
    worker.current = made;
    return () => made.terminate();
  }, []);
  useEffect(() => {
    turn.current += 1;
    setAsked(turn.current);
    worker.current?.postMessage({ turn: turn.current, ids, links });
  }, [ids, links]);
  return { places: state.places, busy: state.turn !== asked };
}
