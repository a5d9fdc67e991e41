"""Another metric for an app: what was tried before is scored in it from the answers that its trials kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from easel.declare.parse import parse_program
from easel.errors import EaselError, InvalidInput
from easel.flow.apps.declare import KeptScore
from easel.flow.apps.kept_answers import KeptAnswers, read_kept
from easel.flow.lake import browse
from easel.flow.lake.checkout import read_blob
from easel.flow.lake.file_set import entries_of
from easel.flow.lake.upload import Lake
from easel.ids import JobId
from easel.lake.manifest.node import Entry
from easel.match.costs import by_number
from easel.match.judge import Chosen, baseline, chosen_apart, sampling_error, score
from easel.match.kinds import Task
from easel.match.metrics import metric_for
from easel.match.split import rows_by_example
from easel.match.templates import match_program
from easel.records.app import App, AppTrial
from easel.records.identity import Caller
from easel.store import app_examples, app_trials, apps

MOST_BYTES = 256 * 2**20
"""Kept answers of so many bytes are read in all, those of the best trials first."""
MOST_ERRORS = 12
"""Of so many of the best the sampling error is worked out too."""


@dataclass(frozen=True)
class _Answers:
    """Validated answers of one model, class by class as `names` says, and the true classes."""

    names: tuple[str, ...]
    truth: NDArray[np.int64]
    predicted: NDArray[np.float64]
    by_example: NDArray[np.intp]

    @cached_property
    def chosen(self) -> Chosen:
        return chosen_apart(self.truth, self.predicted, self.by_example)


def kept_scores(lake: Lake, caller: Caller, name: str, metric: str) -> dict[JobId, KeptScore]:
    """What trials of classes score in `metric` by the answers they kept, those that can still be read."""
    with lake.store.read() as tx:
        app = apps.find(tx, caller.project_id, name)
        task = match_program(parse_program(app.program)).task
        chosen, _ = metric_for(task, metric)
        if task is not Task.CLASSIFY or chosen == app.metric:
            return {}
        trials = [t for t in app_trials.trials(tx, app.id) if t.quality is not None and t.model_set]
    trials.sort(key=lambda trial: -(trial.quality or 0.0))
    found: dict[JobId, KeptScore] = {}
    answered: dict[JobId, tuple[str, _Answers]] = {}
    for job_id, one in _kept_answers(lake, caller, app, trials):
        try:
            asked = by_number(chosen, one.names)
        except InvalidInput:
            continue  # it was learned before a class that the costs name was fed
        answered[job_id] = asked, one
        quality = score(task, asked, one.truth, one.predicted, one.chosen)
        if np.isfinite(quality):
            found[job_id] = KeptScore(quality, None, baseline(task, asked, one.truth, len(one.names)))
    for job_id in sorted(found, key=lambda each: -found[each].quality)[:MOST_ERRORS]:
        asked, one = answered[job_id]
        error = sampling_error(task, asked, one.truth, one.predicted, one.chosen, by_example=one.by_example)
        found[job_id] = replace(found[job_id], error=error)
    return found


def _kept_answers(
    lake: Lake, caller: Caller, app: App, trials: Sequence[AppTrial]
) -> Iterator[tuple[JobId, _Answers]]:
    left = MOST_BYTES
    for trial in trials:
        assert trial.model_set is not None
        try:
            with lake.store.read() as tx:
                inside = {e.path: e for e in entries_of(tx, caller, trial.model_set)}
            wanted = _files(inside)
            size = sum(entry.size for entry in wanted)
            if len(wanted) < 2 or size > left:
                continue
            left -= size
            predictions, described = (_bytes(lake, entry) for entry in wanted)
            yield trial.job_id, _answers(lake, app, read_kept(predictions, described))
        except (EaselError, OSError):
            continue  # what cannot be read any more is tried again instead


def _files(inside: Mapping[str, Entry]) -> list[Entry]:
    """The kept answers and the description of the model beside them."""
    for path, entry in inside.items():
        beside = inside.get(path.removesuffix("predictions.npz") + "model/model.json")
        if path.endswith("/predictions.npz") and beside is not None:
            return [entry, beside]
    return []


def _bytes(lake: Lake, entry: Entry) -> bytes:
    with lake.store.read() as tx:
        place = browse.locate(tx, [entry])[entry.digest]
    return b"".join(read_blob(lake.blobs, place))


def _answers(lake: Lake, app: App, kept: KeptAnswers) -> _Answers:
    """Raises `InvalidInput` where too little of what was answered is still known."""
    place, digests = {name: number for number, name in enumerate(kept.names)}, kept.digests
    with lake.store.read() as tx:
        strata = app_examples.strata(tx, app.id, list(digests))
    rows = np.array([k for k, digest in enumerate(digests) if strata.get(digest) in place], dtype=int)
    if len(rows) < 2:
        raise InvalidInput("no answers to examples that are still there")
    truth = np.array([place[strata[digests[k]]] for k in rows])
    _, example = np.unique(np.array(digests)[rows], return_inverse=True)
    return _Answers(kept.names, truth, kept.predicted[rows], rows_by_example(example))
