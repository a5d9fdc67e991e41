import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useDeferredValue, useEffect, useRef, useState } from "react";
import { answer, api, type LogLine, type Schemas } from "../api/client";
import { follow, type Connection } from "../live/stream";
import { Failure } from "./Failure";
import { Link, useSearchParams } from "react-router";
import { clock, plural } from "./format";
import { directiveIn } from "./directives";

const LINE = 20;

/** The log as it grows. Search asks the server, so it finds what lies far above, too. */
export function Log({ project, job }: { project: string; job: string }) {
  const { lines, state } = useLines(project, job);
  const [search, setSearch] = useState("");
  const [address] = useSearchParams();
  const wanted = Number(address.get("line")) || null;
  const [following, setFollowing] = useState(wanted === null);
  const [timed, setTimed] = useState(false);
  const words = useDeferredValue(search.trim());
  const found = useQuery({
    queryKey: [project, "log-search", job, words],
    enabled: words !== "",
    queryFn: ({ signal }) => {
      const query = { search: words, limit: 1000 };
      const params = { path: { project, job }, query };
      return answer(api.GET("/api/v1/projects/{project}/jobs/{job}/log", { params, signal }));
    },
  });
  const shown = words ? (found.data?.lines ?? []) : lines;
  return (
    <section className="log-part">
      <header className="head">
        <h2>Log</h2>
        <span className="quiet" role="status">
          {words ? `${plural(shown.length, "line")} found` : plural(lines.length, "line")}
          {!words && state === "waiting" && ", reconnecting…"}
        </span>
        <span className="spring" />
        <a
          className="button"
          href={`/api/v1/projects/${encodeURIComponent(project)}/jobs/${encodeURIComponent(job)}/log/text?times=${timed}`}
          download
        >
          Download
        </a>
        <label className="check">
          <input type="checkbox" checked={timed} onChange={(e) => setTimed(e.target.checked)} /> Times
        </label>
        <label className="check">
          <input type="checkbox" checked={following} onChange={(e) => setFollowing(e.target.checked)} />{" "}
          Follow
        </label>
        <label>
          <span className="unseen">Search the log</span>
          <input
            type="search"
            placeholder="Search"
            value={search}
            onChange={(e) => setSearch(e.target.value)}
          />
        </label>
      </header>
      {found.error && <Failure error={found.error} />}
      <Lines lines={shown} following={following && !words} timed={timed} wanted={words ? null : wanted} />
    </section>
  );
}

function useLines(project: string, job: string): { lines: LogLine[]; state: Connection } {
  const [lines, setLines] = useState<LogLine[]>([]);
  const [state, setState] = useState<Connection>("connecting");
  useEffect(() => {
    let attempt = 0;
    setLines([]);
    return follow({
      url: () => `/api/v1/projects/${encodeURIComponent(project)}/jobs/${encodeURIComponent(job)}/log/stream`,
      onState: setState,
      isOver: (message) => message.event === "end",
      onMessage({ data }) {
        const page = JSON.parse(data) as Schemas["LogPage"];
        const anew = page.attempt !== attempt; // it was tried again: its log begins anew
        attempt = page.attempt;
        setLines((old) => (anew ? page.lines : page.lines.length ? [...old, ...page.lines] : old));
      },
    });
  }, [project, job]);
  return { lines, state };
}

/** What the line tells the platform, in plain words; any other line as it is. */
function spoken(text: string) {
  const told = directiveIn(text);
  if (!told) return text;
  return (
    <>
      <small className="stream">{told.what} </small>
      {told.text}
    </>
  );
}

type LinesProps = { lines: LogLine[]; following: boolean; timed: boolean; wanted: number | null };

/** Every number is a link to its line, for sending; what went to standard error is marked by a word and a colour. */
function Lines({ lines, following, timed, wanted }: LinesProps) {
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE,
    overscan: 30,
  });
  useEffect(() => {
    if (following && lines.length > 0) virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [following, lines.length, virtual]);
  const there = wanted !== null && lines.length >= wanted;
  useEffect(() => {
    if (!there) return;
    virtual.scrollToIndex(wanted - 1, { align: "center" });
    box.current?.scrollIntoView({ block: "nearest" });
  }, [there, wanted, virtual]);
  return (
    <div
      className={`log ${lines.length < 6 ? "short" : ""}`}
      ref={box}
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label="Lines of the log"
    >
      {lines.length === 0 && <p className="quiet">No lines.</p>}
      <div className="log-lines" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const line = lines[item.index]!;
          return (
            <div
              key={item.key}
              className={`log-line ${line.stream} ${line.number + 1 === wanted ? "wanted" : ""}`}
              ref={virtual.measureElement}
              data-index={item.index}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <Link
                className="number"
                to={`?line=${line.number + 1}`}
                replace
                preventScrollReset
                aria-label={`Line ${line.number + 1}`}
              >
                {line.number + 1}
              </Link>
              <span dir="auto">
                {timed && <time dateTime={line.at}>{clock(line.at)} </time>}
                {line.stream === "err" && <small className="stream">stderr </small>}
                {spoken(line.text)}
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}
