"""A trial of an app as a job."""

from __future__ import annotations

from typing import Any

from easel.declare.job import JobSpec, RetryRule, Trial
from easel.declare.resources import Resources
from easel.match.candidate import Candidate
from easel.records.app import App
from easel.store import app_examples
from easel.store.engine import Tx

LEARN = "easel.flow.apps.trial:learn"
JUDGING_LIMIT_S = 1200.0
"""How long the job that looks for wrong labels may take."""


def learn_spec(
    tx: Tx, app: App, candidate: Candidate, resources: Resources, limit_s: float, seed: int = 0
) -> JobSpec:
    """Training stops by itself at half of what the job may take, and keeps what it has learned by then."""
    arguments: dict[str, Any] = {
        "program": app.program,
        "candidate": candidate.to_json(),
        "seed": seed,
        "budget_s": limit_s / 2,
        "off": app_examples.off(tx, app.id),
    }
    if app.vectors is not None:
        arguments["vectors"] = app.vectors
    if app.metric is not None:
        arguments["metric"] = app.metric
    return trial_spec(app, LEARN, arguments, candidate.name, f"{app.name}-model", resources, limit_s)


def trial_spec(
    app: App,
    function: str,
    arguments: dict[str, Any],
    what: str,
    output: str,
    resources: Resources = Resources(1.0, 2048),  # noqa: B008 - frozen
    limit_s: float = JUDGING_LIMIT_S,
) -> JobSpec:
    """A trial on the app's examples."""
    return JobSpec(
        name=f"{app.name}: {what}"[:100],
        run=Trial(function, arguments),
        input=app.examples_set,
        output_set=output,
        resources=resources,
        retry=RetryRule(lost=2),
        time_limit_s=limit_s,
        tags={"app": app.name},
    )
