"""A trial of an app as a job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from easel.declare.job import JobSpec, Pack, RetryRule, Trial
from easel.declare.resources import Resources
from easel.ids import JobId
from easel.match.candidate import Candidate
from easel.records.app import App
from easel.records.packing import PackPlace
from easel.store import app_examples, jobs
from easel.store.engine import Tx

LEARN = "easel.flow.apps.trial:learn"
JUDGING_LIMIT_S = 1200.0
"""How long the job that looks for wrong labels may take."""


@dataclass(frozen=True)
class EarlierSlice:
    """What a trial goes on from: the set that holds its checkpoint, and the examples on which it was begun.

    `off` are those that were switched off then: what is fed or switched meanwhile is for the trials after it.
    """

    checkpoint: str
    examples: str
    off: tuple[str, ...]
    vectors: str | None


def earlier_slice(tx: Tx, job_id: JobId, model_set: str | None) -> EarlierSlice | None:
    """Returns what a slice left that ended; None where its job or its model is gone: the trial begins anew."""
    row = jobs.rows(tx, [job_id], lock=False).get(job_id)
    if row is None or row.input_set is None or model_set is None:
        return None
    told = row.spec["run"]["arguments"]
    return EarlierSlice(model_set, row.input_set, tuple(told.get("off", ())), told.get("vectors"))


def learn_spec(
    tx: Tx,
    app: App,
    candidate: Candidate,
    resources: Resources,
    limit_s: float,
    until: float | None = None,
    earlier: EarlierSlice | None = None,
    seed: int = 0,
    switched: tuple[int, int] | None = None,
    pack: PackPlace | None = None,
) -> JobSpec:
    """Training stops by itself at half of what the job may take, and keeps what it has learned by then.

    `until` is the share of the trial at which its slice ends; `earlier` is what it goes on from. `switched` is how many
    examples are on and off, where that is known. With `pack` it is trained together with others where they meet.
    """
    on, off = switched or (None, None)
    arguments: dict[str, Any] = {
        "program": app.program,
        "candidate": candidate.to_json(),
        "seed": seed,
        "budget_s": limit_s / 2,
        "off": _off(tx, app, off) if earlier is None else list(earlier.off),
    }
    vectors = app.vectors if earlier is None else earlier.vectors
    if vectors is not None:
        arguments["vectors"] = vectors
    if app.metric is not None:
        arguments["metric"] = app.metric
    what = candidate.name
    if until is not None:
        arguments["until"] = until
        arguments["examples"] = app_examples.count_on(tx, app.id) if on is None else on
        what = f"{what} to {until:.0%}"
    spec = trial_spec(app, LEARN, arguments, what, f"{app.name}-model", resources, limit_s)
    if pack is not None:
        spec = replace(spec, run=Trial(LEARN, arguments, pack=Pack(pack.name, pack.size)))
    return spec if earlier is None else replace(spec, input=earlier.examples, resume=earlier.checkpoint)


def _off(tx: Tx, app: App, count: int | None) -> list[str]:
    """The examples that are switched off, read only where there may be some."""
    return [] if count == 0 else app_examples.off(tx, app.id)


def trial_spec(
    app: App,
    function: str,
    arguments: dict[str, Any],
    what: str,
    output: str,
    resources: Resources,
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
