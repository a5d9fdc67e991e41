"""A family of models as one record: what it fits, its settings, what it costs, how it is built, stored, exported.

A new family is one file in `easel.match.families` with a tuple `FAMILIES`; nothing else names it. The records are
read wherever candidates are proposed, also where neither scikit-learn nor torch is installed: a family's file
imports what it is built from inside its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from easel.match.candidate import Candidate, Setting
from easel.match.kinds import Task, TemplateKind
from easel.match.split import turns_of
from easel.match.summary import DataSummary

if TYPE_CHECKING:
    from torch import nn

    from easel.declare.program import Program
    from easel.match.device_data import Data
    from easel.match.examples import Object
    from easel.match.networks import Wiring
    from easel.match.train_steps import Objective

Cost: TypeAlias = Callable[[Candidate, DataSummary], float]
"""Seconds of one trial on the reference core, at one learning rate."""
Encode: TypeAlias = "Callable[[Candidate, Program, Sequence[Object]], Any]"
"""Fits an encoder on training inputs; None where the model reads texts as they are."""
Contributions: TypeAlias = Callable[[Any, Any, Any], Any]
"""A fitted estimator, what is asked `(n, columns)` and a background `(m, columns)` → `(n, columns, outputs)`: what each
column adds to the number, or to the log-odds of a class (of two classes of the second alone)."""
FitInParts: TypeAlias = Callable[[Any, Any, Any, Callable[[], bool]], bool]
"""Fits an estimator to `x` and `y`, asks after every part whether to stop, and returns whether it came to its end. What
was stopped is a model too."""
Alternative: TypeAlias = tuple[str, Setting, float]
"""A setting, another value for it, and what that value costs in promise."""


@dataclass(frozen=True)
class Situation:
    """What a family is proposed for. `vectors`: how many numbers each word of a given GloVe file has."""

    kind: TemplateKind
    task: Task
    summary: DataSummary
    vectors: int = 0

    @property
    def few(self) -> bool:
        return self.summary.examples < 2_000

    @property
    def scales(self) -> tuple[Alternative, ...]:
        """Other scales, where numbers span many orders of magnitude."""
        if not self.summary.wide:
            return ()
        return ("norm", "log", 0.02), ("norm", "f_0.5", 0.04), ("norm", "f_0.25", 0.05), ("norm", "f_2", 0.06)


@dataclass(frozen=True)
class Plan:
    """A family's promise and base settings, and the alternatives that are tried one at a time."""

    promise: float
    base: tuple[tuple[str, Setting], ...] = ()
    other: tuple[Alternative, ...] = ()


@dataclass(frozen=True)
class MatrixShape:
    """What an estimator learns on: `categorical` marks the columns that hold category numbers."""

    categorical: tuple[bool, ...]
    classify: bool
    outputs: int
    seed: int


@dataclass(frozen=True)
class ModelFiles:
    """How a fitted estimator is stored in a folder, in a form that cannot execute, and read back."""

    save: Callable[[Any, Path], None]
    load: Callable[[Path], Any]


@dataclass(frozen=True)
class Growth:
    """How a model of many trees goes on. `rounds` is how many a candidate has in the end, `grown` how many a model has.

    `grow(estimator, before, x, y, to, stop)` fits a fresh `estimator` until it has `to` rounds, after those of
    `before`, a fitted one (None: from the beginning), and returns the model with all of them. Every few rounds it asks
    `stop`, and returns what it has when that says so.
    """

    rounds: Callable[[Candidate], int]
    grow: Callable[[Any, Any, Any, Any, int, Callable[[], bool]], Any]
    grown: Callable[[Any], int]
    several: bool = False
    """Whether it goes on where several numbers are predicted at once, too."""
    dear: bool = False
    """Whether storing takes about as long as growing: then only what is not over is kept, when the slice ends."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """`fits`: the programs it is proposed for. `plan` gives its candidates, `cost` their seconds.

    `encode` replaces the usual encoder of the kind; `own_encoder` gives
    that one's class, for stored models. `no_onnx` says why there is no ONNX form, where there is none;
    `needs` is a module that must be installed. `flat`: also proposed, as a weak but quick first model, for small
    pictures and short series, seen as plain vectors. `takes_vectors`: it can start from given word vectors.
    `power`: its seconds grow with the number of examples to this power.
    """

    name: str
    fits: frozenset[tuple[TemplateKind, Task]]
    plan: Callable[[Situation], Plan]
    cost: Cost
    encode: Encode | None = None
    own_encoder: Callable[[], type] | None = None
    no_onnx: str | None = None
    needs: str | None = None
    flat: bool = False
    takes_vectors: bool = False
    power: float = 1.0

    @property
    def continues(self) -> bool:
        """Whether its trials go on from a checkpoint; others train anew on a larger share of the examples."""
        return False

    @property
    def stops(self) -> bool:
        """Whether a slice that is asked to give way does so within seconds, with what it has learned by then."""
        return self.continues

    @property
    def installed(self) -> bool:
        return self.needs is None or find_spec(self.needs) is not None

    def looks_at(self, candidate: Candidate) -> int | None:
        """The longest side of a picture that it looks at; None: as large as pictures are kept."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class EstimatorFamily(Family):
    """Needs no torch: a table's first model does not wait for it to load. `files`: skops unless said otherwise.
    `growth` where it can be stopped after any round of trees and gone on with; `fit_in_parts` where it can only be
    stopped, and answers as well as it has learned by then.
    `contributions` where its answers have exact Shapley values."""

    estimator: Callable[[Candidate, MatrixShape], Any]
    files: ModelFiles | None = None
    growth: Growth | None = None
    fit_in_parts: FitInParts | None = None
    contributions: Contributions | None = None

    @property
    def continues(self) -> bool:
        return self.growth is not None

    @property
    def stops(self) -> bool:
        return self.continues or self.fit_in_parts is not None

    def looks_at(self, candidate: Candidate) -> int | None:
        """Models of tables see very small pictures."""
        return 32


@dataclass(frozen=True, kw_only=True)
class NetworkFamily(Family):
    """`objective` replaces the usual loss of its target; `solve` fits it at once, without epochs."""

    network: Callable[[Candidate, Wiring, int], nn.Module]
    most_epochs: int = 60
    seen: int = 80_000
    """Examples that it sees in all its epochs, where there are enough."""
    chooses: bool = True
    """Whether it stops where its validation loss is least; else it goes through all epochs and keeps the last."""
    objective: Callable[[Candidate, Wiring, float], Objective] | None = None
    solve: Callable[[nn.Module, Candidate, Data, Any, int], None] | None = None

    @property
    def installed(self) -> bool:
        """Networks also need torch: without it tables and small pictures still have their other models."""
        return super().installed and find_spec("torch") is not None

    @property
    def continues(self) -> bool:
        return self.solve is None

    def looks_at(self, candidate: Candidate) -> int | None:
        side = candidate.number("side", 0)
        return int(side) or None

    def epochs(self, examples: int) -> int:
        return epochs_for(self.most_epochs, examples, self.seen)


@dataclass(frozen=True, kw_only=True)
class EnsembleFamily(Family):
    """Made of other trials' models; it looks at pictures as large as any member does."""

    def looks_at(self, candidate: Candidate) -> int | None:
        return None


def epochs_for(most: int, examples: int, seen: int = 80_000) -> int:
    """Fewer passes over more data: about `seen` examples in all, at least 12 passes."""
    return int(min(most, max(12, seen // max(1, examples))))


def fits(
    *kinds: TemplateKind, tasks: Sequence[Task] = (Task.CLASSIFY, Task.REGRESS)
) -> frozenset[tuple[TemplateKind, Task]]:
    """Every kind with every task."""
    return frozenset((kind, task) for kind in kinds for task in tasks)


def rounds_of(examples: int) -> int:
    """How many models a trial validates (`split.rounds`)."""
    return 5 if examples < 1_000 else 1


def fits_of(examples: int) -> int:
    """Returns how many models a trial of an estimator fits: of every round, again in every turn, and of all data."""
    return rounds_of(examples) * turns_of(examples) + 1


def plain_cells(summary: DataSummary) -> int:
    """Numbers that a table model sees of one input: of a larger picture a small copy."""
    return summary.cells if summary.side <= 32 else round(summary.cells * (32 / summary.side) ** 2)


def table_cost(law: Callable[[Candidate, DataSummary, int], float]) -> Cost:
    """The cost of a table family from that of one fit on `(candidate, summary, cells)`: each round, and all data."""

    def cost(candidate: Candidate, summary: DataSummary) -> float:
        once = law(candidate, summary, plain_cells(summary))
        return float(0.1 + fits_of(summary.examples) * once)

    return cost
