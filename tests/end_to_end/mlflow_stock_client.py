"""What a stock MLflow client does in a day, and every answer that it gets, as JSON without ids and times.

    python stock_client.py FOLDER

Run against MLflow's own store and against Easel; equal output means that training code cannot tell them apart.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")

from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag, ViewType  # noqa: E402
from mlflow.exceptions import MlflowException  # noqa: E402

from mlflow import MlflowClient, artifacts  # noqa: E402

said: dict[str, Any] = {}


def note(what: str, value: Any) -> None:
    said[what] = value


def refused(what: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except MlflowException as error:
        note(what, error.error_code)
    else:
        note(what, "not refused")


def number(value: float) -> Any:
    return "nan" if math.isnan(value) else value


def run_as_said(run: Any) -> dict[str, Any]:
    return {
        "name": run.info.run_name,
        "status": run.info.status,
        "stage": run.info.lifecycle_stage,
        "user": run.info.user_id,
        "start": run.info.start_time,
        "ended": run.info.end_time is not None,
        "metrics": {key: number(value) for key, value in sorted(run.data.metrics.items())},
        "params": dict(sorted(run.data.params.items())),
        "tags": dict(sorted(run.data.tags.items())),
    }


def experiments(client: MlflowClient) -> str:
    first = client.create_experiment("plants", tags={"field": "botany"})
    client.create_experiment("Planets")
    client.create_experiment("plays")
    client.set_experiment_tag(first, "note", "two\nlines")
    found = client.get_experiment(first)
    note("experiment", [found.name, found.lifecycle_stage, dict(sorted(found.tags.items()))])
    for filter_string in (
        "name = 'plants'",
        "name LIKE 'pla%'",
        "name ILIKE 'PLA%'",
        "tags.field = 'botany'",
        "attribute.name != 'plays'",
        "name LIKE 'pl_nts' AND tag.field LIKE 'bot%'",
    ):
        found_names = sorted(e.name for e in client.search_experiments(filter_string=filter_string))
        note(f"experiments where {filter_string}", found_names)
    note("experiments by name", [e.name for e in client.search_experiments(order_by=["name DESC"])])
    page = client.search_experiments(max_results=3, order_by=["name ASC"])
    rest = client.search_experiments(max_results=3, order_by=["name ASC"], page_token=page.token)
    note("pages of experiments", [[e.name for e in page], [e.name for e in rest], rest.token in (None, "")])
    refused("the same experiment again", lambda: client.create_experiment("plants"))
    refused("no such experiment", lambda: client.get_experiment("123456"))
    note("no experiment of this name", client.get_experiment_by_name("nothing") is None)
    other = client.create_experiment("soon gone")
    client.rename_experiment(other, "gone")
    client.delete_experiment(other)
    note("deleted", [e.name for e in client.search_experiments(view_type=ViewType.DELETED_ONLY)])
    refused("a run in a deleted experiment", lambda: client.create_run(other))
    client.restore_experiment(other)
    note("restored", client.get_experiment(other).lifecycle_stage)
    return str(first)


def logging(client: MlflowClient, experiment: str) -> str:
    run = client.create_run(
        experiment, start_time=456, run_name="rose", tags={"mlflow.user": "ann", "x": "y"}
    )
    run_id: str = run.info.run_id
    note("a new run", run_as_said(run))
    for step, value in enumerate((0.9, 0.5, 0.25)):
        client.log_metric(run_id, "loss", value, timestamp=1000 + step, step=step)
    client.log_metric(run_id, "twice", 1.0, timestamp=5, step=3)
    client.log_metric(run_id, "twice", 2.0, timestamp=5, step=3)
    client.log_metric(run_id, "twice", 2.0, timestamp=5, step=3)
    client.log_metric(run_id, "late", 3.0, timestamp=9, step=9)
    client.log_metric(run_id, "late", 4.0, timestamp=10, step=1)
    client.log_metric(run_id, "odd", float("nan"), timestamp=1)
    client.log_metric(run_id, "endless", float("inf"), timestamp=1)
    client.log_metric(run_id, "endless down", -float("inf"), timestamp=1)
    client.log_metric(run_id, "before", -1.5, timestamp=2, step=-4)
    client.log_param(run_id, "lr", 0.1)
    client.log_param(run_id, "lr", 0.1)
    client.log_param(run_id, "empty", "")
    client.log_param(run_id, "long", "v" * 6000)
    client.set_tag(run_id, "color", "red")
    client.set_tag(run_id, "color", "blue")
    client.set_tag(run_id, "empty", "")
    client.set_tag(run_id, "gone", "soon")
    client.delete_tag(run_id, "gone")
    client.log_batch(
        run_id,
        metrics=[Metric("batch", i / 7, 100 + i, i) for i in range(1000)],
    )
    client.log_batch(run_id, params=[Param(f"p{i}", str(i)) for i in range(100)])
    client.log_batch(run_id, tags=[RunTag(f"t/{i}", str(i)) for i in range(100)])
    note("the run", run_as_said(client.get_run(run_id)))
    for key in ("loss", "twice", "late", "odd", "before", "never"):
        points = client.get_metric_history(run_id, key)
        note(f"history of {key}", [[number(p.value), p.timestamp, p.step] for p in points])
    note("history of batch", len(client.get_metric_history(run_id, "batch")))
    refused("a parameter changed", lambda: client.log_param(run_id, "lr", 0.2))
    changed = [Param("lr", "0.3"), Param("fresh", "1")]
    refused("a parameter changed in a batch", lambda: client.log_batch(run_id, params=changed))
    note("nothing of that batch", "fresh" in client.get_run(run_id).data.params)
    refused("1,001 metrics", lambda: client.log_batch(run_id, [Metric("m", 1, 1, i) for i in range(1001)]))
    refused("101 params", lambda: client.log_batch(run_id, params=[Param(f"q{i}", "1") for i in range(101)]))
    refused("a name with an odd sign", lambda: client.log_metric(run_id, "a$b", 1.0))
    refused("a name like a way up", lambda: client.log_param(run_id, "../up", 1))
    refused("a name that is too long", lambda: client.log_param(run_id, "k" * 251, 1))
    refused("a tag that is not there", lambda: client.delete_tag(run_id, "nothing"))
    refused("a run that is not there", lambda: client.get_run("0" * 32))
    client.set_terminated(run_id)
    client.update_run(run_id, name="dark rose")
    note("at its end", run_as_said(client.get_run(run_id)))
    return run_id


def searching(client: MlflowClient) -> None:
    experiment = client.create_experiment("searched")
    for i in range(12):
        run = client.create_run(
            experiment, start_time=1000 + i, run_name=f"run-{i:02}", tags={"mlflow.user": "bob"}
        )
        run_id = run.info.run_id
        client.log_metric(run_id, "acc", i / 10, timestamp=1)
        if i % 3 == 0:
            client.log_metric(run_id, "third", float("nan") if i == 3 else 12 - i, timestamp=1)
        client.log_param(run_id, "kind", "Even" if i % 2 == 0 else "odd")
        client.log_param(run_id, "a b", str(i))
        if i % 4 == 0:
            client.set_tag(run_id, "four.times", f"v{i}")
        if i > 8:
            client.set_terminated(run_id, "FAILED" if i == 9 else "FINISHED", end_time=5000 + i)
        if i == 11:
            tags = [InputTag("mlflow.data.context", "training")]
            client.log_inputs(run_id, [DatasetInput(Dataset("flowers", "d1", "local", "here"), tags)])
    for filter_string in (
        "",
        "metrics.acc > 0.5",
        "metrics.acc >= 0.5 and metrics.acc != 0.7",
        "metric.acc <= 0.3 AND params.kind = 'odd'",
        "params.kind != 'odd'",
        "params.kind LIKE 'E%'",
        "params.kind LIKE 'e%'",
        "params.kind ILIKE 'e%'",
        "params.`a b` = '7'",
        'params."a b" = "7"',
        "tags.four.times = 'v8'",
        "tags.`four.times` LIKE 'v%'",
        "tags.`four.times` IS NULL",
        "tags.`four.times` IS NOT NULL",
        "params.nothing IS NULL",
        "attributes.status = 'FAILED'",
        "status != 'RUNNING'",
        "run_name LIKE 'run-1%'",
        "attributes.run_name IN ('run-01', 'run-05')",
        "start_time >= 1009",
        "attributes.end_time > 5009",
        "dataset.name = 'flowers'",
        "datasets.context = 'training' AND dataset.digest LIKE 'd%'",
        "metrics.third > 0",
        "metrics.nothing = 1",
        "tags.mlflow.user = 'bob' and metrics.acc = 0.4",
    ):
        try:
            found = [run.info.run_name for run in client.search_runs([experiment], filter_string)]
        except MlflowException as error:
            found = [error.error_code]
        note(f"runs where {filter_string}", found)
    for order in (
        ["metrics.acc DESC"],
        ["metrics.third ASC"],
        ["metrics.third DESC", "params.kind ASC"],
        ["params.kind", "start_time ASC"],
        ["tags.`four.times` DESC"],
        ["attributes.start_time ASC"],
        ["attribute.end_time DESC"],
        ["run_name DESC"],
        ["metrics.nothing DESC"],
    ):
        found = [run.info.run_name for run in client.search_runs([experiment], order_by=order)]
        note(f"runs by {order}", found)
    pages, token = [], None
    while True:
        page = client.search_runs(
            [experiment], max_results=5, order_by=["metrics.acc DESC"], page_token=token
        )
        pages.append([run.info.run_name for run in page])
        token = page.token
        if not token:
            break
    note("pages of runs", pages)
    for wrong in (
        "metrics.acc ~ 1",
        "foo.bar = 1",
        "metrics.acc = 'x'",
        "params.kind = 1",
        "acc >",
        "a = 'b' OR c = 'd'",
    ):
        refused(f"the filter {wrong}", lambda wrong=wrong: client.search_runs([experiment], wrong))  # type: ignore[misc]
    refused("too many results", lambda: client.search_runs([experiment], max_results=1_000_000))
    first = client.search_runs([experiment], "run_name = 'run-00'")[0].info.run_id
    client.delete_run(first)
    note("after a deletion", len(client.search_runs([experiment])))
    deleted = client.search_runs([experiment], run_view_type=ViewType.DELETED_ONLY)
    note("the deleted one", [run.info.run_name for run in deleted])
    refused("logging to a deleted run", lambda: client.log_metric(first, "acc", 1.0))
    client.restore_run(first)
    note("after its return", len(client.search_runs([experiment])))


def files(client: MlflowClient, run_id: str, folder: Path) -> None:
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("hello")
    (folder / "sub" / "empty.bin").write_bytes(b"")
    (folder / "sub" / "ü name.txt").write_text("wörter")
    client.log_artifact(run_id, str(folder / "a.txt"))
    client.log_artifacts(run_id, str(folder), "model")
    client.log_text(run_id, "more", "notes/one.txt")
    client.log_dict(run_id, {"k": [1, 2]}, "d.json")
    for path in (None, "model", "model/sub", "nothing", "a.txt"):
        listed = client.list_artifacts(run_id, path)
        note(f"files in {path}", [[f.path, f.is_dir, f.file_size or 0] for f in listed])
    got = Path(client.download_artifacts(run_id, "model", str(folder)))
    note(
        "brought back",
        sorted((str(p.relative_to(got)), p.read_text()) for p in got.rglob("*") if p.is_file()),
    )
    note("text", artifacts.load_text(client.get_run(run_id).info.artifact_uri + "/notes/one.txt"))
    client.log_text(run_id, "changed", "notes/one.txt")
    note("text again", artifacts.load_text(client.get_run(run_id).info.artifact_uri + "/notes/one.txt"))
    for path in ("../up.txt", "/etc/passwd", "a/../../up", "%2e%2e/up"):
        try:
            listed = client.list_artifacts(run_id, path)
        except Exception:  # noqa: BLE001 - MLflow's own store and its server refuse with different errors
            listed = []
        note(f"the path {path}", listed)


def registry(client: MlflowClient, run_id: str) -> None:
    model = client.create_registered_model("flora", tags={"a": "b"}, description="knows plants")
    note("model", [model.name, model.description, dict(model.tags), model.latest_versions])
    refused("the same model again", lambda: client.create_registered_model("flora"))
    refused("a name with a slash", lambda: client.create_registered_model("a/b"))
    refused("a name with a colon", lambda: client.create_registered_model("a:b"))
    refused("no name", lambda: client.create_registered_model(""))
    refused("a name of spaces", lambda: client.create_registered_model("  "))
    client.create_registered_model('it\'s "quoted" & spaced')
    source = client.get_run(run_id).info.artifact_uri + "/model"
    one = client.create_model_version("flora", source, run_id, tags={"t": "1"}, description="first")
    note(
        "version",
        [one.name, str(one.version), one.current_stage, one.description, one.status, dict(one.tags)],
    )
    two = client.create_model_version("flora", source, run_id)
    client.set_registered_model_alias("flora", "champion", two.version)
    client.set_registered_model_alias("flora", "old", one.version)
    note("aliases", {a: str(v) for a, v in sorted(client.get_registered_model("flora").aliases.items())})
    note("champion", str(client.get_model_version_by_alias("flora", "champion").version))
    client.delete_registered_model_alias("flora", "old")
    note("one alias", {a: str(v) for a, v in client.get_registered_model("flora").aliases.items()})
    refused("no such alias", lambda: client.get_model_version_by_alias("flora", "nobody"))
    refused("no such version", lambda: client.get_model_version("flora", "99"))
    refused("no such model", lambda: client.get_registered_model("fauna"))
    refused("a reserved alias", lambda: client.set_registered_model_alias("flora", "v1", "1"))
    client.set_model_version_tag("flora", "1", "k", "v")
    client.delete_model_version_tag("flora", "1", "t")
    client.set_registered_model_tag("flora", "c", "")
    client.delete_registered_model_tag("flora", "a")
    client.update_model_version("flora", "1", "better")
    client.update_registered_model("flora", "knows more")
    client.transition_model_version_stage("flora", "1", "Staging")
    client.transition_model_version_stage("flora", "2", "staging", archive_existing_versions=True)
    refused("no such stage", lambda: client.transition_model_version_stage("flora", "1", "Somewhere"))
    found = client.get_registered_model("flora")
    note(
        "model then",
        [found.description, dict(found.tags), sorted(str(v.version) for v in found.latest_versions)],
    )
    versions = sorted(client.search_model_versions("name = 'flora'"), key=lambda v: int(v.version))
    note("versions", [[str(v.version), v.current_stage, v.description or "", dict(v.tags)] for v in versions])
    note("by run", sorted(str(v.version) for v in client.search_model_versions(f"run_id = '{run_id}'")))
    note("models like", [m.name for m in client.search_registered_models("name LIKE 'fl%'")])
    note("all models", [m.name for m in client.search_registered_models(order_by=["name DESC"])])
    note(
        "latest", sorted(str(v.version) for v in client.get_latest_versions("flora", ["Staging", "Archived"]))
    )
    client.rename_registered_model("flora", "flora two")
    client.delete_model_version("flora two", "1")
    note("renamed", [str(v.version) for v in client.search_model_versions("name = 'flora two'")])
    three = client.create_model_version("flora two", source, run_id)
    note("the next number", str(three.version))
    client.delete_registered_model("flora two")
    refused("a deleted model", lambda: client.get_registered_model("flora two"))


def main() -> None:
    folder = Path(sys.argv[1])
    client = MlflowClient()
    note("at first", [[e.name, e.experiment_id] for e in client.search_experiments()])
    experiment = experiments(client)
    run_id = logging(client, experiment)
    searching(client)
    files(client, run_id, folder / "files")
    registry(client, run_id)
    (folder / "said.json").write_text(json.dumps(said, indent=1, sort_keys=True, default=str))


main()
