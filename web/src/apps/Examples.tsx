import { useState } from "react";
import { useSearchParams } from "react-router";
import {
  exampleFilters,
  feed,
  thumbnail,
  useChange,
  useExamples,
  useSuspects,
  type App,
  type Example,
  type Wanted,
} from "../api/apps";
import { answer, api, type Schemas } from "../api/client";
import type { Progress } from "../api/lake";
import { Drop, type Dropped } from "../ui/Drop";
import { Failure } from "../ui/Failure";
import { count, figure, plural } from "../ui/format";
import { ExampleCurve } from "./Series";

const ALL: Wanted = { of: "", on: "", text: "" };

/** Feed, look, switch off what is wrong: suspected mislabels first, if wanted. */
export function Examples({ project, app }: { project: string; app: App }) {
  const [address] = useSearchParams();
  const [wanted, setWanted] = useState<Wanted>({ ...ALL, of: address.get("class") ?? "" });
  const [suspicious, setSuspicious] = useState(false);
  const list = useExamples(project, app.name, wanted);
  const suspects = useSuspects(project, app.name, suspicious);
  const params = { path: { project, name: app.name } };
  const refine = useChange(project, app.name, (body: Schemas["Refine"]) =>
    answer(api.POST("/api/v1/projects/{project}/apps/{name}/refine", { params, body })),
  );
  const judge = useChange(project, app.name, () =>
    answer(api.POST("/api/v1/projects/{project}/apps/{name}/suspects", { params })),
  );
  const filters = exampleFilters(wanted);
  const shown: { example: Example; loss?: number }[] = suspicious
    ? (suspects.data?.items ?? [])
    : list.examples.map((example) => ({ example }));
  const toggle = (example: Example) =>
    refine.mutate({ digests: [example.digest], filter: [], on: !example.on });
  const classes = [...new Set(list.examples.map((example) => example.stratum))].filter(Boolean);
  return (
    <>
      <Feed project={project} app={app} />
      <form className="row" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          Class
          <input
            list="classes"
            value={wanted.of}
            onChange={(e) => setWanted({ ...wanted, of: e.target.value })}
          />
          <datalist id="classes">
            {classes.map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
        </label>
        <label>
          Switched
          <select value={wanted.on} onChange={(e) => setWanted({ ...wanted, on: e.target.value })}>
            <option value="">on or off</option>
            <option value="true">on</option>
            <option value="false">off</option>
          </select>
        </label>
        <label className="wide">
          Contains
          <input
            type="search"
            value={wanted.text}
            onChange={(e) => setWanted({ ...wanted, text: e.target.value })}
          />
        </label>
        <label className="check">
          <input type="checkbox" checked={suspicious} onChange={(e) => setSuspicious(e.target.checked)} />{" "}
          Suspected mislabels first
        </label>
      </form>
      <p className="row">
        <span role="status">
          {plural(app.examples, "example")}, {count(app.switched_off)} switched off
        </span>
        <span className="spring" />
        {filters.length > 0 && (
          <>
            <button type="button" onClick={() => refine.mutate({ digests: [], filter: filters, on: false })}>
              Switch off all that match
            </button>
            <button type="button" onClick={() => refine.mutate({ digests: [], filter: filters, on: true })}>
              Switch on
            </button>
          </>
        )}
        <button
          type="button"
          onClick={() => refine.mutate({ digests: [], filter: [], on: false, undo: true })}
        >
          Undo the last switch
        </button>
      </p>
      {(refine.error ?? judge.error ?? list.error ?? suspects.error) && (
        <Failure error={refine.error ?? judge.error ?? list.error ?? suspects.error} />
      )}
      {suspicious && suspects.data && (
        <p className="notice" role="status">
          {suspects.data.judged > 0
            ? `${plural(suspects.data.judged, "example")} judged by models that were trained without them; the strangest come first.`
            : "No example was judged yet."}
          {suspects.data.state && ` The job that judges all of them is ${suspects.data.state}.`}{" "}
          <button
            type="button"
            className="small"
            disabled={judge.isPending}
            onClick={() => judge.mutate(undefined)}
          >
            Judge all of them
          </button>
        </p>
      )}
      {shown.length === 0 && !list.isPending && (
        <p className="quiet">{app.examples === 0 ? "None yet: drop some above." : "None that fit."}</p>
      )}
      {app.pictures ? (
        <ul className="gallery">
          {shown.map(({ example, loss }) => (
            <li key={example.digest} className={example.on ? "" : "off"}>
              <img
                src={thumbnail(project, app.name, example.digest)}
                alt={`Example of ${example.stratum || (example.answer ?? "")}`}
                loading="lazy"
                width="96"
                height="96"
              />
              <span className="clip" dir="auto">
                {example.stratum || example.answer}
              </span>
              {loss !== undefined && <small>loss {figure(loss)}</small>}
              <Switch example={example} onToggle={toggle} />
            </li>
          ))}
        </ul>
      ) : (
        shown.length > 0 && <Rows project={project} app={app} shown={shown} onToggle={toggle} />
      )}
      {!suspicious && list.hasNextPage && (
        <button type="button" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          More
        </button>
      )}
    </>
  );
}

function Switch({ example, onToggle }: { example: Example; onToggle: (example: Example) => void }) {
  return (
    <button
      type="button"
      className="small"
      role="switch"
      aria-checked={example.on}
      aria-label={`${example.on ? "on" : "off"}: example ${example.digest.slice(0, 8)}`}
      onClick={() => onToggle(example)}
    >
      {example.on ? "on" : "off"}
    </button>
  );
}

function Rows({
  project,
  app,
  shown,
  onToggle,
}: {
  project: string;
  app: App;
  shown: { example: Example; loss?: number }[];
  onToggle: (example: Example) => void;
}) {
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Input</th>
            <th scope="col">Output</th>
            <th scope="col">Loss</th>
            <th scope="col">Used</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ example, loss }) => (
            <tr key={example.digest} className={example.on ? "" : "off"}>
              <td className="long" dir="auto">
                {app.series ? (
                  <ExampleCurve project={project} app={app.name} example={example} />
                ) : (
                  (example.preview ?? example.digest.slice(0, 12))
                )}
              </td>
              <td className="long" dir="auto">
                {example.answer ?? example.stratum}
              </td>
              <td>{loss === undefined ? "–" : figure(loss)}</td>
              <td>
                <Switch example={example} onToggle={onToggle} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Feed({ project, app }: { project: string; app: App }) {
  const [progress, setProgress] = useState<Progress | null>(null);
  const send = useChange(project, app.name, async (files: Dropped[]) => {
    try {
      return await feed(project, app, files, new Date().toISOString().replace(/[^0-9]/g, ""), setProgress);
    } finally {
      setProgress(null);
    }
  });
  return (
    <>
      <Drop folders busy={send.isPending} progress={progress} onFiles={(files) => send.mutate(files)}>
        <span>
          Feed it: drop{" "}
          {app.pictures
            ? "a folder of pictures with one folder for each class, or arrays (.npz)"
            : "a table (.csv), JSON lines or arrays (.npz)"}
          , or
        </span>
      </Drop>
      {send.data && (
        <div className="notice finished" role="status">
          {count(send.data.new)} new, {count(send.data.known)} known already, {count(send.data.total)} in all.
          {(send.data.refused ?? []).length > 0 && (
            <details>
              <summary>{count(send.data.refused!.length)} were refused</summary>
              <ul>
                {send.data.refused!.slice(0, 50).map((one) => (
                  <li key={`${one.file ?? ""} ${one.pair}`} className="long" dir="auto">
                    {one.file ?? `pair ${one.pair + 1}`}: {one.why}
                  </li>
                ))}
              </ul>
            </details>
          )}
        </div>
      )}
      {send.error && <Failure error={send.error} />}
    </>
  );
}
