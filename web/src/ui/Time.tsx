import { useEffect, useState } from "react";
import { ago, moment } from "./format";

let now = Date.now();
const watchers = new Set<() => void>();
setInterval(() => {
  now = Date.now();
  for (const watcher of watchers) watcher();
}, 10_000);

/** "3 min. ago", with the exact moment in the viewer's zone on hover and for readers of the page. */
export function Time({ at }: { at: string | null | undefined }) {
  const [, again] = useState(0);
  useEffect(() => {
    const watcher = () => again((n) => n + 1);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
  if (!at) return <>–</>;
  return (
    <time dateTime={at} title={moment(at)}>
      {ago(at, Math.max(now, new Date(at).getTime()))}
    </time>
  );
}
