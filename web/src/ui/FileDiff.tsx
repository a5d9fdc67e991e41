import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Schemas } from "../api/client";
import { contents, lookOf, readable } from "../api/lake";
import { bytes, count, plural } from "./format";
import { changedLines, type Changed } from "./lines";
import { Loaded } from "./Loaded";

type Version = Schemas["FileVersion"];
const MOST = 200_000;
const MOST_LINES = 1_000;
const KINDS: Record<string, string> = { "+": "added", "-": "removed" };

/** What is different between two versions of one file: sizes and digests of any, lines of text, rows of tables. */
export function FileDiff({
  project,
  path,
  before,
  after,
}: {
  project: string;
  path: string;
  before: Version;
  after: Version;
}) {
  const same = before.hash === after.hash;
  return (
    <section aria-label={`From version ${before.version} to ${after.version}`}>
      <h3>
        Version {before.version} → {after.version}
      </h3>
      <p>
        {bytes(before.size)} → {bytes(after.size)}, {same ? "the same bytes" : "other bytes"}
        <br />
        <code className="long">
          {before.hash.slice(0, 16)}… → {after.hash.slice(0, 16)}…
        </code>
      </p>
      {!same && lookOf(path).as !== "image" && (
        <Lines project={project} path={path} before={before} after={after} />
      )}
    </section>
  );
}

function Lines({
  project,
  path,
  before,
  after,
}: {
  project: string;
  path: string;
  before: Version;
  after: Version;
}) {
  const texts = useQuery({
    queryKey: [project, "contents", path, before.version, after.version],
    staleTime: Infinity, // versions never change
    queryFn: async () => {
      const found = await Promise.all(
        [before, after].map((one) => contents(project, `${path}:${one.version}`, MOST)),
      );
      return found.map(readable);
    },
  });
  const word = lookOf(path).as === "table" ? "row" : "line";
  const cut = before.size > MOST || after.size > MOST;
  return (
    <Loaded query={texts}>
      {([old, now]) => (
        <>
          {cut && <p className="quiet">Of each version the first {bytes(MOST)}.</p>}
          {old == null || now == null ? (
            <p className="quiet">Not text: only sizes and digests are compared.</p>
          ) : (
            <Shown before={old} after={now} word={word} />
          )}
        </>
      )}
    </Loaded>
  );
}

function Shown({ before, after, word }: { before: string; after: string; word: string }) {
  const changed = useMemo(() => changedLines(before, after), [before, after]);
  if (!changed)
    return <p className="quiet">So different that a comparison by {word}s would take too long.</p>;
  return (
    <>
      <p>
        {plural(changed.added, word)} added, {count(changed.removed)} removed
      </p>
      {changed.hunks.length > 0 && <Hunks hunks={changed.hunks} />}
    </>
  );
}

function Hunks({ hunks }: { hunks: Changed["hunks"] }) {
  const all = hunks.flatMap((hunk) => [`@ ${hunk.at}`, ...hunk.lines]);
  return (
    <>
      <pre className="preview diff" tabIndex={0} role="region" aria-label="What changed">
        {all.slice(0, MOST_LINES).map((line, i) => (
          <span key={i} className={KINDS[line[0]!]} dir="auto">
            {line}
          </span>
        ))}
      </pre>
      {all.length > MOST_LINES && (
        <p className="quiet">The first {plural(MOST_LINES, "line")} of the comparison.</p>
      )}
    </>
  );
}
