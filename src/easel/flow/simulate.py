"""What other policies and other numbers of devices would have done with a project's history."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from easel.errors import InvalidInput, TryLater
from easel.records.identity import Caller
from easel.schedule.policies import POLICIES
from easel.schedule.replay import ReplaySettings
from easel.store import past_trials
from easel.store.engine import Tx

MOST_RUNS = 400
"""Policies times pool sizes times repetitions: about a minute of one core."""
LIMIT_S = 120.0

_one_at_a_time = threading.Lock()


class Past(NamedTuple):
    """One trial that ended; without a quality it failed. `cost` in seconds."""

    tenant: str
    candidate: str
    quality: float | None
    cost: float


@dataclass(frozen=True)
class PolicyOutcome:
    """The mean loss over time, for one policy on one number of devices."""

    policy: str
    devices: int
    time: list[float]
    loss: list[float]
    mean_loss: float


@dataclass(frozen=True)
class Simulated:
    tenants: int
    candidates: int
    trials: int
    horizon: float
    runs: list[PolicyOutcome]


def history(tx: Tx, caller: Caller) -> list[Past]:
    """Every trial of the project's apps that has ended."""
    return [
        Past(row.name, candidate_of(row.candidate), row.quality, row.seconds)
        for row in past_trials.ended(tx, caller.project_id)
        if row.seconds
    ]


def candidate_of(raw: Any) -> str:
    """Returns the name by which a candidate is the same in every app."""
    return json.dumps([raw["family"], raw["settings"]], sort_keys=True)


def check(past: Sequence[Past], plan: ReplaySettings) -> None:
    """Refuse what cannot be replayed, or not in about a minute."""
    unknown = [name for name in plan.policies if name not in POLICIES]
    if unknown:
        raise InvalidInput(f"no policy {', '.join(unknown)}; there are {', '.join(POLICIES)}")
    if len({row.tenant for row in past}) < 2:
        raise InvalidInput("the history needs at least two apps with trials: one to serve and one before")
    runs = len(plan.policies) * len(plan.devices) * plan.repetitions
    if runs > MOST_RUNS:
        raise InvalidInput(
            f"{runs} runs (policies × pool sizes × repetitions) are more than {MOST_RUNS}: leave some out"
        )


def simulate(past: Sequence[Past], plan: ReplaySettings, limit_s: float = LIMIT_S) -> Simulated:
    """Replays in a process of its own, one at a time: the server stays as quick as it was."""
    check(past, plan)
    found = apart({"past": past, "plan": asdict(plan)}, limit_s)
    return Simulated(**{**found, "runs": [PolicyOutcome(**run) for run in found["runs"]]})


def apart(asked: Mapping[str, Any], limit_s: float = LIMIT_S) -> Any:
    """Returns what `replay_apart` answers, in a process of its own, one at a time."""
    if not _one_at_a_time.acquire(blocking=False):
        raise TryLater("another simulation runs; try again when it is done", retry_after=5.0)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "easel.flow.replay_apart"],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=limit_s,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InvalidInput(f"not done after {limit_s:g} s: ask for fewer repetitions or pool sizes") from None
    finally:
        _one_at_a_time.release()
    if done.returncode != 0:
        raise InvalidInput(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no answer")
    return json.loads(done.stdout)
