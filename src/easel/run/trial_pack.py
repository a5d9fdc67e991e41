"""Several trials in one process, which trains them as one program: each keeps its journal, its output and its end.

The trials' module names in `__together__` which function takes all of them, and calls `told` with the number of a trial
and its result, or what it raised, as soon as that is over. A trial that was killed leaves; the others go on.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from easel.clock import Clock
from easel.declare.job import Trial
from easel.records.job import Usage
from easel.run.depot import Depot
from easel.run.journal import Journal
from easel.run.launch import card_memory_mb, share_variables
from easel.run.log_writer import LogWriter
from easel.run.order import Order
from easel.run.trial import (
    Assignment,
    OwnMeter,
    Told,
    TrialContext,
    begin,
    die,
    end,
    failure_of,
    plain_result,
    prepare_walls,
    resolve,
    speech_to,
)
from easel.run.trial_walls import Tell, apart, learn_imports, put_up

Outcome = Mapping[str, Any] | BaseException
TogetherFunction = Callable[[Sequence[TrialContext], Callable[[int, Outcome], None]], None]


@dataclass(frozen=True)
class _One:
    """One of the trials, where it is written down."""

    task: Assignment
    journal: Journal
    context: TrialContext
    log: LogWriter


@dataclass
class _Pack:
    """The trials that are not over; `ended` are the numbers of those that are."""

    trials: Sequence[_One]
    meter: OwnMeter
    ended: set[int] = field(default_factory=set)

    def told(self, number: int, outcome: Outcome) -> Told:
        """What a trial came to, with its part of what the process used."""
        one = self.trials[number]
        self.ended.add(number)
        found = Told(usage=_part(self.meter.stop(), len(self.trials)))
        try:
            if one.context.was_killed():
                found.failure = one.context.why_killed
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                found.result = plain_result(outcome)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a trial raises is its end, not ours
            found.failure = failure_of(error, one.task.order)
        return found


def perform_together(
    tasks: Sequence[Assignment], depot: Depot, clock: Clock, wake_fd: int, home: Path | None = None
) -> None:
    """Run several trials at once; everything about each goes into its own journal."""
    meter, journals = OwnMeter(clock), [Journal(task.folders.journal, clock, wake_fd) for task in tasks]
    trials: list[_One] = []
    for task, journal in zip(tasks, journals, strict=True):
        context = begin(task, depot, journal, meter)
        if isinstance(context, Told):
            end(task, depot, journal, context)
        else:
            trials.append(_One(task, journal, context, LogWriter(task.folders.log, journal, task.order.log)))
    _take_the_sum([one.task.order for one in trials], trials[0].context.gpus if trials else ())
    if trials and home is None:
        pack = _Pack(trials, meter)

        def heard(number: int, told: Told) -> None:
            end(trials[number].task, depot, trials[number].journal, told)

        _run(pack, heard)
    elif trials:
        _run_behind_walls(trials, depot, meter, home)  # type: ignore[arg-type]
    for journal in journals:
        journal.close()


def _run_behind_walls(trials: Sequence[_One], depot: Depot, meter: OwnMeter, home: Path) -> None:
    """The same in a child that sees only the folders of its trials; what it tells of each is written here at once."""
    prepare_walls([one.task for one in trials])
    known = frozenset(sys.modules)

    def work(tell: Tell) -> None:
        def told(number: int, found: Told) -> None:
            found.imported = tuple(sorted(set(sys.modules) - known))
            tell({"number": number, **found.to_json(trials[number].journal)})

        _run(_Pack(trials, meter), told)

    def hear(said: dict[str, Any]) -> None:
        one = trials[int(said["number"])]
        found = Told.from_json(said, one.journal)
        end(one.task, depot, one.journal, found)
        learn_imports(found.imported)

    if not apart(
        work, lambda: put_up([(one.task.folders, one.task.checkpoint) for one in trials], home), hear
    ):
        die()


def _run(pack: _Pack, heard: Callable[[int, Told], None]) -> None:
    """Call the function that takes all; what it prints goes into the logs of all. Each trial ends once."""
    trials = pack.trials
    run = trials[0].task.order.run
    assert isinstance(run, Trial)
    pack.meter.start()
    with speech_to([one.log for one in trials]) as lock:

        def told(number: int, outcome: Outcome) -> None:
            if number not in pack.ended:
                found = pack.told(number, outcome)
                with lock:
                    trials[number].log.close()
                heard(number, found)

        left: Outcome = RuntimeError("it was not said what came of it")
        try:
            together = _together(run)
            if together is None:
                for number, one in enumerate(trials):
                    told(number, _alone(one))
            else:
                together([one.context for one in trials], told)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the end of all that are not over
            left = error
        for number in range(len(trials)):
            told(number, left)


def _alone(one: _One) -> Outcome:
    assert isinstance(one.task.order.run, Trial)
    try:
        return resolve(one.task.order.run)(one.context)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the others go on
        return error


def _together(run: Trial) -> TogetherFunction | None:
    """Returns the function that takes several trials of this kind; None where its module names none."""
    module_name, _, name = run.target.partition(":")
    named = getattr(importlib.import_module(module_name), "__together__", {}).get(name)
    if named is None:
        return None
    other, _, function = named.partition(":")
    found: TogetherFunction = getattr(importlib.import_module(other), function)
    return found


def _take_the_sum(orders: Sequence[Order], gpus: tuple[int, ...]) -> None:
    """What the trials may take of the GPU and of the cores, the process may take all together."""
    if gpus:
        share = min(1.0, sum(order.resources.gpus for order in orders))
        os.environ.update(share_variables(share, card_memory_mb(gpus)))
    if "torch" in sys.modules and orders:
        cores = int(sum(order.resources.vcpu for order in orders))
        sys.modules["torch"].set_num_threads(max(1, cores))


def _part(usage: Usage, count: int) -> Usage:
    return replace(
        usage,
        cpu_seconds=round(usage.cpu_seconds / count, 4),
        peak_memory_mb=round(usage.peak_memory_mb / count, 2),
    )
