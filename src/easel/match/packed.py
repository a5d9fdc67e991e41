"""Several networks trained as one program: the folds of a trial, the learning rates of a grid, several trials.

Small ones are one network (`packed_merged`), others branches of one recorded graph (`packed_branches`), so that a GPU
that one small network leaves idle is filled; eight fill it, and dozens are several such packs that take turns. Each
member keeps its own rows, learning rate, curve, checkpoint and early stop; one that diverges does not touch the others.
After every epoch each is asked whether it is to `stop`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from easel.match.checkpoint import Checkpoint, CheckpointWriter, TrainingState
from easel.match.device_data import Data
from easel.match.kinds import CAN_GO_ON, SLICE_ENDED
from easel.match.loop import Diverged, Schedule, TrainingRun
from easel.match.packed_branches import BranchedPack
from easel.match.packed_member import PackedMember, PackedTraining
from easel.match.packed_merged import MergedPack, merges
from easel.match.train_steps import Objective

MOST_AT_ONCE = 8
"""So many fill a GPU: of more, some take turns with others."""
LEFT = "was stopped"
"""What is said of a member that was killed: the others go on."""

__all__ = ["LEFT", "MOST_AT_ONCE", "PackedMember", "fit_together"]


@dataclass(frozen=True)
class _Part:
    """A pack and where its members are among all; `states` says how far each is."""

    pack: PackedTraining
    members: Sequence[PackedMember]
    first: int
    states: list[TrainingState]
    stopped: list[str]
    resumed: list[int] = field(default_factory=list)

    @property
    def begins(self) -> int:
        """The first epoch that any of it is to be trained in."""
        pairs = zip(self.states, self.stopped, strict=True)
        last = self.members[0].schedule.last
        return min((state.epoch for state, stopped in pairs if not stopped), default=last)

    def going(self, epoch: int) -> bool:
        """Whether anything of it is to be trained in this epoch."""
        pairs = zip(self.states, self.stopped, strict=True)
        return any(not stopped and state.epoch == epoch for state, stopped in pairs)


def fit_together(
    members: Sequence[PackedMember],
    data: Data,
    objective: Objective,
    *,
    seed: int,
    stop: Callable[[int], str] = lambda number: "",
    progress: Callable[[float], None] = lambda share: None,
) -> list[TrainingRun | Diverged]:
    """Trains all networks in place; returns how each one's training went, or why it failed.

    The networks have one architecture, the schedules the same epochs and batches; only their rates and augmentations
    differ. Those that have checkpoints go on from them, if all are equally far. `stop` says why a member, by its
    number, should not go on (one of `CAN_GO_ON` or `LEFT`); nothing where it should.
    """
    schedule = members[0].schedule
    parts = [_part(some, first, data, objective) for first, some in _split(members)]
    until = schedule.last
    begun = min(part.begins for part in parts)
    writer = CheckpointWriter()
    try:
        for epoch in range(begun, until):
            for part in parts:
                if part.going(epoch):
                    _train(part, epoch, seed, schedule)
            progress((epoch + 1) / schedule.epochs)
            going = 0
            for part in parts:
                for i, state in enumerate(part.states):
                    if not part.stopped[i] and state.epoch == epoch + 1:
                        part.stopped[i] = _over(state, schedule) or stop(part.first + i)
                        if not part.stopped[i] and epoch + 1 == until < schedule.epochs:
                            part.stopped[i] = SLICE_ENDED
                        going += not part.stopped[i]
            _write(writer, parts, epoch + 1, all_of_them=not going or epoch + 1 == until)
            if not going:
                break
    finally:
        writer.close()
    return [_run(part, i, schedule) for part in parts for i in range(len(part.members))]


def _split(members: Sequence[PackedMember]) -> list[tuple[int, Sequence[PackedMember]]]:
    """Returns packs of about equal size, with the number of the first member of each."""
    packs = -(-len(members) // MOST_AT_ONCE)
    each = -(-len(members) // packs)
    return [(first, members[first : first + each]) for first in range(0, len(members), each)]


def _part(members: Sequence[PackedMember], first: int, data: Data, objective: Objective) -> _Part:
    kind = MergedPack if merges(members, objective, data.device) else BranchedPack
    pack: PackedTraining = kind(members, data, objective)
    states = pack.restore()
    over = [_over(state, one.schedule) for state, one in zip(states, members, strict=True)]
    return _Part(pack, members, first, states, over, [state.epoch for state in states])


def _over(state: TrainingState, schedule: Schedule) -> str:
    return "no better for a while" if state.waited(schedule.patience) else ""


def _train(part: _Part, epoch: int, seed: int, schedule: Schedule) -> None:
    """Trains a pack for an epoch, and notes what came of it."""
    pack = part.pack
    lost, found = torch.stack([pack.epoch(epoch, seed + part.first), pack.validated()]).tolist()
    better = []
    for i, state in enumerate(part.states):
        if part.stopped[i] or state.epoch != epoch:
            continue
        if not math.isfinite(found[i]):
            part.stopped[i] = f"diverged in epoch {epoch + 1}"
            continue
        state.epoch = epoch + 1
        state.curve.append((lost[i], found[i]))
        if schedule.better(found[i], state.best_loss):
            state.best_loss, state.best_epoch = found[i], epoch
            better.append(i)
    if better:
        pack.keep(better)


def _write(writer: CheckpointWriter, parts: Sequence[_Part], epoch: int, *, all_of_them: bool) -> None:
    """Writes the checkpoints of members that stopped in this epoch, and of the others where it is time."""
    due, given = all_of_them or writer.due, []
    for part in parts:
        for i, (member, state) in enumerate(zip(part.members, part.states, strict=True)):
            wanted = due or bool(part.stopped[i])
            if member.checkpoint is not None and state.epoch == epoch and wanted:
                given.append(Checkpoint(member.checkpoint, part.pack.snapshot(i), state))
    writer.write(*given)


def _run(part: _Part, i: int, schedule: Schedule) -> TrainingRun | Diverged:
    """Returns how a member's training went, with its best weights in its network."""
    state, stopped = part.states[i], part.stopped[i]
    network = part.members[i].network
    network.load_state_dict(part.pack.best(i))
    network.eval()
    if state.best_epoch < 0:
        return Diverged(f"training {stopped} before it learned anything; try a smaller learning rate")
    reason = stopped or ("finished" if state.epoch >= schedule.epochs else SLICE_ENDED)
    reason = "finished" if reason.startswith("diverged") else reason
    reached = state.epoch / schedule.epochs if reason in CAN_GO_ON else 1.0
    return TrainingRun(
        state.best_epoch,
        state.best_loss,
        state.epoch,
        reason,
        tuple(state.curve),
        part.resumed[i],
        reached,
    )
