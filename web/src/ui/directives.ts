const LINE = /^(.*)\[(?:EASEL|ACAI)_(TAG_NUM|TAG|PROGRESS|METRIC)\]\s+(.*\S)\s*$/;
const PAIR = /([A-Za-z_][\w./-]*)\s*=\s*([-+.\w]+)/g;

/** What a line of a log tells the platform, in plain words: a metric, the progress or a tag; null for any other line. */
export function directiveIn(line: string): { what: string; text: string } | null {
  const found = LINE.exec(line);
  if (!found) return null;
  const [, before = "", kind, said = ""] = found;
  if (kind === "PROGRESS") {
    const share = Number(said);
    if (!(share >= 0 && share <= 1)) return null;
    return { what: "progress", text: `${before}${Math.round(100 * share)} %` };
  }
  if (kind === "METRIC") {
    const pairs = [...said.matchAll(PAIR)].map(([, name, value]) => [name, value] as const);
    const step = pairs.find(([name]) => name === "step");
    const values = pairs.filter(([name]) => name !== "step").map(([name, value]) => `${name} = ${value}`);
    if (values.length === 0) return null;
    return { what: "metric", text: `${before}${values.join(", ")}${step ? `, step ${step[1]}` : ""}` };
  }
  const tag = /^(\S+)\s+([^:\s][^:]*?)\s*:\s*(.+)$/.exec(said);
  return (
    tag && { what: "tag", text: `${before}${tag[2]}: ${tag[3]}${tag[1] === "job" ? "" : ` (${tag[1]})`}` }
  );
}
