"""Everything is moved once, whatever interrupts it, and what could not be moved is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.mlflow.conftest import Connect
from tests.sdk.mlflow.folders import a_logged_model, a_run, a_version, write

from easel.errors import EaselError, TryLater
from easel.sdk.mlflow.mlruns import MlrunsFolder
from easel.sdk.mlflow.move import MlflowMove
from easel.sdk.mlflow.records import MovedRun
from easel.sdk.mlflow.server import TrackingServer
from easel.sdk.mlflow.transfer import MoveStep, MoveSummary


def moved(folder: Path, target: TrackingServer) -> MoveSummary:
    return MlflowMove(MlrunsFolder(folder), target).everything()


def runs_of(target: TrackingServer, name: str = "old") -> list[MovedRun]:
    (experiment,) = [each for each in target.experiments() if each.name == name]
    return list(target.runs(experiment.id))


def test_a_folder_of_mlflow_is_brought_in_once(connect: Connect, tmp_path: Path) -> None:
    run = a_run(tmp_path)
    write(run / "metrics" / "loss", "1000 0.5 0\n1001 0.25 1\n1002 nan 1\n")
    write(run / "params" / "lr", "0.1")
    write(run / "tags" / "mlflow.user", "ann")
    write(run / "artifacts" / "model" / "weights.bin", "bytes")
    a_version(tmp_path, "flora", 1, source=f"{run}/artifacts/model", run_id="0123abcd")
    write(tmp_path / "models" / "flora" / "aliases" / "champion", "1")
    target = connect("astro")
    for first in (True, False):
        summary = moved(tmp_path, target)
        assert summary.failed == []
        assert (summary.runs, summary.there, summary.versions) == ((1, 0, 1) if first else (0, 1, 0))
    (found,) = runs_of(target)
    assert (found.name, found.user, found.status) == ("ancient", "ann", "FINISHED")
    assert (found.start_time, found.end_time, found.params) == (1000, 2000, {"lr": "0.1"})
    assert [point.timestamp for point in target.history(found.id, "loss")] == [1000, 1001, 1002]
    assert [(file.path, file.size) for file in target.files(found)] == [("model/weights.bin", 5)]
    (registered,) = target.models()
    assert registered.aliases == {"champion": 1}
    assert registered.versions[0].source == f"{found.artifact_uri}/model"


def test_logged_models_are_moved_in_and_out_with_all_that_names_them(
    connect: Connect, tmp_path: Path
) -> None:
    """From a folder to Easel, from there to another server, each twice: the second time finds everything there."""
    a_logged_model(tmp_path)
    here, there = connect("astro"), connect("bio")
    for first in (True, False):
        for source, target in ((MlrunsFolder(tmp_path), here), (here, there)):
            summary = MlflowMove(source, target).everything()
            assert summary.failed == []
            assert (summary.logged_models, summary.versions) == ((1, 1) if first else (0, 0))
    (run,) = runs_of(there)
    (model,) = there.logged_models(next(each.id for each in there.experiments() if each.name == "old"))
    assert run.deleted
    assert [(use.model_id, use.step) for use in run.models_made] == [(model.id, 3)]
    assert [each["dataset"]["name"] for each in run.datasets] == ["iris"]
    assert (model.name, model.status, model.run_id) == ("forest", "LOGGED_MODEL_READY", run.id)
    assert (model.params, model.tags["author"]) == ({"depth": "4"}, "ann")
    (metric,) = model.metrics
    assert (metric.key, metric.point.value, metric.run_id) == ("loss", 0.5, run.id)
    assert metric.dataset_name == "iris"
    assert len(list(there.history(run.id, "loss"))) == 1
    sizes = {file.path: file.size for file in there.logged_files(model)}
    assert sizes == {"MLmodel": 12, "data/weights.bin": 5}
    assert b"".join(there.read_logged(model, "data/weights.bin")) == b"bytes"
    (registered,) = there.models()
    assert registered.versions[0].model_id == model.id
    assert {file.path for file in there.version_files(registered.versions[0])} == set(sizes)


def test_a_run_that_went_on_is_completed_the_next_time(connect: Connect, tmp_path: Path) -> None:
    run = a_run(tmp_path, status=1)
    write(run / "metrics" / "loss", "1000 0.5 0\n1001 nan 1\n")
    write(run / "artifacts" / "a.bin", "one")
    target = connect("astro")
    first = moved(tmp_path, target)
    assert (first.failed, first.open, first.runs) == ([], ["0123abcd"], 1)
    assert runs_of(target)[0].status == "RUNNING"
    a_run(tmp_path, status=4)
    write(run / "metrics" / "loss", "1000 0.5 0\n1001 nan 1\n1002 0.25 2\n")
    write(run / "params" / "late", "1")
    write(run / "artifacts" / "b.bin", "two")
    second = moved(tmp_path, target)
    assert (second.failed, second.open, second.there) == ([], [], 0)
    assert (second.points, second.files) == (1, 1)  # only what is new was sent
    (found,) = runs_of(target)
    assert (found.status, found.end_time, found.params) == ("FAILED", 2000, {"late": "1"})
    assert [point.step for point in target.history(found.id, "loss")] == [0, 1, 2]
    assert moved(tmp_path, target).there == 1


def test_a_run_that_an_older_release_called_whole_while_it_ran_is_completed(
    connect: Connect, tmp_path: Path
) -> None:
    run = a_run(tmp_path, status=1)
    target = connect("astro")
    moved(tmp_path, target)
    (found,) = runs_of(target)
    tag = {"run_id": found.id, "key": "easel.moved_whole", "value": "true"}
    target.call("POST", "runs/set-tag", tag)
    a_run(tmp_path, status=3)
    write(run / "metrics" / "loss", "1000 0.5 0\n")
    assert moved(tmp_path, target).points == 1
    assert runs_of(target)[0].status == "FINISHED"


def test_what_was_deleted_stays_so_where_the_move_breaks_off(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(tmp_path, lifecycle_stage="deleted")
    write(run / "metrics" / "loss", "1000 0.5 0\n")
    target = connect("astro")
    assert moved(tmp_path, target).failed == []
    assert [found.deleted for found in runs_of(target)] == [True]
    write(run / "metrics" / "late", "1000 0.5 0\n")

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(target, "log_points", stopped)
        with pytest.raises(KeyboardInterrupt):
            moved(tmp_path, target)
    assert [found.deleted for found in runs_of(target)] == [True]
    assert moved(tmp_path, target).points == 1
    assert [found.deleted for found in runs_of(target)] == [True]
    a_run(tmp_path)  # restored where it came from, deleted here by somebody who meant it
    write(run / "metrics" / "later", "1000 0.5 0\n")
    assert moved(tmp_path, target).points == 1
    assert [found.deleted for found in runs_of(target)] == [True]


def test_what_a_kill_left_half_written_is_named_and_the_rest_comes(connect: Connect, tmp_path: Path) -> None:
    """A line of a metric, a record of a run, one of an experiment, one of a version."""
    run = a_run(tmp_path)
    write(run / "metrics" / "loss", "1000 0.5 0\n1001 0.2")
    write(run / "metrics" / "acc", "1000 0.5 0\n")
    write(a_run(tmp_path, "broken") / "meta.yaml", "run_id: 'bro")
    write(a_run(tmp_path, "empty") / "meta.yaml", "")
    write(tmp_path / "6" / "meta.yaml", "experiment_id: [6\n")
    a_version(tmp_path, "flora", 1, source=f"{run}/artifacts", run_id="0123abcd")
    write(tmp_path / "models" / "flora" / "version-2" / "meta.yaml", "version: two\n")
    target = connect("astro")
    summary = moved(tmp_path, target)
    (found,) = runs_of(target)
    assert len(list(target.history(found.id, "loss"))) == 1
    assert len(list(target.history(found.id, "acc"))) == 1
    told = sorted(each.split(":")[0] for each in summary.failed)
    assert told == sorted(
        [
            "metric loss of run 0123abcd",
            "5/broken/meta.yaml",
            "5/empty/meta.yaml",
            "6/meta.yaml",
            "models/flora/version-2/meta.yaml",
            "model flora/1",
        ]
    )
    write(run / "metrics" / "loss", "1000 0.5 0\n1001 0.2 1\n")
    again = moved(tmp_path, target)
    assert (again.points, again.versions, len(again.failed)) == (1, 1, 4)


class Broken(MlrunsFolder):
    """A source of which some files cannot be read to their end."""

    raised: Exception = ConnectionResetError("the other side is gone")

    def read(self, run: MovedRun, path: str) -> Iterator[bytes]:
        yield from super().read(run, path)
        if path.startswith("b"):
            raise self.raised


def test_a_file_that_breaks_off_is_named_and_comes_the_next_time(connect: Connect, tmp_path: Path) -> None:
    """The rest comes at once; a version waits until all files of its run are there."""
    run = a_run(tmp_path)
    write(run / "metrics" / "loss", "".join(f"{1000 + i} 0.5 {i}\n" for i in range(50)))
    for name in ("a.bin", "b.bin", "c.bin"):
        write(run / "artifacts" / name, name * 1000)
    a_version(tmp_path, "flora", 1, source=f"{run}/artifacts", run_id="0123abcd")
    target = connect("astro")
    first = MlflowMove(Broken(tmp_path), target).everything()
    assert first.failed == [
        "file b.bin of run 0123abcd: the other side is gone",
        "model flora/1: it waits for files of 0123abcd, which did not come",
    ]
    assert (first.files, first.bytes) == (2, 10_000)
    second = moved(tmp_path, target)
    assert (second.failed, second.runs, second.points, second.files) == ([], 1, 0, 1)
    (found,) = runs_of(target)
    names = ("a.bin", "b.bin", "c.bin")
    assert {file.path: file.size for file in target.files(found)} == dict.fromkeys(names, 5000)
    (version,) = target.models()[0].versions
    assert {file.path for file in target.version_files(version)} == set(names)


def test_a_side_that_is_away_ends_the_move(connect: Connect, tmp_path: Path) -> None:
    """Nobody waits for each of a thousand files in turn."""
    run = a_run(tmp_path)
    for number in range(9):
        write(run / "artifacts" / f"b{number}", "x")
    source = Broken(tmp_path)
    source.raised = TryLater("no answer")
    with pytest.raises(TryLater, match="continues where it stopped"):
        MlflowMove(source, connect("astro")).everything()
    assert moved(tmp_path, connect("astro")).failed == []


def test_a_version_without_its_run_brings_its_files(connect: Connect, tmp_path: Path) -> None:
    """They lie in the source's own store, where nobody else can read them."""
    here, there = connect("astro"), connect("bio")
    here.put_file("mlflow-artifacts:/lost", "model/weights.bin", lambda: [b"bytes"])
    for source, name in (("mlflow-artifacts:/lost/model", "found"), ("s3://bucket/model", "elsewhere")):
        here.call("POST", "registered-models/create", {"name": name})
        body = {"name": name, "source": source, "run_id": "0" * 32}
        here.call("POST", "model-versions/create", body)
    summary = MlflowMove(here, there).everything()
    assert summary.failed == []
    versions = {model.name: model.versions[0] for model in there.models()}
    assert versions["elsewhere"].source == "s3://bucket/model"
    assert versions["found"].source == "mlflow-artifacts:/registered/found/1"
    assert b"".join(there.read_version(versions["found"], "weights.bin")) == b"bytes"


def test_a_version_whose_files_are_nowhere_is_named(connect: Connect) -> None:
    here, there = connect("astro"), connect("bio")
    here.call("POST", "registered-models/create", {"name": "ghost"})
    body = {"name": "ghost", "source": "mlflow-artifacts:/nowhere/model"}
    here.call("POST", "model-versions/create", body)
    summary = MlflowMove(here, there).everything()
    assert summary.failed == [
        "model ghost/1: its files are not to be found at mlflow-artifacts:/nowhere/model"
    ]
    assert there.models()[0].versions == []


def test_progress_counts_runs_models_and_bytes(connect: Connect, tmp_path: Path) -> None:
    for run_id in ("one", "two"):
        write(a_run(tmp_path, run_id) / "artifacts" / "a.bin", "12345")
    a_version(tmp_path, "flora", 1, source="s3://bucket/model")
    steps: list[MoveStep] = []
    MlflowMove(MlrunsFolder(tmp_path), connect("astro"), steps.append).everything()
    assert {step.total for step in steps[1:]} == {3}
    done = [step.done for step in steps]
    assert (done == sorted(done), steps[-1].done, steps[-1].bytes) == (True, 3, 10)
    assert {step.word for step in steps} == {"counting", "old: ancient", "flora"}


class Refusing(TrackingServer):
    """A target that refuses one experiment."""

    def call(self, verb: str, endpoint: str, body: Any = None, /, **params: Any) -> dict[str, Any]:
        if endpoint == "experiments/create" and body["name"] == "old":
            raise EaselError("not this one")
        return super().call(verb, endpoint, body, **params)


def test_an_experiment_that_is_refused_does_not_stop_the_others(connect: Connect, tmp_path: Path) -> None:
    a_run(tmp_path)
    write(tmp_path / "6" / "meta.yaml", "experiment_id: '6'\nname: new\n")
    write(tmp_path / "6" / "r6" / "meta.yaml", "run_id: r6\nstatus: 3\nend_time: 7\n")
    target = connect("astro")
    target.__class__ = Refusing
    summary = moved(tmp_path, target)
    assert summary.failed == ["experiment old: not this one"]
    assert [run.end_time for run in runs_of(target, "new")] == [7]
