import { useQuery } from "@tanstack/react-query";
import Papa from "papaparse";
import { useEffect, useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import { contents, lookOf, readable } from "../api/lake";
import { FileDiff } from "./FileDiff";
import { bytes } from "./format";
import { Loaded } from "./Loaded";
import { Tags } from "./Tags";
import { Time } from "./Time";

type Version = Schemas["FileVersion"];
const MOST_TEXT = 200_000;
const MOST_IMAGE = 20_000_000;
const MOST_ROWS = 200;

/** One file: what is in it, its versions, its tags. */
export function FilePanel({
  project,
  path,
  first = null,
}: {
  project: string;
  path: string;
  /** The version that is shown at first; else the newest. */
  first?: number | null;
}) {
  const [version, setVersion] = useState<number | null>(first);
  const [other, setOther] = useState<number | null>(null);
  const versions = useQuery({
    queryKey: [project, "files", "versions", path],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/files/versions", {
          params: { path: { project }, query: { path } },
        }),
      ),
  });
  const shown = version ?? versions.data?.items[0]?.version;
  return (
    <section className="card" aria-label={`File ${path}`}>
      <h2 className="long" dir="auto">
        {path}
      </h2>
      {shown !== undefined && (
        <>
          <p>
            <a
              className="button"
              href={`/api/v1/projects/${encodeURIComponent(project)}/files/content?${new URLSearchParams({ ref: `${path}:${shown}` }).toString()}`}
              download
            >
              Download version {shown}
            </a>
          </p>
          <Preview key={shown} project={project} path={path} version={shown} />
          <Tags project={project} kind="file" reference={`${path}:${shown}`} />
        </>
      )}
      <h3>Versions</h3>
      <Loaded query={versions}>
        {(page) => (
          <>
            <ul className="list">
              {page.items.map((one) => (
                <li key={one.version}>
                  <button
                    type="button"
                    className="small"
                    aria-pressed={one.version === shown}
                    onClick={() => setVersion(one.version)}
                  >
                    Version {one.version}
                  </button>{" "}
                  {bytes(one.size)}, {one.creator}, <Time at={one.created_at} />
                  {one.dropped_at && " (bytes given up)"}
                </li>
              ))}
            </ul>
            {page.items.length > 1 && shown !== undefined && (
              <Comparison
                project={project}
                path={path}
                versions={page.items}
                shown={shown}
                other={other}
                onOther={setOther}
              />
            )}
          </>
        )}
      </Loaded>
    </section>
  );
}

type ComparisonProps = {
  project: string;
  path: string;
  versions: Version[];
  shown: number;
  other: number | null;
  onOther: (version: number | null) => void;
};

function Comparison({ project, path, versions, shown, other, onOther }: ComparisonProps) {
  const pair = [shown, other].map((number) =>
    versions.find((one) => one.version === number && !one.dropped_at),
  );
  const [before, after] = pair.sort((a, b) => (a?.version ?? 0) - (b?.version ?? 0));
  return (
    <>
      <label>
        Compare version {shown} with
        <select
          value={other === shown ? "" : (other ?? "")}
          onChange={(e) => onOther(e.target.value ? Number(e.target.value) : null)}
        >
          <option value="">none</option>
          {versions
            .filter((one) => one.version !== shown && !one.dropped_at)
            .map((one) => (
              <option key={one.version} value={one.version}>
                version {one.version}
              </option>
            ))}
        </select>
      </label>
      {before && after && before !== after && (
        <FileDiff project={project} path={path} before={before} after={after} />
      )}
    </>
  );
}

function Preview({ project, path, version }: { project: string; path: string; version: number }) {
  const look = lookOf(path);
  const found = useQuery({
    queryKey: [project, "contents", path, version],
    staleTime: Infinity, // a version never changes
    queryFn: () => contents(project, `${path}:${version}`, look.as === "image" ? MOST_IMAGE : MOST_TEXT),
  });
  return (
    <Loaded query={found}>
      {(data) => {
        if (look.as === "image") return <Image data={data} type={look.type} name={path} />;
        const text = readable(data);
        if (text === null) return <p className="quiet">Not text: nothing to preview.</p>;
        if (look.as === "table") return <Table text={text} delimiter={look.delimiter} />;
        return (
          <pre className="preview" tabIndex={0} dir="auto" aria-label="Beginning of the file">
            {text}
          </pre>
        );
      }}
    </Loaded>
  );
}

/** As an image's source even an SVG cannot run script. */
function Image({ data, type, name }: { data: Uint8Array<ArrayBuffer>; type: string; name: string }) {
  const [url, setUrl] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([data], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [data, type]);
  return url ? <img className="preview" src={url} alt={name} /> : null;
}

function Table({ text, delimiter }: { text: string; delimiter: string }) {
  const rows = Papa.parse<string[]>(text, { delimiter, preview: MOST_ROWS + 1, skipEmptyLines: true }).data;
  const [head = [], ...body] = rows;
  return (
    <div className="scroll preview" tabIndex={0} role="region" aria-label="Beginning of the table">
      <table>
        <thead>
          <tr>
            {head.map((cell, i) => (
              <th scope="col" key={i} dir="auto">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {body.map((row, i) => (
            <tr key={i}>
              {row.map((cell, j) => (
                <td key={j} dir="auto">
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
