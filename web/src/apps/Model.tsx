import { useMutation } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useNavigate } from "react-router";
import { useAppProgress, useChange, useReport, type App, type Report } from "../api/apps";
import { answer, api } from "../api/client";
import { Chart } from "../ui/Chart";
import { Failure } from "../ui/Failure";
import { count, figure, plural } from "../ui/format";
import { Loaded } from "../ui/Loaded";
import { Notes } from "../ui/Notes";
import { appPlace, DataLink, provenancePlace } from "../ui/places";
import { Picture } from "../ui/Picture";
import { save } from "../ui/save";
import { Time } from "../ui/Time";
import { confusionOption, progressOption, residualOption, truthOf } from "./pictures";

/** The best model so far: how it came to be, how it errs, and how to take it away. */
export function Model({ project, app }: { project: string; app: App }) {
  const progress = useAppProgress(project, app.name);
  const report = useReport(project, app.name, app.serving?.model);
  const params = { path: { project, name: app.name } };
  const unpin = useChange(project, app.name, () =>
    answer(api.DELETE("/api/v1/projects/{project}/apps/{name}/pin", { params })),
  );
  const roll = useChange(project, app.name, (forward: boolean) =>
    answer(api.POST("/api/v1/projects/{project}/apps/{name}/rollback", { params, body: { forward } })),
  );
  // Not a link: not every model has this form, and the reason is to be read here.
  const onnx = useMutation({
    mutationFn: async () => {
      const query = { form: "onnx" as const };
      const path = "/api/v1/projects/{project}/apps/{name}/export";
      const packed = await answer(api.GET(path, { params: { ...params, query }, parseAs: "blob" }));
      save(`${app.name}-onnx.zip`, packed as unknown as Blob);
    },
  });
  if (!app.serving)
    return (
      <>
        <p>
          {app.examples === 0
            ? "Feed it examples: then Easel looks for a model."
            : "No model yet: trials are being run."}
        </p>
        {app.why && <p dir="auto">{app.why}</p>}
        <Program app={app} />
      </>
    );
  const base = `/api/v1/projects/${encodeURIComponent(project)}/apps/${encodeURIComponent(app.name)}/export`;
  return (
    <>
      <section className="card">
        <h2 className="long">{app.serving.candidate}</h2>
        <p>
          {app.metric} <strong>{figure(app.serving.shown)}</strong> on validation, kept as{" "}
          <DataLink project={project} reference={app.serving.model} /> (
          <Link to={provenancePlace(project, app.serving.model)}>provenance</Link>,{" "}
          <Link to={appPlace(project, app.name, "examples")}>examples</Link>)
          {app.last_improvement_at && (
            <>
              , improved <Time at={app.last_improvement_at} />
            </>
          )}
          .
          {app.serving.low != null && app.serving.high != null && (
            <>
              {" "}
              Nine of ten tests on as many new examples score between {figure(app.serving.low)} and{" "}
              {figure(app.serving.high)}.
            </>
          )}
          {app.serving.luck != null && app.serving.luck > 0 && (
            <>
              {" "}
              {figure(app.serving.quality)} was measured; {figure(app.serving.luck)} of it was the luck of
              choosing the best of several.
            </>
          )}
        </p>
        <p className="row">
          <a className="button" href={`${base}?form=native`} download>
            Download the model
          </a>
          <button type="button" disabled={onnx.isPending} onClick={() => onnx.mutate()}>
            Download as ONNX
          </button>
          {app.pinned && (
            <button type="button" disabled={unpin.isPending} onClick={() => unpin.mutate(undefined)}>
              Unpin: let the best answer
            </button>
          )}
          {(progress.data?.items.length ?? 0) > 1 && (
            <button type="button" disabled={roll.isPending} onClick={() => roll.mutate(false)}>
              Roll back to the model before
            </button>
          )}
          {app.pinned && (
            <button type="button" disabled={roll.isPending} onClick={() => roll.mutate(true)}>
              Roll forward
            </button>
          )}
        </p>
        {app.pinned && app.best && (
          <p className="notice">
            Pinned. The best so far would be {app.best.candidate} with {figure(app.best.shown)}.
          </p>
        )}
        {onnx.error && <Failure error={onnx.error} />}
        {unpin.error && <Failure error={unpin.error} />}
        {roll.error && <Failure error={roll.error} />}
      </section>
      <div className="charts">
        {progress.data && progress.data.items.length > 0 && (
          <div className="card">
            <Picture
              title="Best score over time"
              about={`The best ${app.metric} over time, ${plural(progress.data.items.length, "improvement")}, now ${figure(app.serving.quality)}`}
              option={progressOption(progress.data.items, app.metric, Date.now())}
            />
            <p className="quiet">
              As it was measured: the best of several owes a part to luck, which the score above leaves out.
            </p>
          </div>
        )}
        <Loaded query={report}>{(found) => <Errors project={project} app={app} report={found} />}</Loaded>
      </div>
      <Notes project={project} kind="fileset" reference={app.serving.model} />
      <Program app={app} />
    </>
  );
}

function Errors({ project, app, report }: { project: string; app: App; report: Report }) {
  const navigate = useNavigate();
  const curves = useMemo(
    () =>
      (report.curves ?? []).slice(0, 5).flatMap((fold, k) =>
        ["training", "validation"].map((kind, j) => ({
          label: `${kind}, fold ${k + 1}`,
          points: fold.map((epoch, i) => ({ step: i + 1, value: epoch[j] ?? null })),
        })),
      ),
    [report.curves],
  );
  const classes = report.classes ?? [];
  const right = (report.confusion ?? []).reduce((sum, row, i) => sum + (row[i] ?? 0), 0);
  const all = (report.confusion ?? []).flat().reduce((sum, n) => sum + n, 0);
  return (
    <>
      {classes.length > 0 && (report.confusion ?? []).length > 0 && (
        <div className="card">
          <Picture
            title="Confusion matrix"
            about={`Confusion matrix over ${plural(classes.length, "class", "classes")}: ${right} of ${plural(all, "answer")} right`}
            option={confusionOption(report)}
            height={Math.min(560, 180 + 34 * classes.length)}
            onPick={(index) => {
              const truth = truthOf(report, index);
              if (truth !== undefined)
                void navigate(
                  `${appPlace(project, app.name, "examples")}&class=${encodeURIComponent(truth)}`,
                );
            }}
          />
          <p className="quiet">
            {count(right)} of {count(all)} validation answers are right. A cell opens the examples of its
            class.
          </p>
        </div>
      )}
      {(report.residuals ?? []).length > 0 && (
        <div className="card">
          <Picture
            title="Answer against truth"
            about={`${report.residuals!.length} validation answers against the truth; a perfect model is on the dashed line`}
            option={residualOption(report.residuals!)}
          />
        </div>
      )}
      {curves.length > 0 && (
        <div className="card">
          <Chart title="Loss while training" lines={curves} over="epochs" />
        </div>
      )}
    </>
  );
}

function Program({ app }: { app: App }) {
  return (
    <details>
      <summary>Its program</summary>
      <pre tabIndex={0} aria-label={`Program of ${app.name}`}>
        {app.program}
      </pre>
    </details>
  );
}
