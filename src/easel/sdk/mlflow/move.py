"""Move everything from one tracking store to another. Repeating continues: what is there already is left alone.

A moved run says in a tag where it came from, and in another when all of it has come; points of metrics and files that
are there are not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from easel.errors import EaselError, NotFound
from easel.sdk.mlflow.records import (
    MovedExperiment,
    MovedFile,
    MovedLoggedModel,
    MovedModel,
    MovedRun,
    MovedUse,
    MovedVersion,
    TrackingSource,
)
from easel.sdk.mlflow.server import ARTIFACTS, TrackingServer

ORIGIN = "easel.moved_from"
WHOLE = "easel.moved_whole"
_VERSIONS = "mlflow.modelVersions"
"""The tag in which a server writes where a logged model is registered; the target writes its own."""
_OWN = frozenset({ORIGIN, WHOLE, _VERSIONS})
"""Tags that say something of the source, and nothing of what is made of it; the source may have been moved itself."""
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
    logged_models: int = 0
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
    _logged: dict[str, MovedLoggedModel] = field(default_factory=dict)
    _deleted: list[str] = field(default_factory=list)
    """Runs of the target that are deleted at the end: to what is deleted nothing can be logged."""

    def everything(self) -> MoveSummary:
        """Logged models come after all runs, which they name, and before the registry, which names them."""
        numbers = [(each, self._experiment_id(each)) for each in self.source.experiments()]
        uses: list[MovedRun] = []
        for experiment, number in numbers:
            uses += self._runs(experiment, number)
        for experiment, number in numbers:
            self._logged_models(experiment, number)
        for run in uses:
            self._uses(run)
        for model in self.source.models():
            self._model(model)
        for run_id in self._deleted:
            self.target.call("POST", "runs/delete", {"run_id": run_id})
        for experiment, number in numbers:
            if experiment.deleted and number != "0":
                self.target.call("POST", "experiments/delete", {"experiment_id": number})
        return self.summary

    def _runs(self, experiment: MovedExperiment, number: str) -> list[MovedRun]:
        """Move the runs of an experiment; returns those of the source that read or made logged models."""
        uses = []
        known = {run.tags[ORIGIN]: run for run in self.target.runs(number) if ORIGIN in run.tags}
        for run in self.source.runs(experiment.id):
            self.told(f"{experiment.name}: {run.name}")
            try:
                self._run(run, number, known.get(run.id))
            except EaselError as error:
                self.summary.failed.append(f"run {run.id}: {error}")
                continue
            if run.models_read or run.models_made:
                uses.append(run)
        return uses

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
            if run.deleted and not known.deleted:  # the last time ended before it came to that
                self._deleted.append(known.id)
            return
        if known is not None and known.deleted:
            self.target.call("POST", "runs/restore", {"run_id": known.id})
        made = known or self._new_run(run, experiment)
        self._moved[run.id] = made
        for some in _batches(run.params.items(), _OTHERS):
            params = _pairs((key, value) for key, value in some if key not in made.params)
            self.target.call("POST", "runs/log-batch", {"run_id": made.id, "params": params})
        for some in _batches(_told(run.tags), _OTHERS):
            self.target.call("POST", "runs/log-batch", {"run_id": made.id, "tags": _pairs(some)})
        for key in run.metrics:
            for points in _batches(self.source.history(run.id, key), _METRICS):
                self.target.log_points(made.id, key, points)
                self.summary.points += len(points)
        if run.datasets:
            self.target.call("POST", "runs/log-inputs", {"run_id": made.id, "datasets": list(run.datasets)})
        self._files(self.source.files(run), made, lambda path: self.source.read(run, path))
        update: dict[str, Any] = {"run_id": made.id, "status": run.status}
        if run.end_time is not None:
            update["end_time"] = run.end_time
        self.target.call("POST", "runs/update", update)
        self.target.call("POST", "runs/set-tag", {"run_id": made.id, "key": WHOLE, "value": "true"})
        if run.deleted:
            self._deleted.append(made.id)
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
        to: MovedRun | MovedLoggedModel,
        read: Callable[[str], Iterator[bytes]],
        folder: str = "",
    ) -> None:
        listed = self.target.files(to) if isinstance(to, MovedRun) else self.target.logged_files(to)
        there = {file.path: file.size for file in listed}
        for file in files:
            path = f"{folder}/{file.path}" if folder else file.path
            if there.get(path) == file.size:
                continue
            self.target.put_file(to, path, read(file.path))
            self.summary.files += 1
            self.summary.bytes += file.size

    def _logged_models(self, experiment: MovedExperiment, number: str) -> None:
        known: dict[str, MovedLoggedModel] | None = None
        for model in self.source.logged_models(experiment.id):
            self.told(f"{experiment.name}: model {model.name}")
            if known is None:  # a target that knows no logged models is asked only where there are some
                there = self.target.logged_models(number)
                known = {each.tags[ORIGIN]: each for each in there if ORIGIN in each.tags}
            try:
                self._logged_model(model, number, known.get(model.id))
            except EaselError as error:
                self.summary.failed.append(f"logged model {model.id}: {error}")

    def _logged_model(self, model: MovedLoggedModel, number: str, known: MovedLoggedModel | None) -> None:
        if known is not None and known.tags.get(WHOLE) == "true":
            self._logged[model.id] = known
            return
        made = known or self._new_logged_model(model, number)
        self._logged[model.id] = made
        address = f"logged-models/{made.id}"
        for some in _batches(model.params.items(), _OTHERS):
            new = _pairs((key, value) for key, value in some if key not in made.params)
            if new:
                self.target.call("POST", f"{address}/params", {"params": new})
        for some in _batches(_told(model.tags), _OTHERS):
            self.target.call("PATCH", f"{address}/tags", {"tags": _pairs(some)})
        for metric in model.metrics:
            run = self._moved.get(metric.run_id or model.run_id)
            if run is not None:
                self.target.log_model_metric(run.id, made.id, metric)
        self._files(self.source.logged_files(model), made, lambda path: self.source.read_logged(model, path))
        if not model.status.endswith("PENDING"):
            self.target.call("PATCH", address, {"model_id": made.id, "status": model.status})
        self.target.call("PATCH", f"{address}/tags", {"tags": _pairs([(WHOLE, "true")])})
        self.summary.logged_models += 1

    def _new_logged_model(self, model: MovedLoggedModel, number: str) -> MovedLoggedModel:
        run = self._moved.get(model.run_id)
        body = {
            "experiment_id": number,
            "name": model.name or None,
            "model_type": model.model_type or None,
            "source_run_id": run.id if run else None,
            "tags": _pairs([(ORIGIN, model.id)]),
        }
        given = {name: value for name, value in body.items() if value is not None}
        made = self.target.call("POST", "logged-models", given)
        return self.target.logged_model(made["model"]["info"]["model_id"])

    def _uses(self, run: MovedRun) -> None:
        """Say of a run which logged models it read and made; what is said already is not said again."""
        to = self._moved[run.id]
        read = self._new_uses(run.models_read, to.models_read)
        made = self._new_uses(run.models_made, to.models_made)
        if read:
            models = [{"model_id": each.model_id} for each in read]
            self.target.call("POST", "runs/log-inputs", {"run_id": to.id, "models": models})
        if made:
            models = [{"model_id": each.model_id, "step": str(each.step)} for each in made]
            self.target.call("POST", "runs/outputs", {"run_id": to.id, "models": models})

    def _new_uses(self, given: Iterable[MovedUse], there: Iterable[MovedUse]) -> list[MovedUse]:
        known = {each.model_id for each in there}
        moved = [
            MovedUse(self._logged[each.model_id].id, each.step)
            for each in given
            if each.model_id in self._logged
        ]
        return [each for each in moved if each.model_id not in known]

    def _model(self, model: MovedModel) -> None:
        self.told(model.name)
        tags = _pairs(model.tags.items())
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
            "tags": _pairs(tags.items()),
        }
        if version.model_id in self._logged:
            body["model_id"] = self._logged[version.model_id].id
        made = int(self.target.call("POST", "model-versions/create", body)["model_version"]["version"])
        if version.stage != "None":
            stage = {"name": model.name, "version": str(made), "stage": version.stage}
            self.target.call("POST", "model-versions/transition-stage", stage)
        self.summary.versions += 1
        return made

    def _source(self, model: MovedModel, version: MovedVersion, run: MovedRun | None) -> str:
        """Where the version's files are now: with its logged model, with its run, or brought there."""
        logged = self._logged.get(version.model_id)
        if logged is not None and logged.artifact_uri.startswith(ARTIFACTS):
            return logged.artifact_uri + version.source.partition(f"{version.model_id}/artifacts")[2]
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


def _told(tags: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(key, value) for key, value in tags.items() if key not in _OWN]


def _pairs(items: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in items]


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch
