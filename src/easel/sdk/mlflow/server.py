"""A server that speaks MLflow's API, MLflow's own or Easel, as what is moved from and to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from easel.clock import Clock
from easel.errors import InvalidInput, NotFound
from easel.sdk.mlflow.http import TrackingHttp
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

ARTIFACTS = "mlflow-artifacts:"
PAGE = 1000
_LOGGED_PAGE = 50


class TrackingServer:
    """`address` is what MLFLOW_TRACKING_URI would be. Credentials come from `token`, from the address, or from MLflow's
    own variables."""

    def __init__(
        self,
        address: str,
        token: str | None = None,
        *,
        attempts: int = 5,
        clock: Clock | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.http = TrackingHttp(address, token, attempts=attempts, clock=clock, transport=transport)
        self.address = self.http.address
        self.troubles: Sequence[str] = ()

    def close(self) -> None:
        self.http.close()

    def call(
        self, verb: str, endpoint: str, body: Mapping[str, Any] | None = None, /, **params: Any
    ) -> dict[str, Any]:
        """One call of the API below `/api/2.0/mlflow/`."""
        given = {name: value for name, value in params.items() if value is not None}
        return self._asked(verb, f"/api/2.0/mlflow/{endpoint}", json=body, params=given)

    def _asked(self, verb: str, path: str, **more: Any) -> dict[str, Any]:
        answer = self.http.send(verb, path, **more)
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise InvalidInput(f"{self.address} does not answer as MLflow does: is the address right?")
        return found

    # Reading. ---------------------------------------------------------------------------------------------------

    def experiments(self) -> list[MovedExperiment]:
        found = self._pages("experiments/search", "experiments", {"max_results": PAGE, "view_type": "ALL"})
        return [
            MovedExperiment(
                each["experiment_id"],
                each["name"],
                _tags(each.get("tags")),
                each.get("lifecycle_stage") == "deleted",
            )
            for each in found
        ]

    def runs(self, experiment_id: str) -> Iterator[MovedRun]:
        body = {
            "experiment_ids": [experiment_id],
            "max_results": PAGE,
            "run_view_type": "ALL",
            "order_by": ["attributes.start_time ASC"],
        }
        return (_run(each) for each in self._pages("runs/search", "runs", body))

    def count_runs(self, experiment_id: str) -> int:
        return sum(1 for _ in self.runs(experiment_id))

    def run(self, run_id: str) -> MovedRun:
        return _run(self.call("GET", "runs/get", run_id=run_id)["run"])

    def history(self, run_id: str, key: str) -> Iterator[MovedPoint]:
        token: str | None = None
        while True:
            page = self.call(
                "GET",
                "metrics/get-history",
                run_id=run_id,
                metric_key=key,
                max_results=25_000,
                page_token=token,
            )
            for point in page.get("metrics", []):
                yield MovedPoint(float(point["value"]), int(point["timestamp"]), int(point.get("step", 0)))
            token = page.get("next_page_token")
            if not token:
                return

    def files(self, run: MovedRun) -> Iterator[MovedFile]:
        folders = [""]
        while folders:
            folder = folders.pop()
            listed = self.call("GET", "artifacts/list", run_id=run.id, path=folder or None)
            for each in listed.get("files", []):
                if each.get("is_dir"):
                    folders.append(each["path"])
                else:
                    yield MovedFile(each["path"], int(each.get("file_size", 0)))

    def read(self, run: MovedRun, path: str) -> Iterator[bytes]:
        return self.http.stream("/get-artifact", {"run_id": run.id, "path": path})

    def logged_models(self, experiment_id: str) -> Iterator[MovedLoggedModel]:
        """Returns the models that runs logged; a server before 3.0 knows none."""
        try:
            body = {"experiment_ids": [experiment_id], "max_results": _LOGGED_PAGE}
            for each in self._pages("logged-models/search", "models", body):
                yield _logged(each)
        except NotFound:
            return

    def logged_model(self, model_id: str) -> MovedLoggedModel:
        return _logged(self.call("GET", f"logged-models/{quote(model_id)}")["model"])

    def logged_files(self, model: MovedLoggedModel) -> Iterator[MovedFile]:
        folders = [""]
        while folders:
            listed = self.call(
                "GET",
                f"logged-models/{quote(model.id)}/artifacts/directories",
                artifact_directory_path=folders.pop() or None,
            )
            for each in listed.get("files", []):
                if each.get("is_dir"):
                    folders.append(each["path"])
                else:
                    yield MovedFile(each["path"], int(each.get("file_size", 0)))

    def read_logged(self, model: MovedLoggedModel, path: str) -> Iterator[bytes]:
        return self.http.stream(
            f"/ajax-api/2.0/mlflow/logged-models/{quote(model.id)}/artifacts/files",
            {"artifact_file_path": path},
        )

    def models(self) -> list[MovedModel]:
        found = []
        token: str | None = None
        while True:
            page = self.call("GET", "registered-models/search", max_results=PAGE, page_token=token)
            found += [self._model(each) for each in page.get("registered_models", [])]
            token = page.get("next_page_token")
            if not token:
                return found

    def _model(self, given: Mapping[str, Any]) -> MovedModel:
        quoted = given["name"].replace("'", "%") if "'" in given["name"] else None
        how = f"name LIKE '{quoted}'" if quoted else f"name = '{given['name']}'"
        versions: list[MovedVersion] = []
        token: str | None = None
        while True:
            page = self.call("GET", "model-versions/search", filter=how, max_results=PAGE, page_token=token)
            versions += [
                MovedVersion(
                    int(each["version"]),
                    each.get("source", ""),
                    each.get("run_id", ""),
                    each.get("current_stage", "None"),
                    each.get("description", ""),
                    _tags(each.get("tags")),
                    each.get("model_id") or "",
                )
                for each in page.get("model_versions", [])
                if each["name"] == given["name"]
            ]
            token = page.get("next_page_token")
            if not token:
                break
        aliases = {each["alias"]: int(each["version"]) for each in given.get("aliases", [])}
        return MovedModel(
            given["name"],
            given.get("description", ""),
            _tags(given.get("tags")),
            aliases,
            sorted(versions, key=lambda version: version.version),
        )

    def version_files(self, version: MovedVersion) -> Iterator[MovedFile]:
        if version.source.startswith(ARTIFACTS):
            yield from self.stored_files(version.source)

    def stored_files(self, folder: str) -> Iterator[MovedFile]:
        """Returns the files below an address of the artifact store, with paths from there."""
        root, folders = artifact_path(folder), [""]
        while folders:
            folder = folders.pop()
            path = f"{root}/{folder}".rstrip("/")
            listed = self._asked("GET", "/api/2.0/mlflow-artifacts/artifacts", params={"path": path})
            for each in listed.get("files", []):
                below = f"{folder}/{each['path']}".lstrip("/")
                if each.get("is_dir"):
                    folders.append(below)
                else:
                    yield MovedFile(below, int(each.get("file_size", 0)))

    def read_version(self, version: MovedVersion, path: str) -> Iterator[bytes]:
        full = quote(f"{artifact_path(version.source)}/{path}")
        return self.http.stream(f"/api/2.0/mlflow-artifacts/artifacts/{full}")

    def _pages(self, path: str, field: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        token: str | None = None
        while True:
            page = self.call("POST", path, {**body, "page_token": token} if token else body)
            yield from page.get(field, [])
            token = page.get("next_page_token")
            if not token:
                return

    # Writing. ---------------------------------------------------------------------------------------------------

    def put_file(self, folder: str, path: str, read: Callable[[], Iterable[bytes]]) -> None:
        """Write a file below `folder`, an address of the artifact store. `read` is called for each attempt."""
        if not folder.startswith(ARTIFACTS):
            raise InvalidInput(
                f"{self.address} keeps files at {folder}, where only it can write: start it with "
                "--serve-artifacts"
            )
        full = quote(f"{artifact_path(folder)}/{path}")
        self.http.put(f"/api/2.0/mlflow-artifacts/artifacts/{full}", read)

    def log_points(self, run_id: str, key: str, points: Sequence[MovedPoint]) -> None:
        metrics = [
            {"key": key, "value": _number(p.value), "timestamp": p.timestamp, "step": p.step} for p in points
        ]
        self.call("POST", "runs/log-batch", {"run_id": run_id, "metrics": metrics})

    def log_model_metric(self, run_id: str, model_id: str, metric: MovedMetric) -> None:
        """Say what a run measured of a logged model. The run has the point already and keeps it once."""
        value, timestamp, step = metric.point
        said: dict[str, Any] = {
            "key": metric.key,
            "value": _number(value),
            "timestamp": timestamp,
            "step": step,
            "model_id": model_id,
        }
        if metric.dataset_name and metric.dataset_digest:
            said |= {"dataset_name": metric.dataset_name, "dataset_digest": metric.dataset_digest}
        self.call("POST", "runs/log-batch", {"run_id": run_id, "metrics": [said]})


def _logged(given: Mapping[str, Any]) -> MovedLoggedModel:
    info, data = given["info"], given.get("data", {})
    return MovedLoggedModel(
        id=info["model_id"],
        name=info.get("name", ""),
        status=str(info.get("status", "")),
        model_type=info.get("model_type", ""),
        run_id=info.get("source_run_id", ""),
        params=_tags(data.get("params")),
        tags=_tags(info.get("tags")),
        metrics=[
            MovedMetric(
                each["key"],
                MovedPoint(float(each["value"]), int(each["timestamp"]), int(each.get("step", 0))),
                each.get("run_id", ""),
                each.get("dataset_name"),
                each.get("dataset_digest"),
            )
            for each in data.get("metrics", [])
        ],
        artifact_uri=info.get("artifact_uri", ""),
    )


def artifact_path(uri: str) -> str:
    return urlsplit(uri).path.strip("/")


def _run(given: Mapping[str, Any]) -> MovedRun:
    info, data = given["info"], given.get("data", {})
    read, made = given.get("inputs", {}), given.get("outputs", {})
    return MovedRun(
        id=info["run_id"],
        name=info.get("run_name", ""),
        user=info.get("user_id", ""),
        status=info.get("status", "FINISHED"),
        start_time=int(info.get("start_time", 0)),
        end_time=int(info["end_time"]) if info.get("end_time") else None,
        deleted=info.get("lifecycle_stage") == "deleted",
        params=_tags(data.get("params")),
        tags=_tags(data.get("tags")),
        metrics=[each["key"] for each in data.get("metrics", [])],
        artifact_uri=info.get("artifact_uri", ""),
        datasets=read.get("dataset_inputs", []),
        models_read=[MovedUse(each["model_id"]) for each in read.get("model_inputs", [])],
        models_made=[
            MovedUse(each["model_id"], int(each.get("step", 0))) for each in made.get("model_outputs", [])
        ],
    )


def _tags(given: Any) -> dict[str, str]:
    return {each["key"]: each.get("value", "") for each in given or []}


def _number(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
