"""What is known about examples before any model is trained: enough to choose and to cost candidates."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from easel.declare.counted import counted
from easel.declare.program import Category, Number, Program, Tensor
from easel.match.examples import Chain, Example, Object, Single, Tree
from easel.match.kinds import Task
from easel.match.targets import label_of
from easel.match.templates import match_program


@dataclass(frozen=True)
class DataSummary:
    """`cells`: numbers in one input (median); `steps`: of a series, nodes of a tree; `side`: of a picture.

    `wide` says that the numbers span many orders of magnitude, so that other scales are worth trying. `only` is the one
    value that all examples have in the column marked as group or as time; empty where they differ or none is marked.
    `answer` is the one answer of all examples where numbers are predicted; empty where they differ.
    """

    examples: int
    cells: int
    steps: int = 1
    side: int = 1
    classes: int = 0
    wide: bool = False
    only: str = dataclasses.field(default="", compare=False)
    answer: str = dataclasses.field(default="", compare=False)


def summarise(program: Program, examples: Sequence[Example]) -> DataSummary:
    sample = examples[:: max(1, len(examples) // 500)]
    cells = int(np.median([_cells(example.input) for example in sample])) if sample else 1
    steps = int(np.median([_steps(example.input) for example in sample])) if sample else 1
    pictures = [e.input for e in sample if isinstance(e.input, Single)]
    sides = [max(v.shape[:2]) for one in pictures for v in _arrays(one) if v.ndim in (2, 3)]
    task = match_program(program).task
    classes = len({_stratum(e.output) for e in examples}) if task is Task.CLASSIFY else 0
    return DataSummary(
        examples=len(examples),
        cells=max(1, cells),
        steps=max(1, steps),
        side=int(np.median(sides)) if sides else 1,
        classes=classes,
        wide=_is_wide(sample),
    )


def strata(program: Program, examples: Sequence[Example]) -> list[str]:
    """The stratum of each example: its class, or one for all where there are no classes."""
    layer_of = stratum_of(program)
    return [layer_of(example) for example in examples]


def stratum_of(program: Program) -> Callable[[Example], str]:
    """What tells the stratum of one example after the other."""
    if match_program(program).task is not Task.CLASSIFY:
        return lambda example: ""
    return lambda example: _stratum(example.output)


def why_not_ready(program: Program, examples: Sequence[Example]) -> str | None:
    """What is still missing before anything can be learned, in words; nothing when it can start."""
    if match_program(program).task is not Task.CLASSIFY:
        few = len(examples) < 4
        return f"{counted(len(examples), 'example')}: too few; feed at least 4" if few else None
    counts = Counter(strata(program, examples))
    enough = [name for name, count in counts.items() if count >= 2]
    if len(counts) == 1:
        return f'all {len(examples)} examples are of the class "{next(iter(counts))}"; feed another class'
    if len(enough) < 2:
        return "at least two classes need two examples each"
    return None


def _stratum(output: Object) -> str:
    assert isinstance(output, Single)
    value = output.values[0]
    return str(int(np.argmax(value))) if isinstance(value, np.ndarray) else label_of(output)


def _arrays(one: Object) -> list[np.ndarray]:
    match one:
        case Single(values):
            return [v for v in values if isinstance(v, np.ndarray)]
        case Chain(columns):
            return [c for c in columns if isinstance(c, np.ndarray)]
        case Tree():
            return [v for node in one.nodes() for v in node.values if isinstance(v, np.ndarray)]


def _cells(one: Object) -> int:
    if isinstance(one, Single):
        return sum(
            v.size if isinstance(v, np.ndarray) else max(1, len(v) // 4) if isinstance(v, str) else 1
            for v in one.values
        )
    return max(_steps(one), sum(a.size for a in _arrays(one)))


def _steps(one: Object) -> int:
    match one:
        case Chain():
            return len(one)
        case Tree():
            return sum(1 for _ in one.nodes())
        case Single(values):
            return max((len(v.split()) for v in values if isinstance(v, str)), default=1)


def _is_wide(sample: Sequence[Example]) -> bool:
    """Whether the 99th percentile of the magnitudes (zeros aside) is over 1,000 times the 25th."""
    arrays = [np.abs(a.ravel()[:: max(1, a.size // 200)]) for e in sample[:100] for a in _arrays(e.input)]
    if not arrays:
        return False
    flat = np.concatenate(arrays)
    flat = flat[flat > 0]
    return bool(len(flat) > 10 and np.quantile(flat, 0.99) > 1000 * np.quantile(flat, 0.25))


def expected_summary(program: Program, examples: int) -> DataSummary:
    """What a program alone tells, before anything was fed; open sides count as 64, series as 100 steps."""
    cells, side = 0, 1
    for field in program.input.fields:
        if isinstance(field, Tensor):
            shape = [64 if s is None else s for s in field.shape]
            cells += int(np.prod(shape))
            side = max(side, max(shape[:2])) if len(shape) in (2, 3) else side
        else:
            cells += field.count if isinstance(field, Number) else 1
    steps = 100 if program.input.pointers else 1
    output = program.output.fields[0]
    classes = 0
    if match_program(program).task is Task.CLASSIFY:
        classes = len(output.values) if isinstance(output, Category) else 0
        classes = (output.shape[0] or 0) if isinstance(output, Tensor) else classes or 2
    return DataSummary(examples, cells * steps, steps, side, classes)
