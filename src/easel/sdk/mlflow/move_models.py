"""Moving logged models, then registered models with their versions and aliases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from easel.errors import EaselError, NotFound
from easel.sdk.mlflow.records import (
    MovedExperiment,
    MovedLoggedModel,
    MovedModel,
    MovedRun,
    MovedVersion,
)
from easel.sdk.mlflow.server import ARTIFACTS
from easel.sdk.mlflow.transfer import ORIGIN, WHOLE, MoveUnderWay, batches, pairs, sizes, told_tags

_OTHERS = 100
_UNREADABLE = (ARTIFACTS, "runs:/", "models:/m-")
"""How addresses begin that mean something to the source's server only."""


@dataclass(frozen=True, slots=True)
class LoggedModelMove:
    moving: MoveUnderWay

    def all_of(self, experiment: MovedExperiment, number: str) -> None:
        """Move the logged models of an experiment."""
        known: dict[str, MovedLoggedModel] | None = None
        for model in self.moving.source.logged_models(experiment.id):
            self.moving.begin(f"{experiment.name}: model {model.name}")
            if known is None:  # a target that knows no logged models is asked only where there are some
                there = self.moving.target.logged_models(number)
                known = {each.tags[ORIGIN]: each for each in there if ORIGIN in each.tags}
            with self.moving.attempt(f"logged model {model.id}", model.id):
                self._one(model, number, known.get(model.id))

    def _one(self, model: MovedLoggedModel, number: str, known: MovedLoggedModel | None) -> None:
        moving, target = self.moving, self.moving.target
        if known is not None and known.tags.get(WHOLE) == "true" and known.status == model.status:
            moving.logged[model.id] = known
            return
        made = known or self._new(model, number)
        moving.logged[model.id] = made
        address = f"logged-models/{made.id}"
        new = [(key, value) for key, value in model.params.items() if key not in made.params]
        for some in batches(new, _OTHERS):
            target.call("POST", f"{address}/params", {"params": pairs(some)})
        for given in batches(told_tags(model.tags), _OTHERS):
            target.call("PATCH", f"{address}/tags", {"tags": pairs(given)})
        for metric in model.metrics:
            run = moving.runs.get(metric.run_id or model.run_id)
            if run is not None:
                target.log_model_metric(run.id, made.id, metric)
        moving.copy_files(
            moving.source.logged_files(model),
            sizes(target.logged_files(made)),
            made.artifact_uri,
            lambda path: moving.source.read_logged(model, path),
            whose=f"logged model {model.id}",
            of=model.id,
        )
        if model.id in moving.partial:
            return
        if not model.status.endswith("PENDING"):
            target.call("PATCH", address, {"model_id": made.id, "status": model.status})
            target.call("PATCH", f"{address}/tags", {"tags": pairs([(WHOLE, "true")])})
        moving.summary.logged_models += 1

    def _new(self, model: MovedLoggedModel, number: str) -> MovedLoggedModel:
        run = self.moving.runs.get(model.run_id)
        body = {
            "experiment_id": number,
            "name": model.name or None,
            "model_type": model.model_type or None,
            "source_run_id": run.id if run else None,
            "tags": pairs([(ORIGIN, model.id)]),
        }
        given = {name: value for name, value in body.items() if value is not None}
        made = self.moving.target.call("POST", "logged-models", given)
        return self.moving.target.logged_model(made["model"]["info"]["model_id"])


@dataclass(slots=True)
class RegistryMove:
    moving: MoveUnderWay
    _there: dict[str, MovedModel] = field(default_factory=dict)

    def all_of(self, models: Iterable[MovedModel]) -> None:
        """Move registered models with those of their versions whose files came."""
        models = list(models)
        if models:
            self._there = {each.name: each for each in self.moving.target.models()}
        for model in models:
            self.moving.begin(model.name)
            with self.moving.attempt(f"model {model.name}"):
                self._one(model)
            self.moving.end()

    def _one(self, model: MovedModel) -> None:
        target, here = self.moving.target, self._there.get(model.name)
        if here is None:
            tags = pairs(model.tags.items())
            body = {"name": model.name, "description": model.description, "tags": tags}
            target.call("POST", "registered-models/create", body)
            self.moving.summary.models += 1
        known = {v.tags.get(ORIGIN): v.version for v in here.versions} if here else {}
        numbers: dict[int, int] = {}
        for version in model.versions:
            origin = f"{model.name}/{version.version}"
            with self.moving.attempt(f"model {origin}"):
                numbers[version.version] = known.get(origin) or self._version(model, version, origin)
        for alias, number in model.aliases.items():
            if number in numbers and (here is None or here.aliases.get(alias) != numbers[number]):
                body = {"name": model.name, "alias": alias, "version": str(numbers[number])}
                target.call("POST", "registered-models/alias", body)

    def _version(self, model: MovedModel, version: MovedVersion, origin: str) -> int:
        target, run = self.moving.target, self.moving.runs.get(version.run_id)
        logged = self.moving.logged.get(version.model_id)
        waits = {version.run_id, version.model_id} & self.moving.partial
        if waits:
            raise EaselError(f"it waits for files of {waits.pop()}, which did not come")
        body = {
            "name": model.name,
            "source": self._source(model, version, run, logged),
            "run_id": run.id if run else version.run_id,
            "description": version.description,
            "tags": pairs({**version.tags, ORIGIN: origin}.items()),
        }
        if logged is not None:
            body["model_id"] = logged.id
        made = int(target.call("POST", "model-versions/create", body)["model_version"]["version"])
        if version.stage != "None":
            stage = {"name": model.name, "version": str(made), "stage": version.stage}
            target.call("POST", "model-versions/transition-stage", stage)
        self.moving.summary.versions += 1
        return made

    def _source(
        self, model: MovedModel, version: MovedVersion, run: MovedRun | None, logged: MovedLoggedModel | None
    ) -> str:
        """Where the version's files are now: with its logged model, with its run, or brought there.

        Files that only the source's server can read are brought; an address that everybody can read stays.
        """
        if logged is not None and logged.artifact_uri.startswith(ARTIFACTS):
            return logged.artifact_uri + version.source.partition(f"{version.model_id}/artifacts")[2]
        if run is not None:
            marker = f"{version.run_id}/artifacts"
            if marker in version.source:
                return run.artifact_uri + version.source.partition(marker)[2]
            if version.source.startswith("runs:/"):
                return f"runs:/{run.id}/{version.source.removeprefix('runs:/').partition('/')[2]}"
        return self._brought(model, version, run)

    def _brought(self, model: MovedModel, version: MovedVersion, run: MovedRun | None) -> str:
        moving, origin = self.moving, f"{model.name}/{version.version}"
        files = list(moving.source.version_files(version))
        if not files:
            if version.source.startswith(_UNREADABLE):
                raise NotFound(f"its files are not to be found at {version.source}")
            return version.source
        root = run.artifact_uri if run is not None and run.artifact_uri.startswith(ARTIFACTS) else ARTIFACTS
        folder = f"{root.rstrip('/')}/registered/{origin}"
        whole = moving.copy_files(
            files,
            sizes(moving.target.stored_files(folder)),
            folder,
            lambda path: moving.source.read_version(version, path),
            whose=f"model {origin}",
        )
        if whole < len(files):
            raise EaselError(f"it waits for files at {version.source}, which did not come")
        return folder
