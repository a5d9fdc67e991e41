"""Which trial's model is the best so far, and which one answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from easel.flow.apps.ready import STILL_VALID
from easel.match.luck import prefers_mixture
from easel.records.app import App, AppTrial
from easel.store import app_examples, app_trials
from easel.store.engine import Tx


def best_of(tx: Tx, app: App) -> AppTrial | None:
    """The trial whose model is the best so far, as far as it was found on about the examples of today."""
    at_least = STILL_VALID * app_examples.count_on(tx, app.id)
    return preferred(app_trials.best(tx, app.id, at_least), app_trials.mixture(tx, app.id, at_least))


def preferred(best: AppTrial | None, mixture: AppTrial | None) -> AppTrial | None:
    """Returns the newest ensemble where what scores best leads by no more than the luck of the choice."""
    if best is None or mixture is None:
        return best
    return mixture if prefers_mixture(mixture.quality or 0.0, best.quality or 0.0, mixture.luck) else best


def best_among(trials: Iterable[AppTrial], examples: int) -> AppTrial | None:
    """Returns what `best_of` does, for a caller that has read all trials of an app with `examples` switched on."""
    served = [trial for trial in trials if trial.quality is not None and trial.model_set is not None]
    fresh = [trial for trial in served if trial.examples >= STILL_VALID * examples]
    if fresh:
        mixtures = [trial for trial in fresh if trial.luck is not None]
        newest = max(mixtures, key=lambda trial: trial.ended_at or trial.started_at, default=None)
        return preferred(max(fresh, key=lambda trial: trial.quality or 0.0), newest)
    return max(served, key=lambda trial: (trial.examples, trial.quality or 0.0), default=None)


def luck_among(trials: Iterable[AppTrial], examples: int) -> float | None:
    """Returns by how much the best of an app's candidates scores too high, being chosen by the same examples.

    It is what the newest trial measured that combined candidates; None where none did on about today's examples.
    """
    measured = [t for t in trials if t.luck is not None and t.examples >= STILL_VALID * examples]
    return max(measured, key=lambda trial: trial.ended_at or trial.started_at).luck if measured else None


def luck_of(trial: AppTrial, luck: float | None) -> float | None:
    """Returns what of an app's luck is in this trial's score: nothing in an ensemble's, which is preferred anyway and
    whose weights were chosen without the examples that score it.
    """
    return luck if trial.luck is None else 0.0


def shown_score(trial: AppTrial, luck: float | None) -> float:
    """Returns the score that people are told of a trial: the measured one less what an app's luck added to it."""
    return (trial.quality or 0.0) - (luck_of(trial, luck) or 0.0)


def shown_best(trials: Sequence[AppTrial], examples: int) -> float | None:
    """Returns the score that people are told of the best model among these trials; None where there is no model."""
    best = best_among(trials, examples)
    return None if best is None else shown_score(best, luck_among(trials, examples))


def serving(tx: Tx, app: App) -> AppTrial | None:
    """The trial whose model answers: the pinned one, or the best so far."""
    pinned = None if app.pinned is None else app_trials.of_model(tx, app.id, app.pinned)
    return pinned or best_of(tx, app)
