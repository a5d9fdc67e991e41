"""The networks of a trial trained together on a GPU: those of all its rounds, at all its learning rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from easel.match.augment import augmentation
from easel.match.checkpoint import state_in
from easel.match.fitting import Bag, Fitting, RateTry, answers_of, deadline, schedule_of
from easel.match.kinds import CAN_GO_ON, GAVE_WAY, OUT_OF_TIME
from easel.match.loop import Diverged, TrainingRun
from easel.match.network_body import finish
from easel.match.networks import build_network
from easel.match.packed import PackedMember, fit_together

PACKED_EXAMPLES = 20_000
"""Networks on more examples fill a GPU one by one."""
MOST_TOGETHER = 64
"""So many networks are trained together at most: each keeps its weights, its optimiser and its steps on the GPU."""
PACKED_DEVICES = ("cuda",)


def packable(fitting: Fitting, tries: Sequence[RateTry]) -> bool:
    """Whether all rounds at these rates are trained together: several small networks, equally far, whose examples are
    on a GPU."""
    family, data = fitting.family, fitting.data
    few = 1 < len(fitting.plan) * len(tries) <= MOST_TOGETHER and len(data) <= PACKED_EXAMPLES
    plain = family.solve is None and not fitting.vectors and fitting.still
    if not (few and plain and data.device.type in PACKED_DEVICES):
        return False
    begun = set()
    for one in tries:
        for number in range(len(fitting.plan)):
            state = state_in(one.checkpoint(fitting.conditions, number))
            if not state.waited(schedule_of(fitting, number, one.rate).patience):
                begun.add(state.epoch)
    return len(begun) <= 1


def fit_packed(fitting: Fitting, tries: Sequence[RateTry]) -> list[Bag | Diverged]:
    """Returns what each of the rates came to, all trained together."""
    conditions = fitting.conditions
    out_of_time = deadline(conditions, conditions.clock(), 1.0)
    members = [member for one in tries for member in _members(fitting, one)]
    runs = fit_together(
        members,
        fitting.data,
        fitting.objective(fitting.candidate, fitting.wiring, tries[0].rate),
        seed=conditions.seed,
        stop=_asked(conditions.give_way, out_of_time),
        progress=conditions.progress,
    )
    each = len(fitting.plan)
    return [
        _bag(fitting, members[start : start + each], runs[start : start + each])
        for start in range(0, len(members), each)
    ]


def _members(fitting: Fitting, one: RateTry) -> list[PackedMember]:
    """Returns the networks of all rounds at a rate."""
    conditions, candidate = fitting.conditions, fitting.candidate
    augment = augmentation(candidate.text("augment", "none"))
    found = []
    for number in range(len(fitting.plan)):
        torch.manual_seed(conditions.seed + 1000 * number)
        network = build_network(candidate, fitting.wiring, conditions.seed)
        learn, stop = (torch.from_numpy(rows).long() for rows in fitting.parts(number))
        schedule = schedule_of(fitting, number, one.rate)
        found.append(
            PackedMember(network, learn, stop, schedule, one.checkpoint(conditions, number), augment)
        )
    return found


def _asked(give_way: Callable[[], bool], out_of_time: Callable[[], bool]) -> Callable[[int], str]:
    """Returns what says why a member should stop; nothing where it may go on."""

    def stop(number: int) -> str:
        if give_way():
            return GAVE_WAY
        return OUT_OF_TIME if out_of_time() else ""

    return stop


def _bag(
    fitting: Fitting, members: Sequence[PackedMember], runs: Sequence[TrainingRun | Diverged]
) -> Bag | Diverged:
    done: list[TrainingRun] = []
    for run in runs:
        if isinstance(run, Diverged):
            return run
        done.append(run)
    answers = [
        answers_of(member.network, fitting.data.only(torch.from_numpy(one.validate).long()))
        for member, one in zip(members, fitting.plan, strict=True)
    ]
    return Bag(
        tuple(member.network.cpu() for member in members),
        np.concatenate([finish(raw, fitting.wiring.target) for raw in answers]),
        float(np.mean([run.best_loss for run in done])),
        next((run.stopped for run in done if run.stopped in CAN_GO_ON), "finished"),
        tuple(run.curve for run in done),
        sum(run.resumed for run in done),
        min(run.reached for run in done),
    )
