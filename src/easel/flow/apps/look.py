"""How an app stands: best model, what runs, what was weighed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from easel.declare.parse import parse_program
from easel.flow.apps.next_trial import best_trial
from easel.match.candidate import Candidate
from easel.match.metrics import metric_for
from easel.match.templates import match_program
from easel.records.app import App, AppTrial
from easel.records.decision import Reasons, RunnerUp
from easel.store import apps
from easel.store.engine import Tx


@dataclass(frozen=True, slots=True)
class Standing:
    """One line of `easel apps ls`."""

    app: App
    template: str
    metric: str
    examples: int
    switched_off: int
    trials: int
    running: tuple[str, ...]
    best: AppTrial | None
    why: str | None

    @property
    def last_improvement_at(self) -> datetime | None:
        return None if self.best is None else self.best.started_at


def standing(tx: Tx, app: App) -> Standing:
    template = match_program(parse_program(app.program))
    fed, trials = apps.examples(tx, app.id), apps.trials(tx, app.id)
    return Standing(
        app=app,
        template=template.name,
        metric=metric_for(template.task, app.metric)[0],
        examples=len(fed),
        switched_off=sum(not example.on for example in fed),
        trials=len(trials),
        running=tuple(candidate_name(trial) for trial in trials if not trial.ended),
        best=best_trial(trials),
        why=reasons_of(trials[-1].decision).sentence() if trials else None,
    )


def candidate_name(trial: AppTrial) -> str:
    return Candidate.from_json(dict(trial.candidate)).name


def reasons_of(decision: Mapping[str, Any]) -> Reasons:
    raw = dict(decision["reasons"])
    other = raw.pop("runner_up", None)
    return Reasons(**raw, runner_up=RunnerUp(**other) if other else None)
