"""Processes that must not be: whoever forked away from an attempt that is over, whatever a dead worker left."""

from __future__ import annotations

import signal
from collections.abc import Mapping

from easel.clock import Clock
from easel.run.attempts import Attempt, Phase
from easel.run.cgroup import Cgroups
from easel.run.tree import descendants, marked, reap, signal_all

ROUNDS = 400


def kill_attempt_processes(attempt: Attempt, cgroups: Cgroups, clock: Clock) -> None:
    """All processes of the attempt. One round is not enough: whoever was just forking is not seen by it."""
    for _ in range(ROUNDS):
        attempt.cgroup.kill()
        left = attempt.cgroup.members() if cgroups.hard else marked(attempt.key)
        if not left:
            return
        signal_all(left, signal.SIGKILL)
        reap()
        clock.sleep(0.005)


def kill_leftovers(attempts: Mapping[str, Attempt], cgroups: Cgroups) -> None:
    """Kills what an earlier worker left that belongs to none of the attempts that still run."""
    known = {key for key, each in attempts.items() if each.phase is Phase.RUNNING}
    # A warm process of the earlier worker may still be at a trial.
    performing = {f"trial-{each.pid}" for each in attempts.values() if each.pid is not None}
    for key in cgroups.leftovers():
        if key not in known and key not in performing:
            cgroup = cgroups.make(key)
            cgroup.kill()
            cgroup.remove()
    if not cgroups.hard:
        # Of our own attempts only: other workers on this machine mark theirs in the same way.
        left = {pid for key in attempts if key not in known for pid in marked(key)}
        kept = {child for key in known for child in descendants(attempts[key].pid or 0)}
        signal_all(left - kept, signal.SIGKILL)
