import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type FormEvent } from "react";
import { Link, useSearchParams } from "react-router";
import { answer, api } from "../api/client";
import { queryOf, type Artifact, type Condition, type Kind } from "../api/lake";
import { bytes } from "../ui/format";
import { useProject } from "../ui/Frame";
import { LakeTabs } from "../ui/LakeTabs";
import { Loaded } from "../ui/Loaded";
import { tagText } from "../ui/Tags";
import { Time } from "../ui/Time";

const OPERATORS = ["=", "!=", ">", ">=", "<", "<="];
const KINDS: [Kind, string][] = [
  ["fileset", "file sets"],
  ["file", "files"],
  ["job", "jobs"],
];
const EMPTY: Condition = { key: "", operator: "=", value: "" };

/** Build a query line by line or write it; the address holds it, so that it can be sent to somebody. */
export default function Search() {
  const project = useProject();
  const [address, setAddress] = useSearchParams();
  const kind = (address.get("kind") ?? "fileset") as Kind;
  const query = address.get("q") ?? "";
  const [text, setText] = useState(query);
  useEffect(() => setText(query), [query]); // also when somebody goes back
  const [lines, setLines] = useState<Condition[]>([EMPTY]);
  const found = useQuery({
    queryKey: [project, "artifacts", "find", kind, query],
    queryFn: () =>
      answer(
        api.POST("/api/v1/projects/{project}/find", {
          params: { path: { project } },
          body: { kind, query, limit: 200 },
        }),
      ),
  });
  function change(i: number, part: Partial<Condition>) {
    const next = lines.map((line, j) => (j === i ? { ...line, ...part } : line));
    setLines(next);
    setText(queryOf(next));
  }
  function submit(event: FormEvent) {
    event.preventDefault();
    setAddress({ kind, q: text });
  }
  return (
    <>
      <LakeTabs />
      <form role="search" onSubmit={submit}>
        {lines.map((line, i) => (
          <div className="row" key={i}>
            <label>
              {i === 0 ? "Key or tag" : "and"}
              <input list="keys" value={line.key} onChange={(e) => change(i, { key: e.target.value })} />
            </label>
            <label>
              Relation
              <select value={line.operator} onChange={(e) => change(i, { operator: e.target.value })}>
                {OPERATORS.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
            <label>
              Value
              <input value={line.value} onChange={(e) => change(i, { value: e.target.value })} />
            </label>
            {i === lines.length - 1 && (
              <button type="button" onClick={() => setLines([...lines, EMPTY])}>
                And…
              </button>
            )}
          </div>
        ))}
        <datalist id="keys">
          {["name", "creator", "create_time", "size", "version", "hash"].map((key) => (
            <option key={key} value={key} />
          ))}
        </datalist>
        <div className="row">
          <label>
            Look for
            <select value={kind} onChange={(e) => setAddress({ kind: e.target.value, q: text })}>
              {KINDS.map(([value, words]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </select>
          </label>
          <label className="wide">
            Query
            <input
              value={text}
              onChange={(e) => setText(e.target.value)}
              placeholder="creator = ana and create_time = today and precision > 0.5"
            />
          </label>
          <button type="submit" className="primary">
            Search
          </button>
        </div>
      </form>
      <Loaded query={found}>{(page) => <Results project={project} items={page.items} />}</Loaded>
    </>
  );
}

function Results({ project, items }: { project: string; items: Artifact[] }) {
  if (items.length === 0) return <p className="quiet">Nothing fulfils this.</p>;
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Tags</th>
            <th scope="col" className="number">
              Size
            </th>
            <th scope="col">Owner</th>
            <th scope="col">Made</th>
          </tr>
        </thead>
        <tbody>
          {items.map((one) => (
            <tr key={`${one.name}:${one.version}`}>
              <td className="long">
                <Link dir="auto" to={placeOf(project, one)}>
                  {one.kind === "job" ? (one.job_name ?? one.name) : `${one.name}:${one.version}`}
                </Link>
                {one.kind === "job" && <small className="quiet"> …{one.name.slice(-6)}</small>}
              </td>
              <td>
                {Object.entries(one.tags).map(([key, value]) => (
                  <span className="tag" dir="auto" key={key}>
                    {key} {tagText(value)}
                  </span>
                ))}
              </td>
              <td className="number">{one.kind === "job" ? "" : bytes(one.size)}</td>
              <td>{one.creator}</td>
              <td>
                <Time at={one.created_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function placeOf(project: string, one: Artifact): string {
  const base = `/p/${encodeURIComponent(project)}`;
  if (one.kind === "job") return `${base}/jobs/${encodeURIComponent(one.name)}`;
  if (one.kind === "fileset") return `${base}/lake/sets?set=${encodeURIComponent(one.name)}`;
  const folder = one.name.slice(0, one.name.lastIndexOf("/") + 1);
  return `${base}/lake?${new URLSearchParams({ in: folder, file: one.name }).toString()}`;
}
