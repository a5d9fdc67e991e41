/** Somewhere to go: what the palette shows of it, and its address. */
export type Goal = { title: string; kind: string; to: string };

const MOST = 12;

/** How well a title answers what was typed: 0 is best, null does not match. Every word must occur. */
export function rankOf(title: string, asked: string): number | null {
  const text = title.toLowerCase();
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.every((word) => text.includes(word))) return null;
  const first = words[0];
  if (first === undefined || text.startsWith(first)) return 0;
  return text.split(/[\s\-_./]+/).some((part) => part.startsWith(first)) ? 1 : 2;
}

/** The goals that match, best first; among equals in the order they came. */
export function ranked(goals: Goal[], asked: string): Goal[] {
  return goals
    .map((goal, place) => ({ goal, place, rank: rankOf(goal.title, asked) }))
    .filter((one) => one.rank !== null)
    .sort((a, b) => a.rank! - b.rank! || a.place - b.place)
    .slice(0, MOST)
    .map((one) => one.goal);
}

/** Ctrl-K, or Cmd-K on a Mac. */
export function opensPalette(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): boolean {
  return (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k";
}
