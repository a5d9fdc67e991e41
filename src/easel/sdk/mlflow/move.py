"""Move everything from one tracking store to another. Repeating continues: what is there already is left alone.

A moved run says in a tag where it came from, and in another when all of it has come; points of metrics and files that
are there are not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from easel.errors import EaselError, NotFound
from easel.sdk.mlflow.records import (
    MovedExperiment,
    MovedFile,
    MovedModel,
    MovedRun,
    MovedVersion,
    TrackingSource,
)
from easel.sdk.mlflow.server import ARTIFACTS, TrackingServer

ORIGIN = "easel.moved_from"
WHOLE = "easel.moved_whole"
_METRICS, _OTHERS = 1000, 100
T = TypeVar("T")


@dataclass(slots=True)
class MoveSummary:
    """What was done; `there` counts runs that had come before."""

    experiments: int = 0
    runs: int = 0
    there: int = 0
    points: int = 0
    files: int = 0
    bytes: int = 0
    models: int = 0
    versions: int = 0
    failed: list[str] = field(default_factory=list)
    """What could not be moved, and why."""


@dataclass(slots=True)
class MlflowMove:
    source: TrackingSource
    target: TrackingServer
    told: Callable[[str], None] = lambda _: None
    """Called with a word on each run and model, for a progress bar."""
    summary: MoveSummary = field(default_factory=MoveSummary)
    _moved: dict[str, MovedRun] = field(default_factory=dict)

    def everything(self) -> MoveSummary:
        for experiment in self.source.experiments():
            self._experiment(experiment)
        for model in self.source.models():
            self._model(model)
        return self.summary

    def _experiment(self, experiment: MovedExperiment) -> None:
        number = self._experiment_id(experiment)
        known = {run.tags[ORIGIN]: run for run in self.target.runs(number) if ORIGIN in run.tags}
        for run in self.source.runs(experiment.id):
            self.told(f"{experiment.name}: {run.name}")
            try:
                self._run(run, number, known.get(run.id))
            except EaselError as error:
                self.summary.failed.append(f"run {run.id}: {error}")
        if experiment.deleted and number != "0":
            self.target.call("POST", "experiments/delete", {"experiment_id": number})

    def _experiment_id(self, experiment: MovedExperiment) -> str:
        try:
            found = self.target.call("GET", "experiments/get-by-name", experiment_name=experiment.name)
            number = str(found["experiment"]["experiment_id"])
            if found["experiment"].get("lifecycle_stage") == "deleted":
                self.target.call("POST", "experiments/restore", {"experiment_id": number})
        except NotFound:
            made = self.target.call("POST", "experiments/create", {"name": experiment.name})
            number = str(made["experiment_id"])
            self.summary.experiments += 1
        for key, value in experiment.tags.items():
            body = {"experiment_id": number, "key": key, "value": value}
            self.target.call("POST", "experiments/set-experiment-tag", body)
        return number

    def _run(self, run: MovedRun, experiment: str, known: MovedRun | None) -> None:
        if known is not None and known.tags.get(WHOLE) == "true":
            self.summary.there += 1
            self._moved[run.id] = known
            return
        if known is not None and known.deleted:
            self.target.call("POST", "runs/restore", {"run_id": known.id})
        made = known or self._new_run(run, experiment)
        self._moved[run.id] = made
        for some in _batches(run.params.items(), _OTHERS):
            params = [{"key": key, "value": value} for key, value in some if key not in made.params]
            self.target.call("POST", "runs/log-batch", {"run_id": made.id, "params": params})
        for some in _batches(run.tags.items(), _OTHERS):
            tags = [{"key": key, "value": value} for key, value in some]
            self.target.call("POST", "runs/log-batch", {"run_id": made.id, "tags": tags})
        for key in run.metrics:
            for points in _batches(self.source.history(run.id, key), _METRICS):
                self.target.log_points(made.id, key, points)
                self.summary.points += len(points)
        self._files(self.source.files(run), made, lambda path: self.source.read(run, path))
        update: dict[str, Any] = {"run_id": made.id, "status": run.status}
        if run.end_time is not None:
            update["end_time"] = run.end_time
        self.target.call("POST", "runs/update", update)
        self.target.call("POST", "runs/set-tag", {"run_id": made.id, "key": WHOLE, "value": "true"})
        if run.deleted:
            self.target.call("POST", "runs/delete", {"run_id": made.id})
        self.summary.runs += 1

    def _new_run(self, run: MovedRun, experiment: str) -> MovedRun:
        body = {
            "experiment_id": experiment,
            "run_name": run.name,
            "user_id": run.user,
            "start_time": run.start_time,
            "tags": [{"key": ORIGIN, "value": run.id}],
        }
        made = self.target.call("POST", "runs/create", body)
        return self.target.run(made["run"]["info"]["run_id"])

    def _files(
        self,
        files: Iterator[MovedFile],
        to: MovedRun,
        read: Callable[[str], Iterator[bytes]],
        folder: str = "",
    ) -> None:
        there = {file.path: file.size for file in self.target.files(to)}
        for file in files:
            path = f"{folder}/{file.path}" if folder else file.path
            if there.get(path) == file.size:
                continue
            self.target.put_file(to, path, read(file.path))
            self.summary.files += 1
            self.summary.bytes += file.size

    def _model(self, model: MovedModel) -> None:
        self.told(model.name)
        tags = [{"key": key, "value": value} for key, value in model.tags.items()]
        try:
            self.target.call("GET", "registered-models/get", name=model.name)
        except NotFound:
            body = {"name": model.name, "description": model.description, "tags": tags}
            self.target.call("POST", "registered-models/create", body)
            self.summary.models += 1
        here = next((each for each in self.target.models() if each.name == model.name), None)
        known = {v.tags.get(ORIGIN): v.version for v in here.versions} if here else {}
        numbers: dict[int, int] = {}
        for version in model.versions:
            origin = f"{model.name}/{version.version}"
            try:
                numbers[version.version] = known.get(origin) or self._version(model, version, origin)
            except EaselError as error:
                self.summary.failed.append(f"model {origin}: {error}")
        for alias, number in model.aliases.items():
            if number in numbers:
                body = {"name": model.name, "alias": alias, "version": str(numbers[number])}
                self.target.call("POST", "registered-models/alias", body)

    def _version(self, model: MovedModel, version: MovedVersion, origin: str) -> int:
        run = self._moved.get(version.run_id)
        tags = {**version.tags, ORIGIN: origin}
        body = {
            "name": model.name,
            "source": self._source(model, version, run),
            "run_id": run.id if run else version.run_id,
            "description": version.description,
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
        }
        made = int(self.target.call("POST", "model-versions/create", body)["model_version"]["version"])
        if version.stage != "None":
            stage = {"name": model.name, "version": str(made), "stage": version.stage}
            self.target.call("POST", "model-versions/transition-stage", stage)
        self.summary.versions += 1
        return made

    def _source(self, model: MovedModel, version: MovedVersion, run: MovedRun | None) -> str:
        """Where the version's files are now: with its run, or brought there."""
        if run is None:
            return version.source
        marker = f"{version.run_id}/artifacts"
        if marker in version.source:
            return run.artifact_uri + version.source.partition(marker)[2]
        if version.source.startswith("runs:/"):
            return f"runs:/{run.id}/{version.source.removeprefix('runs:/').partition('/')[2]}"
        folder = f"registered/{model.name}/{version.version}"
        before = self.summary.files
        files = self.source.version_files(version)
        self._files(files, run, lambda path: self.source.read_version(version, path), folder)
        moved = self.summary.files > before
        return (
            f"{run.artifact_uri}/{folder}"
            if moved and run.artifact_uri.startswith(ARTIFACTS)
            else version.source
        )


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch
