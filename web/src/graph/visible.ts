// Apart from the layout, whose library only the worker loads.
export type Link = { source: string; target: string };
export type Place = { x: number; y: number };
export const NODE = { width: 210, height: 54 };

/** What stays visible when everything that is only reached through a collapsed node is hidden. */
export function visible(ids: string[], links: Link[], collapsed: ReadonlySet<string>): Set<string> {
  const next = new Map<string, string[]>();
  const entered = new Set<string>();
  for (const { source, target } of links) {
    const behind = next.get(source);
    if (behind) behind.push(target);
    else next.set(source, [target]);
    entered.add(target);
  }
  const seen = new Set<string>();
  const queue = ids.filter((id) => !entered.has(id));
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (seen.has(id)) continue;
    seen.add(id);
    if (!collapsed.has(id)) queue.push(...(next.get(id) ?? []));
  }
  return seen;
}
