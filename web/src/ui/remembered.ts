import { useCallback, useState } from "react";

/** What pages keep while this tab is open: somebody who goes back finds it as it was. */
const kept = new Map<string, unknown>();

/** As useState, but what was set under the same key is still there when the page is opened again. */
export function useRemembered<T>(key: string, first: T): [T, (value: T) => void] {
  const [held, setHeld] = useState(() => ({ key, value: kept.has(key) ? (kept.get(key) as T) : first }));
  const value = held.key === key ? held.value : kept.has(key) ? (kept.get(key) as T) : first;
  const set = useCallback(
    (next: T) => {
      kept.set(key, next);
      setHeld({ key, value: next });
    },
    [key],
  );
  return [value, set];
}

export function placeKept(key: string): number {
  return (kept.get(key) as number | undefined) ?? 0;
}

export function keepPlace(key: string, offset: number): void {
  kept.set(key, offset);
}
