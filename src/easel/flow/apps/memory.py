"""How much memory the jobs beside an app's trials ask for: what its trials were seen to need, not one size for all."""

from __future__ import annotations

from collections.abc import Sequence

from easel.declare.resources import Resources
from easel.flow.apps.beliefs import LEAST_MB, NETWORK_MB, SPARE, Costs, rounded
from easel.flow.apps.ready import candidates_of
from easel.flow.lake.file_set import entries_of
from easel.match.candidate import Candidate
from easel.match.registry import is_network
from easel.match.summary import DataSummary
from easel.records.app import App, AppTrial
from easel.records.identity import Caller
from easel.store import jobs
from easel.store.engine import Tx

LOADED = 3.0
"""What a loaded model takes, in sizes of its files."""


def to_train(tx: Tx, app: App, candidates: Sequence[Candidate], trials: Sequence[AppTrial] = ()) -> Resources:
    """Returns the room for a job that trains these candidates on an app's examples, or holds all of them.

    `trials` are what they took so far.
    """
    assert app.summary is not None
    guessed = Costs(()).needs(app.id, candidates, DataSummary(**app.summary))
    found = jobs.rows(tx, [trial.job_id for trial in trials], lock=False)
    usages = [jobs.job_of(row).usage for row in found.values()]
    peak = max((usage.peak_memory_mb for usage in usages if usage is not None), default=0.0)
    return rounded(max(SPARE * peak, *(need.memory_mb for need in guessed)))


def to_look(tx: Tx, app: App) -> Resources:
    """Returns the room for a job that reads all examples and trains the first that is no network on them."""
    candidates = candidates_of(app)
    plain = [one for one in candidates if not is_network(one)] or list(candidates)
    return to_train(tx, app, plain[:1])


def to_combine(
    tx: Tx, caller: Caller, app: App, candidates: Sequence[Candidate], members: Sequence[AppTrial]
) -> Resources:
    """Returns the room for a job that holds an app's examples and the models of all `members` at once."""
    models = sum(models_mb(tx, caller, one.model_set) for one in members if one.model_set is not None)
    return rounded(to_train(tx, app, candidates).memory_mb + LOADED * models)


def to_answer(tx: Tx, caller: Caller, candidate: Candidate, model_set: str) -> Resources:
    """Returns the room for a job that answers batch after batch by one model."""
    plain = candidate.family != "ensemble" and not is_network(candidate)
    return rounded((LEAST_MB if plain else NETWORK_MB) + LOADED * models_mb(tx, caller, model_set))


def models_mb(tx: Tx, caller: Caller, model_set: str) -> float:
    """Returns the size of the model in a trial's output, without its checkpoint."""
    sizes = (entry.size for entry in entries_of(tx, caller, model_set) if "/model/" in entry.path)
    return sum(sizes) / 2**20
