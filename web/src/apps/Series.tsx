import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type FormEvent } from "react";
import { useExamples, type App, type Example } from "../api/apps";
import { answer, api } from "../api/client";
import { Drop } from "../ui/Drop";
import { Failure } from "../ui/Failure";
import { Spark } from "../ui/Spark";
import { columnsOf, formOf, objectOf, tableOf, textOf, thinned, type Form } from "./series";

/** The curve of an example, fetched when it comes into view. */
export function ExampleCurve({ project, app, example }: { project: string; app: string; example: Example }) {
  const place = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(false);
  useEffect(() => {
    const watcher = new IntersectionObserver(([entry]) => entry?.isIntersecting && setNear(true), {
      rootMargin: "200px",
    });
    if (place.current) watcher.observe(place.current);
    return () => watcher.disconnect();
  }, []);
  const found = useQuery({
    queryKey: ["curve", project, app, example.digest],
    enabled: near,
    staleTime: Infinity,
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/apps/{name}/examples/{digest}/curve", {
          params: { path: { project, name: app, digest: example.digest } },
        }),
      ),
  });
  return (
    <div ref={place} className="curve">
      {found.data ? (
        <Spark lines={found.data.lines} steps={found.data.steps} />
      ) : (
        <span dir="auto">{found.error ? (example.preview ?? example.digest.slice(0, 12)) : "\u00a0"}</span>
      )}
    </div>
  );
}

/** Asks about a series: pasted, typed, or a column of a CSV file, drawn before it is sent. */
export function AskSeries(props: {
  project: string;
  app: App;
  busy: boolean;
  onObject: (object: unknown) => void;
}) {
  const { project, app } = props;
  const { examples } = useExamples(project, app.name, { of: "", on: "", text: "" });
  const [text, setText] = useState("");
  const [form, setForm] = useState<Form>({ kind: "plain" });
  const [chosen, setChosen] = useState(0);
  const take = useMutation({
    mutationFn: (digest: string) =>
      answer(
        api.GET("/api/v1/projects/{project}/apps/{name}/examples/{digest}", {
          params: { path: { project, name: app.name, digest } },
        }),
      ),
    onSuccess: (found) => {
      setForm(formOf(found.input));
      setText(textOf(found.input));
      setChosen(0);
    },
  });
  const first = examples[0]?.digest;
  const begin = take.mutate;
  useEffect(() => {
    if (first) begin(first);
  }, [first, begin]);
  const table = tableOf(text);
  const columns = columnsOf(table);
  const drawn = form.kind === "plain" ? columns.slice(chosen, chosen + 1) : columns;
  const asked = objectOf(table, form, chosen);
  async function read(file: File) {
    setText(await file.text());
    setChosen(0);
  }
  function submit(event: FormEvent) {
    event.preventDefault();
    if ("object" in asked) props.onObject(asked.object);
  }
  return (
    <form className="stack" onSubmit={submit}>
      <Drop busy={props.busy} progress={null} onFiles={(files) => void read(files[0]!.file)}>
        <span>Drop a CSV file here, paste numbers below, or</span>
      </Drop>
      <label>
        The series, one step a line
        <textarea rows={8} spellCheck={false} value={text} onChange={(e) => setText(e.target.value)} />
      </label>
      {form.kind === "plain" && columns.length > 1 && (
        <label>
          Column
          <select value={chosen} onChange={(e) => setChosen(Number(e.target.value))}>
            {columns.map((column, k) => (
              <option key={k} value={k}>
                {column.name}
              </option>
            ))}
          </select>
        </label>
      )}
      {drawn.length > 0 && (
        <Spark
          large
          steps={drawn[0]!.values.length}
          lines={drawn.slice(0, 6).map((column) => ({ ...column, values: thinned(column.values) }))}
        />
      )}
      {"lacks" in asked && text.trim() !== "" && (
        <p className="wrong">Not a series yet: it needs {asked.lacks}.</p>
      )}
      <p className="row">
        <button type="submit" className="primary" disabled={props.busy || "lacks" in asked}>
          Ask
        </button>
        <button
          type="button"
          disabled={examples.length === 0 || take.isPending}
          onClick={() => take.mutate(examples[Math.floor(Math.random() * examples.length)]!.digest)}
        >
          Take an example's input
        </button>
      </p>
      {take.error && <Failure error={take.error} />}
    </form>
  );
}
