import { structuredPatch } from "diff";

export type Changed = { added: number; removed: number; hunks: { at: string; lines: string[] }[] };

const PATIENCE_MS = 1_000;
const AROUND = 3;

/** What changed between two texts, line by line; null when they are so different that it takes too long to say. */
export function changedLines(before: string, after: string): Changed | null {
  const found = structuredPatch("", "", before, after, undefined, undefined, {
    context: AROUND,
    timeout: PATIENCE_MS,
  });
  if (!found) return null;
  const hunks = found.hunks.map((hunk) => ({
    at: `line ${hunk.oldStart} → ${hunk.newStart}`,
    lines: hunk.lines.filter((line) => !line.startsWith("\\")), // "\ No newline at end of file"
  }));
  const lines = hunks.flatMap((hunk) => hunk.lines);
  const count = (sign: string) => lines.filter((line) => line.startsWith(sign)).length;
  return { added: count("+"), removed: count("-"), hunks };
}
