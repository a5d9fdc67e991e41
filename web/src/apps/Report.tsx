import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { Link } from "react-router";
import { useChange, useReport, type App } from "../api/apps";
import { answer, api, type Schemas } from "../api/client";
import { Failure } from "../ui/Failure";
import { count, plural } from "../ui/format";
import { Loaded } from "../ui/Loaded";
import { jobPlace } from "../ui/places";

type Findings = Schemas["Findings"];
type Check = Schemas["ExampleCheck"];
const EVERY = 3_000;

/** What is asked after the first score: what matters, where it fails, what is odd about the examples, whole files. */
export function Report({ project, app }: { project: string; app: App }) {
  return (
    <>
      {app.serving ? (
        <>
          <About project={project} app={app} />
          <ScoreFiles project={project} app={app} />
        </>
      ) : (
        <p>There is no model yet: feed examples first.</p>
      )}
      <Checks project={project} app={app} />
    </>
  );
}

function About({ project, app }: { project: string; app: App }) {
  const params = { path: { project, name: app.name } };
  const report = useReport(project, app.name, app.serving?.model);
  const look = useChange(project, app.name, () =>
    answer(api.POST("/api/v1/projects/{project}/apps/{name}/report", { params })),
  );
  const card = `/api/v1/projects/${encodeURIComponent(project)}/apps/${encodeURIComponent(app.name)}/card`;
  const busy = ["queued", "running", "launching"].includes(report.data?.job_state ?? "");
  return (
    <section className="card">
      <h2>What matters, where it fails, what would help</h2>
      <p className="row">
        <button type="button" disabled={look.isPending || busy} onClick={() => look.mutate(undefined)}>
          {report.data?.findings ? "Looked into" : "Look into the model"}
        </button>
        <a className="button" href={`${card}?form=html`} download>
          Model card as a page
        </a>
        <a className="button" href={`${card}?form=md`} download>
          Model card as Markdown
        </a>
      </p>
      {look.error && <Failure error={look.error} />}
      <Loaded query={report}>
        {(found) => (
          <>
            {found.job && !found.findings && (
              <p role="status">
                <Link to={jobPlace(project, found.job)}>The job that looks into it</Link> is {found.job_state}
                .
              </p>
            )}
            {found.findings && <Found findings={found.findings} />}
          </>
        )}
      </Loaded>
    </section>
  );
}

function Found({ findings }: { findings: Findings }) {
  return (
    <>
      {(findings.told ?? []).map((sentence) => (
        <p key={sentence} dir="auto">
          {sentence}
        </p>
      ))}
      {findings.importance.length > 0 && (
        <table>
          <caption>Score lost when a column's values are dealt out anew</caption>
          <thead>
            <tr>
              <th scope="col">column</th>
              <th scope="col">lost</th>
              <th scope="col">±</th>
            </tr>
          </thead>
          <tbody>
            {findings.importance.slice(0, 30).map((one) => (
              <tr key={one.column}>
                <td dir="auto">{one.column}</td>
                <td>{one.drop.toFixed(4)}</td>
                <td>{one.deviation.toFixed(4)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {(findings.contributions ?? []).length > 0 && (
        <table>
          <caption>
            Mean size of what a column adds to an answer: exact Shapley values, {findings.contributions_of}
          </caption>
          <thead>
            <tr>
              <th scope="col">column</th>
              <th scope="col">moves answers by</th>
              <th scope="col">with larger numbers</th>
            </tr>
          </thead>
          <tbody>
            {(findings.contributions ?? []).slice(0, 30).map((one) => (
              <tr key={one.column}>
                <td dir="auto">{one.column}</td>
                <td>{one.mean.toFixed(4)}</td>
                <td>{one.direction == null ? "" : one.direction.toFixed(2)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {findings.learning_curve.length > 0 && (
        <table>
          <caption>Error with fewer examples ({findings.error_kind})</caption>
          <thead>
            <tr>
              <th scope="col">examples</th>
              <th scope="col">error</th>
            </tr>
          </thead>
          <tbody>
            {findings.learning_curve.map((one) => (
              <tr key={one.examples}>
                <td>{count(one.examples)}</td>
                <td>{one.error.toFixed(4)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function ScoreFiles({ project, app }: { project: string; app: App }) {
  const [reference, setReference] = useState("");
  const score = useChange(project, app.name, (text: string) =>
    answer(
      api.POST("/api/v1/projects/{project}/apps/{name}/score", {
        params: { path: { project, name: app.name } },
        body: { reference: text },
      }),
    ),
  );
  function start(event: FormEvent) {
    event.preventDefault();
    score.mutate(reference.trim());
  }
  return (
    <section className="card">
      <h2>Score whole files</h2>
      <form className="row" onSubmit={start}>
        <label>
          File set or path of the lake{" "}
          <input
            required
            value={reference}
            placeholder="rows:3"
            onChange={(event) => setReference(event.target.value)}
          />
        </label>
        <button disabled={score.isPending}>Score</button>
      </form>
      {score.error && <Failure error={score.error} />}
      {score.data && (
        <p role="status">
          <Link to={jobPlace(project, score.data.job)}>The job</Link> asks {score.data.model} (
          {score.data.candidate}); its output holds the answers.
        </p>
      )}
    </section>
  );
}

function Checks({ project, app }: { project: string; app: App }) {
  const params = { path: { project, name: app.name } };
  const checks = useQuery({
    queryKey: [project, "apps", app.name, "checks"],
    queryFn: () => answer(api.GET("/api/v1/projects/{project}/apps/{name}/checks", { params })),
    refetchInterval: (query) => (query.state.data?.job && !query.state.data.examples ? EVERY : false),
  });
  const look = useChange(project, app.name, () =>
    answer(api.POST("/api/v1/projects/{project}/apps/{name}/checks", { params })),
  );
  const off = useChange(project, app.name, (digests: string[]) =>
    answer(
      api.POST("/api/v1/projects/{project}/apps/{name}/refine", { params, body: { digests, on: false } }),
    ),
  );
  return (
    <section className="card">
      <h2>Checks of the examples</h2>
      <Loaded query={checks}>
        {(found) => (
          <>
            {(!found.job || found.state === "failed" || found.state === "killed") && (
              <button type="button" disabled={look.isPending} onClick={() => look.mutate(undefined)}>
                Check the examples
              </button>
            )}
            {found.job && !found.examples && (
              <p role="status">
                <Link to={jobPlace(project, found.job)}>The job that checks them</Link> is {found.state}.
              </p>
            )}
            {found.examples && (found.checks ?? []).length === 0 && (
              <p>Nothing odd in {plural(found.examples, "example")}.</p>
            )}
            {(found.checks ?? []).length > 0 && (
              <Odd checks={found.checks!} busy={off.isPending} onOff={(digests) => off.mutate(digests)} />
            )}
          </>
        )}
      </Loaded>
      {(look.error ?? off.error) && <Failure error={look.error ?? off.error} />}
    </section>
  );
}

function Odd(props: { checks: Check[]; busy: boolean; onOff: (digests: string[]) => void }) {
  return (
    <table>
      <caption>What is odd</caption>
      <thead>
        <tr>
          <th scope="col">check</th>
          <th scope="col">what was found</th>
          <th scope="col">examples</th>
        </tr>
      </thead>
      <tbody>
        {props.checks.map((one) => (
          <tr key={`${one.kind} ${one.column ?? ""}`}>
            <td>{one.kind}</td>
            <td dir="auto">{one.told}</td>
            <td>
              {(one.digests ?? []).length > 0 && (
                <button type="button" disabled={props.busy} onClick={() => props.onOff(one.digests!)}>
                  Switch {count(one.digests!.length)} off
                </button>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
