"""Several networks trained as one program: the folds of a trial, the learning rates of a grid.

A few small ones are one network (`packed_merged`), a few others branches of one recorded graph (`packed_branches`),
dozens are stacked (`packed_stack`), so that a GPU that one small network leaves idle is filled. Each member keeps its
own rows, learning rate, curve and early stop; one that diverges does not touch the others. After every epoch each is
asked whether it is to `leave`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from easel.match.checkpoint import CheckpointWriter, TrainingState
from easel.match.device_data import Data
from easel.match.kinds import CAN_GO_ON, GAVE_WAY, OUT_OF_TIME, SLICE_ENDED
from easel.match.loop import Diverged, TrainingRun
from easel.match.packed_branches import BranchedPack
from easel.match.packed_member import Pack, PackedMember
from easel.match.packed_merged import MergedPack, merges
from easel.match.packed_stack import StackedPack
from easel.match.train_steps import Augment, Objective

MOST_BRANCHES = 8
"""More members than this are stacked: so many branches fill a GPU, and each takes its time to record."""
LEFT = "was stopped"
"""What is said of a member that was killed: the others go on."""

__all__ = ["MOST_BRANCHES", "PackedMember", "fit_together"]


def fit_together(
    members: Sequence[PackedMember],
    data: Data,
    objective: Objective,
    *,
    seed: int,
    out_of_time: Callable[[], bool],
    augment: Augment = lambda batch: batch,
    progress: Callable[[float], None] = lambda share: None,
    give_way: Callable[[], bool] = lambda: False,
    leave: Callable[[int], bool] = lambda number: False,
) -> list[TrainingRun | Diverged]:
    """Trains all networks in place; returns how each one's training went, or why it failed.

    The networks have one architecture, the schedules the same epochs and batches; only their rates differ. A few that
    have checkpoints go on from them, if all are equally far.
    """
    count, schedule = len(members), members[0].schedule
    pack: Pack
    states = [TrainingState() for _ in members]
    writers: list[CheckpointWriter] = []
    if count <= MOST_BRANCHES:
        kind = MergedPack if merges(members, objective, data.device) else BranchedPack
        pack = few = kind(members, data, objective, augment)
        states = few.restore()
        writers = [CheckpointWriter(member.checkpoint) for member in members]
    else:
        pack = StackedPack(members, data, objective, augment)
    resumed = [state.epoch for state in states]
    stopped = ["no better for a while" if _waited(one, schedule.patience) else "" for one in states]
    until = schedule.epochs if schedule.until is None else min(schedule.until, schedule.epochs)
    begun = min((state.epoch for state, over in zip(states, stopped, strict=True) if not over), default=until)
    try:
        for epoch in range(begun, until):
            lost, found = torch.stack([pack.epoch(epoch, seed), pack.validated()]).tolist()
            better = []
            for i, state in enumerate(states):
                if stopped[i]:
                    continue
                if leave(i):
                    stopped[i] = LEFT
                    continue
                if not math.isfinite(found[i]):
                    stopped[i] = f"diverged in epoch {epoch + 1}"
                    continue
                state.epoch = epoch + 1
                state.curve.append((lost[i], found[i]))
                if schedule.better(found[i], state.best_loss):
                    state.best_loss, state.best_epoch = found[i], epoch
                    better.append(i)
                elif _waited(state, schedule.patience):
                    stopped[i] = "no better for a while"
            if better:
                pack.keep(better)
            progress((epoch + 1) / schedule.epochs)
            if give_way():
                stopped = [one or GAVE_WAY for one in stopped]
            elif out_of_time():
                stopped = [one or OUT_OF_TIME for one in stopped]
            elif epoch + 1 == until < schedule.epochs:
                stopped = [one or SLICE_ENDED for one in stopped]
            over = all(stopped) or epoch + 1 == until
            for i, writer in enumerate(writers):
                if (
                    states[i].epoch == epoch + 1
                    and (over or writer.due)
                    and members[i].checkpoint is not None
                ):
                    writer.write(few.snapshot(i), states[i])
            if all(stopped):
                break
    finally:
        for writer in writers:
            writer.close()
    runs: list[TrainingRun | Diverged] = []
    for i, (member, state) in enumerate(zip(members, states, strict=True)):
        member.network.load_state_dict(pack.best(i))
        member.network.eval()
        if state.best_epoch < 0:
            runs.append(
                Diverged(f"training {stopped[i]} before it learned anything; try a smaller learning rate")
            )
            continue
        reason = stopped[i] or "finished"
        reason = "finished" if reason.startswith("diverged") else reason
        reached = state.epoch / schedule.epochs if reason in CAN_GO_ON else 1.0
        runs.append(
            TrainingRun(
                state.best_epoch,
                state.best_loss,
                state.epoch,
                reason,
                tuple(state.curve),
                resumed[i],
                reached,
            )
        )
    return runs


def _waited(state: TrainingState, patience: int) -> bool:
    return state.epoch - state.best_epoch > patience and state.epoch > 0
