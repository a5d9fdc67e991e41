"""A folder `mlruns/` as MLflow's file store leaves it, read without MLflow.

Processes that were killed leave halves of files. What cannot be read is left out and named; the rest is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from easel.errors import EaselError, InvalidInput
from easel.sdk.mlflow.records import (
    MovedExperiment,
    MovedFile,
    MovedLoggedModel,
    MovedMetric,
    MovedModel,
    MovedPoint,
    MovedRun,
    MovedUse,
    MovedVersion,
)

_STATUSES = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
_MODEL_STATUSES = {1: "LOGGED_MODEL_PENDING", 2: "LOGGED_MODEL_READY", 3: "LOGGED_MODEL_UPLOAD_FAILED"}
_BROKEN = (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError)
"""What reading a file raises that was cut off, or that somebody changed."""
_STAGED = {"None", "Staging", "Production", "Archived"}


class MlrunsFolder:
    def __init__(self, folder: Path) -> None:
        if not any(folder.glob("*/meta.yaml")) and not any(folder.glob("models/*/meta.yaml")):
            raise InvalidInput(
                f"{folder} is no folder that MLflow wrote: none of its folders has a meta.yaml"
            )
        self._folder = folder
        self._runs: dict[str, Path] = {}
        self._logged: dict[str, Path] = {}
        self.troubles: list[str] = []

    def close(self) -> None:
        return None

    def experiments(self) -> list[MovedExperiment]:
        found = []
        for parent in (self._folder, self._folder / ".trash"):
            for meta in sorted(parent.glob("*/meta.yaml")):
                with self._readable(meta):
                    told = _yaml(meta)
                    if "experiment_id" not in told or "run_id" in told:
                        continue
                    deleted = told.get("lifecycle_stage") == "deleted"
                    tags = _files(meta.parent / "tags")
                    found.append(
                        MovedExperiment(str(told["experiment_id"]), str(told["name"]), tags, deleted)
                    )
        return found

    @contextmanager
    def _readable(self, what: Path) -> Iterator[None]:
        """Notes what cannot be read, and goes on after it."""
        try:
            yield
        except _BROKEN as error:
            said = " ".join(str(error).split())
            self.troubles.append(f"{what.relative_to(self._folder)}: it cannot be read: {said}")

    def count_runs(self, experiment_id: str) -> int:
        return sum(1 for _ in self._metas_of_runs(experiment_id))

    def _metas_of_runs(self, experiment_id: str) -> Iterator[Path]:
        for parent in (self._folder, self._folder / ".trash"):
            yield from sorted((parent / experiment_id).glob("*/meta.yaml"))

    def runs(self, experiment_id: str) -> Iterator[MovedRun]:
        for meta in self._metas_of_runs(experiment_id):
            run = None
            with self._readable(meta):
                run = self._run(meta)
            if run is not None:
                yield run

    def _run(self, meta: Path) -> MovedRun | None:
        told = _yaml(meta)
        if "run_id" not in told:
            raise ValueError("it names no run_id")
        run_id = str(told["run_id"])
        self._runs[run_id] = meta.parent
        tags = _files(meta.parent / "tags")
        metrics = meta.parent / "metrics"
        return MovedRun(
            id=run_id,
            name=str(told.get("run_name") or tags.get("mlflow.runName", "")),
            user=str(told.get("user_id", "")),
            status=_status(told.get("status")),
            start_time=int(told.get("start_time") or 0),
            end_time=int(told["end_time"]) if told.get("end_time") else None,
            deleted=told.get("lifecycle_stage") == "deleted",
            params=_files(meta.parent / "params"),
            tags=tags,
            metrics=[str(p.relative_to(metrics)) for p in sorted(metrics.rglob("*")) if p.is_file()],
            artifact_uri=str(told.get("artifact_uri", "")),
            datasets=_datasets(meta.parent),
            models_read=[
                MovedUse(str(each["source_id"]))
                for each in _metas(meta.parent / "inputs")
                if str(each.get("source_id", "")).startswith("m-")
            ],
            models_made=[
                MovedUse(path.parent.name, int(_yaml(path).get("step") or 0))
                for path in sorted((meta.parent / "outputs").glob("m-*/meta.yaml"))
            ],
        )

    def history(self, run_id: str, key: str) -> Iterator[MovedPoint]:
        """Every line that is whole; those that are not are told at the end."""
        broken = []
        path = self._runs[run_id] / "metrics" / key
        *lines, unfinished = path.read_text(errors="replace").split("\n")
        for number, line in enumerate(lines, 1):
            try:
                at, value, *step = line.split()
                point = MovedPoint(float(value), int(at), int(step[0]) if step else 0)
            except ValueError:
                broken.append(number)
            else:
                yield point
        if unfinished:  # MLflow ends every line: half of a number may look like a whole one
            broken.append(len(lines) + 1)
        if broken:
            raise EaselError(f"line {broken[0]} of {path.relative_to(self._folder)} is no whole point")

    def files(self, run: MovedRun) -> Iterator[MovedFile]:
        yield from _below(self._runs[run.id] / "artifacts")

    def read(self, run: MovedRun, path: str) -> Iterator[bytes]:
        return _bytes(self._runs[run.id] / "artifacts" / path)

    def logged_models(self, experiment_id: str) -> Iterator[MovedLoggedModel]:
        for parent in (self._folder, self._folder / ".trash"):
            for meta in sorted((parent / experiment_id / "models").glob("m-*/meta.yaml")):
                model = None
                with self._readable(meta):
                    model = self._logged_model(meta)
                if model is not None:
                    yield model

    def _logged_model(self, meta: Path) -> MovedLoggedModel | None:
        told = _yaml(meta)
        if told.get("lifecycle_stage") == "deleted":
            return None
        model_id = str(told.get("model_id") or meta.parent.name)
        self._logged[model_id] = meta.parent
        status = told.get("status")
        return MovedLoggedModel(
            id=model_id,
            name=str(told.get("name") or ""),
            status=_MODEL_STATUSES.get(status, "") if isinstance(status, int) else str(status or ""),
            model_type=str(told.get("model_type") or ""),
            run_id=str(told.get("source_run_id") or ""),
            params=_files(meta.parent / "params"),
            tags=_files(meta.parent / "tags"),
            metrics=list(_model_metrics(meta.parent / "metrics")),
            artifact_uri=str(told.get("artifact_location") or ""),
        )

    def logged_files(self, model: MovedLoggedModel) -> Iterator[MovedFile]:
        yield from _below(self._logged[model.id] / "artifacts")

    def read_logged(self, model: MovedLoggedModel, path: str) -> Iterator[bytes]:
        return _bytes(self._logged[model.id] / "artifacts" / path)

    def models(self) -> list[MovedModel]:
        found = []
        for meta in sorted((self._folder / "models").glob("*/meta.yaml")):
            with self._readable(meta):
                told = _yaml(meta)
                aliases = {name: int(v) for name, v in _files(meta.parent / "aliases").items()}
                found.append(
                    MovedModel(
                        str(told.get("name", meta.parent.name)),
                        str(told.get("description") or ""),
                        _files(meta.parent / "tags"),
                        aliases,
                        self._versions(meta.parent),
                    )
                )
        return found

    def _versions(self, model: Path) -> list[MovedVersion]:
        found = []
        for meta in model.glob("version-*/meta.yaml"):
            with self._readable(meta):
                found.append(self._version(meta))
        return sorted(found, key=lambda version: version.version)

    def _version(self, meta: Path) -> MovedVersion:
        told = _yaml(meta)
        stage = str(told.get("current_stage") or "None")
        return MovedVersion(
            int(told["version"]),
            str(told.get("source") or ""),
            str(told.get("run_id") or ""),
            stage if stage in _STAGED else "None",
            str(told.get("description") or ""),
            _files(meta.parent / "tags"),
            str(told.get("model_id") or ""),
        )

    def version_files(self, version: MovedVersion) -> Iterator[MovedFile]:
        folder = self._inside(version.source)
        if folder is not None:
            yield from _below(folder)

    def read_version(self, version: MovedVersion, path: str) -> Iterator[bytes]:
        folder = self._inside(version.source)
        assert folder is not None
        return _bytes(folder / path)

    def _inside(self, source: str) -> Path | None:
        """The folder that a source names, if it lies in this one: nothing else of the disk is read."""
        address = urlsplit(source)
        if address.scheme not in ("", "file"):
            return None
        folder = Path(unquote(address.path)).resolve()
        return folder if folder.is_relative_to(self._folder.resolve()) and folder.is_dir() else None


def _yaml(path: Path) -> dict[str, Any]:
    told = yaml.safe_load(path.read_text())
    if not isinstance(told, dict):
        raise ValueError("it has no fields: was it cut off?")
    return told


def _files(folder: Path) -> dict[str, str]:
    """Small files as values by their paths: params, tags, aliases."""
    if not folder.is_dir():
        return {}
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text().removesuffix("\n") for path in found}


def _metas(folder: Path) -> list[dict[str, Any]]:
    return [_yaml(path) for path in sorted(folder.glob("*/meta.yaml"))]


def _datasets(run: Path) -> list[dict[str, Any]]:
    """What a run read, as MLflow's API says it."""
    found = []
    for told in _metas(run / "inputs"):
        meta = run.parent / "datasets" / str(told.get("source_id", "")) / "meta.yaml"
        if not meta.is_file():
            continue
        tags = told.get("tags") or {}
        dataset = {name: str(value) for name, value in _yaml(meta).items() if value is not None}
        found.append(
            {"dataset": dataset, "tags": [{"key": str(k), "value": str(v)} for k, v in tags.items()]}
        )
    return found


def _model_metrics(folder: Path) -> Iterator[MovedMetric]:
    """Each line is a time, a value, a step, a run, and perhaps the name and the digest of a data set."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        if not path.is_file():
            continue
        for line in path.read_text().splitlines():
            at, value, step, run_id, *dataset = line.split(" ")
            point = MovedPoint(float(value), int(at), int(step))
            named = (dataset[0], dataset[1]) if len(dataset) == 2 else (None, None)
            yield MovedMetric(path.relative_to(folder).as_posix(), point, run_id, *named)


def _below(folder: Path) -> Iterator[MovedFile]:
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        if path.is_file() and not path.is_symlink():
            yield MovedFile(path.relative_to(folder).as_posix(), path.stat().st_size)


def _bytes(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            yield chunk


def _status(given: Any) -> str:
    return _STATUSES.get(given, "FINISHED") if isinstance(given, int) else str(given or "FINISHED")
