"""What a job's order says of an interactive session: when it ends for want of use, with and without GPUs."""

from __future__ import annotations

import pytest

from easel.declare.job import Command, JobSpec
from easel.declare.resources import Resources
from easel.flow.jobs.orders import OrderLimits
from easel.run.attempt_runner import FORCE_AFTER_S
from easel.run.command_watch import SAMPLE_S
from easel.run.idle import IdleWatch

FREE_AFTER_S = 120.0
"""So long after its limit the device of an idle session is free at the latest."""


def session(gpus: float) -> JobSpec:
    return JobSpec("lab", Command(("jupyter", "lab")), resources=Resources(1, 1024, gpus=gpus), port=8888)


def ended(limit_s: float, gpu: float) -> float:
    """When a session ends whose processors rest from the first second on, looked at as often as a job is."""
    watch, now = IdleWatch(limit_s, 0.0), 0.0
    while True:
        now += SAMPLE_S
        word = watch.look(now, 0.0, 0.0, lambda: gpu)
        if word is not None and word.over:
            return now


def test_sessions_with_and_without_gpus_have_limits_of_their_own() -> None:
    limits = OrderLimits(session_idle_s=7200.0, session_idle_gpu_s=1800.0)
    assert limits.idle_s(session(1.0)) == limits.idle_s(session(0.25)) == 1800.0
    assert limits.idle_s(session(0.0)) == 7200.0
    assert limits.idle_s(JobSpec("train", Command(("true",)), resources=Resources(1, 1024, gpus=1.0))) is None
    assert OrderLimits(session_idle_gpu_s=0.0).idle_s(session(1.0)) is None


@pytest.mark.parametrize("limit_s", [60.0, 600.0, 1800.0, 7200.0, 86_400.0])
def test_an_idle_gpu_is_free_at_most_two_minutes_after_its_limit(limit_s: float) -> None:
    """However the session takes the word: its program may use its grace, and is then ended by force."""
    limits = OrderLimits(session_idle_gpu_s=limit_s)
    found = limits.idle_s(session(1.0))
    assert found is not None
    over = ended(found, gpu=0.01)
    assert limit_s <= over
    assert over + limits.grace_s + FORCE_AFTER_S <= limit_s + FREE_AFTER_S
