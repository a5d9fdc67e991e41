import { useMutation } from "@tanstack/react-query";
import { useEffect, useState, type FormEvent } from "react";
import { useExamples, type Answers, type App } from "../api/apps";
import { answer, api } from "../api/client";
import { Problem } from "../api/problem";
import { Drop } from "../ui/Drop";
import { Failure } from "../ui/Failure";
import { figure, percent } from "../ui/format";
import { Draw } from "./Draw";
import { AskSeries } from "./Series";
import { fieldsOf, typed } from "./fields";
import { shrunk } from "./shrink";

/** Ask the model that answers: a picture that is uploaded, pasted or drawn, a series, or the fields of a row. */
export function TryIt({ project, app }: { project: string; app: App }) {
  const ask = useMutation({
    mutationFn: (object: unknown) =>
      answer(
        api.POST("/api/v1/projects/{project}/apps/{name}/infer", {
          params: { path: { project, name: app.name } },
          body: { objects: [object] },
        }),
      ),
  });
  const [seen, setSeen] = useState<string | null>(null);
  async function show(picture: Blob) {
    setSeen((old) => {
      if (old) URL.revokeObjectURL(old);
      return URL.createObjectURL(picture);
    });
    ask.mutate({ $picture: await base64Of(await shrunk(picture)), fit: "pad" });
  }
  if (!app.serving) return <p>There is no model yet: feed examples first.</p>;
  return (
    <div
      className="columns"
      onPaste={(event) => {
        const picture = [...event.clipboardData.files].find((file) => file.type.startsWith("image/"));
        if (picture) void show(picture);
      }}
    >
      <section>
        {app.pictures ? (
          <>
            <Drop busy={ask.isPending} progress={null} onFiles={(files) => void show(files[0]!.file)}>
              <span>Drop or paste a picture here, or</span>
            </Drop>
            <Draw onDone={(picture) => void show(picture)} />
          </>
        ) : app.series ? (
          <AskSeries
            project={project}
            app={app}
            busy={ask.isPending}
            onObject={(object) => ask.mutate(object)}
          />
        ) : (
          <Paste project={project} app={app} busy={ask.isPending} onObject={(object) => ask.mutate(object)} />
        )}
      </section>
      <section aria-live="polite">
        {seen && app.pictures && <img className="preview" src={seen} alt="What was asked about" />}
        {ask.isPending && <p role="status">Asking…</p>}
        {ask.error && <Failure error={ask.error} />}
        {ask.data && <Answer found={ask.data} metric={app.metric} />}
      </section>
    </div>
  );
}

function Paste({
  project,
  app,
  busy,
  onObject,
}: {
  project: string;
  app: App;
  busy: boolean;
  onObject: (object: unknown) => void;
}) {
  const { examples } = useExamples(project, app.name, { of: "", on: "", text: "" });
  const [text, setText] = useState("");
  const take = useMutation({
    mutationFn: (digest: string) =>
      answer(
        api.GET("/api/v1/projects/{project}/apps/{name}/examples/{digest}", {
          params: { path: { project, name: app.name, digest } },
        }),
      ),
    onSuccess: (found) => setText(JSON.stringify(found.input, null, 2)),
  });
  const send = useMutation({
    mutationFn: async () => onObject(parsed(text)),
  });
  const [asJson, setAsJson] = useState(false);
  const first = examples[0]?.digest;
  const begin = take.mutate;
  useEffect(() => {
    if (first) begin(first);
  }, [first, begin]);
  const fields = asJson ? null : fieldsOf(text);
  function submit(event: FormEvent) {
    event.preventDefault();
    send.mutate();
  }
  return (
    <form className="stack" onSubmit={submit}>
      {fields ? (
        Object.entries(fields).map(([name, value]) => (
          <label key={name}>
            {name}
            <input
              value={value === null ? "" : String(value)}
              onChange={(e) =>
                setText(JSON.stringify({ ...fields, [name]: typed(e.target.value, value) }, null, 2))
              }
            />
          </label>
        ))
      ) : (
        <label>
          An input, as JSON
          <textarea
            required
            rows={12}
            spellCheck={false}
            value={text}
            onChange={(e) => setText(e.target.value)}
          />
        </label>
      )}
      <p className="row">
        <button type="submit" className="primary" disabled={busy}>
          Ask
        </button>
        <button
          type="button"
          disabled={examples.length === 0 || take.isPending}
          onClick={() => take.mutate(examples[Math.floor(Math.random() * examples.length)]!.digest)}
        >
          Take an example's input
        </button>
        {(fields || asJson) && (
          <button type="button" onClick={() => setAsJson(!asJson)}>
            {asJson ? "As fields" : "As JSON"}
          </button>
        )}
      </p>
      {(send.error ?? take.error) && <Failure error={send.error ?? take.error} />}
    </form>
  );
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem(
      -1,
      "page",
      `That is not JSON: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

function Answer({ found, metric }: { found: Answers; metric: string }) {
  const [first] = found.answers;
  return (
    <div className="card" role="status">
      <h2>Answer</h2>
      <dl className="facts">
        {Object.entries(first ?? {}).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="long" dir="auto">
              {typeof value === "object" && value !== null ? (
                <Shares of={value as Record<string, unknown>} />
              ) : typeof value === "number" ? (
                figure(value)
              ) : (
                String(value)
              )}
            </dd>
          </div>
        ))}
      </dl>
      <p className="quiet">
        By {found.candidate} (<code>{found.model}</code>), validation {metric} {figure(found.quality)}
        {found.pinned && ", pinned"}.
      </p>
    </div>
  );
}

function Shares({ of }: { of: Record<string, unknown> }) {
  const entries = Object.entries(of).filter(
    (entry): entry is [string, number] => typeof entry[1] === "number",
  );
  if (entries.length !== Object.keys(of).length) return <code>{JSON.stringify(of)}</code>;
  return (
    <ul className="list">
      {entries
        .sort((a, b) => b[1] - a[1])
        .slice(0, 8)
        .map(([name, share]) => (
          <li key={name}>
            <label className="gauge">
              <span>
                {name} <span className="figure">{percent(share)}</span>
              </span>
              <meter min={0} max={1} value={share} />
            </label>
          </li>
        ))}
    </ul>
  );
}

async function base64Of(blob: Blob): Promise<string> {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000)
    text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}
