"""Move everything from one tracking store to another. Repeating continues: what is there already is left alone.

A moved run says in a tag where it came from, and in another, once all of it has come, how it looked then: a run that
was still going on, or that changed since, is looked at again. Points of metrics and files that are there are not sent
again. What cannot be read or written is noted, and the move goes on with the rest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from easel.errors import EaselError, NotFound
from easel.sdk.mlflow.move_models import LoggedModelMove, RegistryMove
from easel.sdk.mlflow.records import MovedExperiment, MovedPoint, MovedRun, MovedUse, TrackingSource
from easel.sdk.mlflow.server import TrackingServer
from easel.sdk.mlflow.transfer import (
    ORIGIN,
    WHOLE,
    MoveStep,
    MoveSummary,
    MoveUnderWay,
    batches,
    pairs,
    sizes,
    told_tags,
)

_METRICS, _OTHERS = 1000, 100
_OPEN = frozenset({"RUNNING", "SCHEDULED"})


@dataclass(slots=True)
class MlflowMove:
    source: TrackingSource
    target: TrackingServer
    told: Callable[[MoveStep], None] = lambda _: None
    """Called at each run and model, and while files come."""
    _transfer: MoveUnderWay = field(init=False)
    _deleted: list[str] = field(default_factory=list)
    """Runs of the target that are deleted at the end: to what is deleted nothing can be logged."""
    _deleted_experiments: set[str] = field(default_factory=set)
    """Experiments that were deleted there before."""

    def everything(self) -> MoveSummary:
        """Logged models come after all runs, which they name, and before the registry, which names them.

        What is deleted is deleted again at the end, also where the move breaks off.
        """
        moving = self._transfer = MoveUnderWay(self.source, self.target, lambda step: self.told(step))
        moving.begin("counting")
        experiments = self.source.experiments()
        registered = self.source.models()
        moving.total = sum(self.source.count_runs(each.id) for each in experiments) + len(registered)
        numbers = []
        for each in experiments:
            with moving.attempt(f"experiment {each.name}"):
                numbers.append((each, self._experiment_id(each)))
        try:
            self._contents(numbers)
            RegistryMove(moving).all_of(registered)
        except BaseException:
            with contextlib.suppress(
                EaselError, OSError
            ):  # where one cannot be deleted, nobody answers the others
                self._delete(numbers, lambda _: contextlib.nullcontext())
            raise
        self._delete(numbers, moving.attempt)
        moving.summary.failed += self.source.troubles
        return moving.summary

    def _contents(self, numbers: Sequence[tuple[MovedExperiment, str]]) -> None:
        moving, uses = self._transfer, list[MovedRun]()
        for experiment, number in numbers:
            with moving.attempt(f"runs of experiment {experiment.name}"):
                uses += self._runs(experiment, number)
        for experiment, number in numbers:
            with moving.attempt(f"logged models of experiment {experiment.name}"):
                LoggedModelMove(moving).all_of(experiment, number)
        for run in uses:
            if run.id in moving.runs:
                with moving.attempt(f"models of run {run.id}"):
                    self._uses(run)

    def _delete(
        self,
        numbers: Iterable[tuple[MovedExperiment, str]],
        attempt: Callable[[str], contextlib.AbstractContextManager[None]],
    ) -> None:
        for run_id in self._deleted:
            with attempt(f"deletion of run {run_id}"):
                self.target.call("POST", "runs/delete", {"run_id": run_id})
        for experiment, number in numbers:
            if number != "0" and (experiment.deleted or number in self._deleted_experiments):
                with attempt(f"deletion of experiment {experiment.name}"):
                    self.target.call("POST", "experiments/delete", {"experiment_id": number})

    def _experiment_id(self, experiment: MovedExperiment) -> str:
        try:
            found = self.target.call("GET", "experiments/get-by-name", experiment_name=experiment.name)
            number = str(found["experiment"]["experiment_id"])
            if found["experiment"].get("lifecycle_stage") == "deleted":
                self._deleted_experiments.add(number)
                self.target.call("POST", "experiments/restore", {"experiment_id": number})
        except NotFound:
            made = self.target.call("POST", "experiments/create", {"name": experiment.name})
            number = str(made["experiment_id"])
            self._transfer.summary.experiments += 1
        for key, value in experiment.tags.items():
            body = {"experiment_id": number, "key": key, "value": value}
            self.target.call("POST", "experiments/set-experiment-tag", body)
        return number

    def _runs(self, experiment: MovedExperiment, number: str) -> list[MovedRun]:
        """Move the runs of an experiment; returns those of the source that read or made logged models."""
        moving, uses = self._transfer, []
        known = {run.tags[ORIGIN]: run for run in self.target.runs(number) if ORIGIN in run.tags}
        for run in self.source.runs(experiment.id):
            moving.begin(f"{experiment.name}: {run.name}")
            with moving.attempt(f"run {run.id}", run.id):
                self._run(run, number, known.get(run.id))
            moving.end()
            if run.models_read or run.models_made:
                uses.append(run)
        return uses

    def _run(self, run: MovedRun, experiment: str, known: MovedRun | None) -> None:
        moving, looks = self._transfer, _looks(run)
        if known is not None and _came_whole(run, known, looks):
            moving.summary.there += 1
            moving.runs[run.id] = known
            if run.deleted and not known.deleted:  # the last time ended before it came to that
                self._deleted.append(known.id)
            return
        if known is not None and known.deleted:
            self._deleted.append(known.id)  # whoever deleted it here, or there, meant it
            self.target.call("POST", "runs/restore", {"run_id": known.id})
        made = known or self._new_run(run, experiment)
        moving.runs[run.id] = made
        self._params(run, made)
        for some in batches(told_tags(run.tags), _OTHERS):
            self.target.call("POST", "runs/log-batch", {"run_id": made.id, "tags": pairs(some)})
        for key in run.metrics:
            with moving.attempt(f"metric {key} of run {run.id}", run.id):
                self._history(run, made, key)
        if run.datasets:
            self.target.call("POST", "runs/log-inputs", {"run_id": made.id, "datasets": list(run.datasets)})
        moving.copy_files(
            self.source.files(run),
            sizes(self.target.files(made)),
            made.artifact_uri,
            lambda path: self.source.read(run, path),
            whose=f"run {run.id}",
            of=run.id,
        )
        update: dict[str, Any] = {"run_id": made.id, "status": run.status}
        if run.end_time is not None:
            update["end_time"] = run.end_time
        self.target.call("POST", "runs/update", update)
        if run.deleted and made.id not in self._deleted:
            self._deleted.append(made.id)
        if run.id in moving.partial:
            return
        if run.status in _OPEN and not run.deleted:
            moving.summary.open.append(run.id)
        else:
            self.target.call("POST", "runs/set-tag", {"run_id": made.id, "key": WHOLE, "value": looks})
        moving.summary.runs += 1

    def _params(self, run: MovedRun, made: MovedRun) -> None:
        """Params never change: those that are there stay."""
        new = [(key, value) for key, value in run.params.items() if key not in made.params]
        for some in batches(new, _OTHERS):
            self.target.call("POST", "runs/log-batch", {"run_id": made.id, "params": pairs(some)})

    def _history(self, run: MovedRun, made: MovedRun, key: str) -> None:
        there: set[tuple[str, int, int]] = set()
        if key in made.metrics:
            there = {_same(point) for point in self.target.history(made.id, key)}
        new = (point for point in self.source.history(run.id, key) if _same(point) not in there)
        for points in batches(new, _METRICS):
            self.target.log_points(made.id, key, points)
            self._transfer.summary.points += len(points)

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

    def _uses(self, run: MovedRun) -> None:
        """Say of a run which logged models it read and made; what is said already is not said again."""
        to = self._transfer.runs[run.id]
        read = self._new_uses(run.models_read, to.models_read)
        made = self._new_uses(run.models_made, to.models_made)
        if read:
            models = [{"model_id": each.model_id} for each in read]
            self.target.call("POST", "runs/log-inputs", {"run_id": to.id, "models": models})
        if made:
            models = [{"model_id": each.model_id, "step": str(each.step)} for each in made]
            self.target.call("POST", "runs/outputs", {"run_id": to.id, "models": models})

    def _new_uses(self, given: Iterable[MovedUse], there: Iterable[MovedUse]) -> list[MovedUse]:
        known, logged = {each.model_id for each in there}, self._transfer.logged
        moved = [MovedUse(logged[each.model_id].id, each.step) for each in given if each.model_id in logged]
        return [each for each in moved if each.model_id not in known]


def _came_whole(run: MovedRun, known: MovedRun, looks: str) -> bool:
    """Whether nothing of a run is left to be moved. Moves of older releases say only that all had come."""
    said = known.tags.get(WHOLE)
    if said == "true":
        return (known.status, known.end_time) == (run.status, run.end_time) and run.status not in _OPEN
    return said == looks


def _looks(run: MovedRun) -> str:
    """A digest of what is known of a run without reading its histories and files."""
    told = [
        run.name,
        run.status,
        run.end_time,
        dict(run.params),
        dict(told_tags(run.tags)),
        sorted(run.metrics),
    ]
    told += [len(run.datasets), len(run.models_read), len(run.models_made)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _same(point: MovedPoint) -> tuple[str, int, int]:
    """What makes two points one; NaN equals itself here."""
    return repr(float(point.value)), point.timestamp, point.step
