"""What came of trials that ended: results, bills, events, and what beliefs are learned from later."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from easel.flow.apps.dossier import Dossier, Result
from easel.flow.apps.ensemble import combine_where_due, is_due
from easel.flow.prices import draw_bill
from easel.ids import AppId, JobId
from easel.match.candidate import Candidate
from easel.price.bill import PriceChange
from easel.records.app import AppTrial
from easel.records.attempt import EndReason
from easel.records.job import JobOutcome, JobState
from easel.records.packing import PackPlace
from easel.store import app_trials, apps, devices, trial_history
from easel.store.engine import NewEvent, Tx
from easel.tenancy.places import GPU, gpu_kind

_FAULTS = frozenset(
    {
        EndReason.FILES,
        EndReason.PROCESS_DIED,
        EndReason.WORKER_DIED,
        EndReason.DEVICE_LOST,
        EndReason.UNKNOWN_THERE,
    }
)
MOST_FAULTS = 2
"""So often a candidate is tried again after the platform lost a slice of it."""


@dataclass(frozen=True)
class TrialOutcome:
    """What the job of a trial came to, for each of the apps that share it."""

    job_id: JobId
    apps: tuple[AppId, ...]
    result: Result


@dataclass(frozen=True)
class TrialSettler:
    """`known` are the apps as the scheduler sees them, `prices` the prices until now."""

    known: Mapping[AppId, Dossier]
    prices: Sequence[PriceChange]

    def settle(self, tx: Tx, over: Sequence[JobId]) -> list[TrialOutcome]:
        """Records what came of the trials whose jobs are over, and returns it."""
        trials: dict[JobId, list[AppTrial]] = {}
        running, ended = app_trials.running_of(tx, over)
        for trial in running:
            trials.setdefault(trial.job_id, []).append(trial)
        found = [self._settle(tx, some, ended.get(job_id)) for job_id, some in trials.items()]
        kinds: dict[str, str] = {}
        if any(job.resources.gpus > 0 for job in ended.values()):
            kinds = {one.name: gpu_kind(one) for one in devices.machines(tx)}
        trial_history.add(
            tx, [self._past(trials[one.job_id][0], one, ended.get(one.job_id), kinds) for one in found]
        )
        return found

    def _settle(self, tx: Tx, some: Sequence[AppTrial], job: JobOutcome | None) -> TrialOutcome:
        trial = some[0]
        quality, seconds = _quality(job), 0.0 if job is None else job.seconds
        model = job.output_set if job is not None and quality is not None else None
        bill = 0
        if job is not None and job.started_at and job.ended_at:
            bill = draw_bill(job.spec, job.started_at, job.ended_at, self.prices).micros
        bill //= len(some)
        known = self.known.get(trial.app_id)
        faults = 0 if known is None else known.faults(trial.name)
        share = 0.0 if _is_fault(job) and faults < MOST_FAULTS else _share_reached(job, trial)
        told = {} if job is None or quality is None else job.result or {}
        measured = {name: told.get(name) for name in ("error", "baseline", "luck")}
        app_trials.end(tx, trial.job_id, quality, seconds, model, bill, share, **measured)
        score = float(dict(trial.decision)["reasons"]["acquisition"])
        took, luck = _alone(trial, job, seconds) / trial.scale, measured["luck"]
        result = Result(
            trial.job_id, trial.name, quality, score, trial.examples, bill, model, share, took, luck
        )
        tx.emit_all(
            [event for one in some for event in self._told(tx, one.app_id, result, told.get("check"))]
        )
        for one in some:
            sibling = self.known.get(one.app_id)
            if sibling is None:
                found = apps.maybe(tx, one.app_id)
                if found is not None:
                    combine_where_due(tx, found)
            elif is_due(tx, sibling, result):
                combine_where_due(tx, sibling.app)
        return TrialOutcome(trial.job_id, tuple(one.app_id for one in some), result)

    def _told(self, tx: Tx, app_id: AppId, result: Result, check: Any = None) -> list[NewEvent]:
        """Announces that a trial of the app ended, and that the app is the better for it where it is."""
        known = self.known.get(app_id)
        app = apps.maybe(tx, app_id) if known is None else known.app
        if app is None:
            return []
        told: dict[str, Any] = {
            "job": result.job_id,
            "candidate": result.candidate,
            "quality": result.quality,
        }
        events = [NewEvent("app.trial_ended", app.id, app.project_id, app.user_id, told)]
        before = None if known is None else known.best
        counts = known is None or known.counts(result.examples)
        better = result.quality is not None and (before is None or result.quality > before)
        if better and counts:
            body = {
                "candidate": result.candidate,
                "quality": result.quality,
                "model": result.model_set,
                "before": before,
                "check": check,
            }
            events.append(NewEvent("app.improved", app.id, app.project_id, app.user_id, body))
        return events

    def _past(
        self, trial: AppTrial, outcome: TrialOutcome, job: JobOutcome | None, kinds: Mapping[str, str]
    ) -> dict[str, Any]:
        known = self.known.get(trial.app_id)
        candidate = Candidate.from_json(dict(trial.candidate))
        told = {} if job is None or not job.result else job.result
        on_gpu = job is not None and job.resources.gpus > 0
        kind = (kinds.get(trial.decision["device"]) or GPU) if on_gpu else ""
        return {
            "app_id": trial.app_id,
            # Costs name classes, which belong to the app's own data.
            "metric": "" if known is None else known.metric.partition("(")[0],
            "candidate": candidate.name,
            "family": candidate.family,
            "promise": candidate.promise,
            "guess_s": candidate.cost_s,
            "quality": outcome.result.quality,
            "seconds": outcome.result.seconds,
            # of a pack it is a part of what the process took: that says nothing of a trial by itself
            "peak_mb": None if job is None or "together" in told else job.peak_memory_mb,
            "examples": trial.examples,
            "share": outcome.result.share,
            "kind": kind,
            "kind_s": _alone(trial, job, job.seconds) if kind and job is not None else None,
            "halved": int(told.get("halved") or 0),
        }


def _quality(job: JobOutcome | None) -> float | None:
    if job is None or job.state is not JobState.FINISHED or not job.result:
        return None
    quality = job.result.get("quality")
    return float(quality) if quality is not None and math.isfinite(float(quality)) else None


def _alone(trial: AppTrial, job: JobOutcome | None, seconds: float) -> float:
    """Returns what a trial that was trained together with others would have taken by itself."""
    pack = dict(trial.decision).get("pack")
    if not pack or job is None or not job.result:
        return seconds
    return PackPlace(**pack).alone(seconds, int(job.result.get("together") or 1))


def _is_fault(job: JobOutcome | None) -> bool:
    """Whether the platform lost the slice or had no room for its files: that says nothing of the candidate."""
    return job is not None and job.state is JobState.FAILED and job.end_reason in _FAULTS


def _share_reached(job: JobOutcome | None, trial: AppTrial) -> float:
    """How far the trial is; one that does not say, as far as it was meant to come."""
    if job is not None and job.result and job.result.get("reached") is not None:
        return min(max(float(job.result["reached"]), 0.0), 1.0)
    part = trial.decision.get("slice")
    return float(part["share"]) if part else 1.0
