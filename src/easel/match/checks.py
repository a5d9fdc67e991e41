"""Checks of examples: missing and constant columns, outliers, uneven classes, leaks, near-duplicates, drift."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.declare.counted import counted
from easel.declare.program import Program, role_of
from easel.match.canonical import near_key
from easel.match.examples import Example, Single
from easel.match.kinds import Task
from easel.match.summary import strata
from easel.match.templates import match_program

FEWEST = 30
"""Of fewer examples nothing is said about columns."""
MOST_DIGESTS = 1_000
MOST_MISSING = 0.3
FAR = 8.0
"""An outlier lies so many robust deviations from the median, and outliers are at most one example in a hundred."""
RARE = 0.05
TOO_WELL = 0.99
"""A column that alone ranks or tells the answers so well is likely a leak."""
SURPRISING = 0.05


@dataclass(frozen=True)
class ExampleCheck:
    """What one check found: `kind` for filters, `told` in words, and the examples it is about, where there are some."""

    kind: str
    told: str
    column: str | None = None
    digests: tuple[str, ...] = ()
    count: int = 0


def check_columns(
    program: Program, examples: Sequence[Example], digests: Sequence[str]
) -> list[ExampleCheck]:
    """What can be told column by column, without training anything."""
    found = _uneven(program, examples)
    if len(examples) < FEWEST or not all(isinstance(one.input, Single) for one in examples):
        return found
    answers = _answers(program, examples)
    for place, name in enumerate(program.input.field_names):
        values = [one.input.values[place] for one in examples if isinstance(one.input, Single)]
        if any(isinstance(value, np.ndarray) for value in values):
            continue
        found += _column(name, values, digests)
        if answers is not None and role_of(program.input.fields[place]) is None:
            found += _leak(name, values, answers)
    return found


def _column(name: str, values: Sequence[Any], digests: Sequence[str]) -> Iterator[ExampleCheck]:
    gone = np.array([_missing(value) for value in values])
    if gone.mean() > MOST_MISSING:
        told = f"{name} is missing in {gone.mean():.0%} of the examples"
        yield ExampleCheck("missing", told, name, _some(digests, np.flatnonzero(gone)), int(gone.sum()))
    present = [value for value, out in zip(values, gone, strict=True) if not out]
    if len(set(present)) == 1 and not gone.any():
        yield ExampleCheck(
            "constant", f"{name} is {str(present[0])[:60]} in every example: it tells nothing", name
        )
    if len(present) >= FEWEST and all(isinstance(value, float) for value in present):
        numbers = np.array(
            [np.nan if out else value for value, out in zip(values, gone, strict=True)], dtype=float
        )
        low, middle, high = np.nanquantile(numbers, [0.25, 0.5, 0.75])
        spread = (high - low) / 1.349
        far = np.abs(numbers - middle) > FAR * spread if spread > 0 else np.zeros(len(numbers), dtype=bool)
        if 0 < far.sum() <= max(1, len(numbers) // 100):
            example = numbers[far][0]
            usual = f"{example:g}; the middle half: {low:g} to {high:g}"
            told = f"{name} is far from usual in {counted(int(far.sum()), 'example')} ({usual})"
            yield ExampleCheck("outliers", told, name, _some(digests, np.flatnonzero(far)), int(far.sum()))


def _missing(value: Any) -> bool:
    return value is None or value != value or value == ""


def _some(digests: Sequence[str], rows: NDArray[np.intp]) -> tuple[str, ...]:
    return tuple(digests[i] for i in rows[:MOST_DIGESTS].tolist())


def _uneven(program: Program, examples: Sequence[Example]) -> list[ExampleCheck]:
    if match_program(program).task is not Task.CLASSIFY or len(examples) < FEWEST:
        return []
    return uneven_classes(Counter(strata(program, examples)))


def uneven_classes(counts: Counter[str]) -> list[ExampleCheck]:
    """A class of which there is little, with what to measure by instead of accuracy."""
    total = sum(counts.values())
    if total < FEWEST or len(counts) < 2:
        return []
    name, count = min(counts.items(), key=lambda one: one[1])
    usual, most = max(counts.items(), key=lambda one: one[1])
    if count >= RARE * total:
        return []
    told = (
        f"{name[:60]} is {count / total:.1%} of the examples: "
        f"always saying {usual[:60]} is right in {most / total:.1%}. "
        "Measure by balanced_accuracy, f1 or average_precision: classes are then weighed and thresholds set for it"
    )
    return [ExampleCheck("imbalance", told, None, (), count)]


def _answers(program: Program, examples: Sequence[Example]) -> NDArray[Any] | None:
    """Class numbers, or the first predicted number; None for other tasks."""
    task = match_program(program).task
    if task is Task.CLASSIFY:
        return np.unique(strata(program, examples), return_inverse=True)[1]
    if task is not Task.REGRESS:
        return None
    firsts = [
        np.ravel(np.asarray(one.output.values[0], float))[0]
        for one in examples
        if isinstance(one.output, Single)
    ]
    return np.asarray(firsts, dtype=float)


def _leak(name: str, values: Sequence[Any], answers: NDArray[Any]) -> list[ExampleCheck]:
    strength = alone(values, answers)
    if strength < TOO_WELL:
        return []
    told = (
        f"{name} alone tells the answer almost every time: if it is known only after the answer, it is a leak; "
        "declare the app without it"
    )
    return [ExampleCheck("leak", told, name)]


def alone(values: Sequence[Any], answers: NDArray[Any]) -> float:
    """How well one column tells the answer, from 0 (nothing) to 1 (always); what is always the same tells nothing."""
    keep = np.array([not _missing(value) for value in values])
    some = [value for value, kept in zip(values, keep, strict=True) if kept]
    truth = answers[keep]
    if len(some) < FEWEST or len(set(truth.tolist())) < 2:
        return 0.0
    if all(isinstance(value, float) for value in some):
        numbers = np.asarray(some, dtype=float)
        if truth.dtype.kind == "f":
            return abs(_rank_correlation(numbers, truth))
        if len(set(truth.tolist())) == 2:
            return abs(2 * _ranked_above(numbers, truth == truth.max()) - 1)
        some = np.digitize(numbers, np.quantile(numbers, np.linspace(0, 1, 33)[1:-1])).tolist()
    return _told_by_value(some, truth)


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 1 on, equal values sharing theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    shared: NDArray[np.float64] = (ends - (counts - 1) / 2)[place]
    return shared


def _rank_correlation(one: NDArray[Any], two: NDArray[Any]) -> float:
    a, b = _ranks(one), _ranks(two)
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _ranked_above(values: NDArray[Any], positive: NDArray[np.bool_]) -> float:
    many = int(positive.sum())
    above = float(_ranks(values)[positive].sum()) - many * (many + 1) / 2
    return above / (many * (len(values) - many))


def _told_by_value(values: Sequence[Any], truth: NDArray[Any]) -> float:
    """The share of what the usual answer leaves open that the answers by value close, half by half."""
    half = np.random.default_rng(0).permutation(len(values)) % 2
    wrong = wrong_always = 0.0
    for side in (0, 1):
        seen: dict[Any, list[Any]] = {}
        for value, answer, own in zip(values, truth.tolist(), half, strict=True):
            if own != side:
                seen.setdefault(value, []).append(answer)
        usual = Counter(answer for answers in seen.values() for answer in answers).most_common(1)[0][0]
        mean = float(np.mean(truth[half != side]))
        for value, answer, own in zip(values, truth.tolist(), half, strict=True):
            if own != side:
                continue
            if truth.dtype.kind == "f":
                wrong += (answer - float(np.mean(seen.get(value, [mean])))) ** 2
                wrong_always += (answer - mean) ** 2
            else:
                told = Counter(seen.get(value, [usual])).most_common(1)[0][0]
                wrong += told != answer
                wrong_always += usual != answer
    return 1.0 - wrong / wrong_always if wrong_always else 0.0


def check_near(program: Program, examples: Sequence[Example], digests: Sequence[str]) -> list[ExampleCheck]:
    """Examples whose inputs are nearly the same, and among them those whose answers differ."""
    homes: dict[str, list[int]] = {}
    for row, example in enumerate(examples):
        key = near_key(example)
        if key is not None:
            homes.setdefault(key, []).append(row)
    alike = [rows for rows in homes.values() if len(rows) > 1]
    if not alike:
        return []
    labels = strata(program, examples)
    spare = np.array(sorted(row for rows in alike for row in rows[1:]))
    found = [
        ExampleCheck(
            "near-duplicates",
            f"{counted(len(spare), 'example')} nearly the same as an earlier one, with which they share a fold",
            None,
            _some(digests, spare),
            len(spare),
        )
    ]
    torn = np.array(sorted(row for rows in alike if len({labels[r] for r in rows}) > 1 for row in rows))
    if len(torn):
        told = (
            f"{counted(len(torn), 'example')} with nearly the same input as another and a different answer: "
            "look which is right"
        )
        found.append(ExampleCheck("contradictions", told, None, _some(digests, torn), len(torn)))
    return found


def check_drift(program: Program, examples: Sequence[Example], newest: Sequence[bool]) -> list[ExampleCheck]:
    """Columns, and the answer, that the newest feed holds otherwise than those before."""
    new = np.asarray(newest)
    if new.sum() < FEWEST or (~new).sum() < FEWEST:
        return []
    columns: list[tuple[str, list[Any]]] = []
    if all(isinstance(one.input, Single) for one in examples):
        for place, name in enumerate(program.input.field_names):
            values = [one.input.values[place] for one in examples if isinstance(one.input, Single)]
            if role_of(program.input.fields[place]) is None and not any(
                isinstance(v, np.ndarray) for v in values
            ):
                columns.append((name, values))
    answers = _answers(program, examples)
    if answers is not None:
        columns.append(("the answer", answers.tolist()))
    found = []
    for name, values in columns:
        chance = _same(values, new)
        if chance < 0.001 / len(columns):
            told = f"{name} is distributed otherwise in the newest feed than before: old scores may not hold for it"
            found.append(ExampleCheck("drift", told, name))
    return found


def _same(values: Sequence[Any], new: NDArray[np.bool_]) -> float:
    """The chance of a difference as large as this one if both were drawn alike."""
    from scipy.stats import chi2_contingency, ks_2samp

    if all(isinstance(v, float) or _missing(v) for v in values):
        numbers = np.array([np.nan if _missing(v) else v for v in values], dtype=float)
        one, two = (part[np.isfinite(part)] for part in (numbers[new], numbers[~new]))
        return float(ks_2samp(one, two).pvalue) if len(one) >= FEWEST and len(two) >= FEWEST else 1.0
    kept = {value for value, _ in Counter(map(str, values)).most_common(20)}
    words = [str(v) if str(v) in kept else "…" for v in values]
    names = sorted(set(words))
    if len(names) < 2:
        return 1.0
    table = [
        [sum(w == n and bool(m) is side for w, m in zip(words, new, strict=True)) for n in names]
        for side in (True, False)
    ]
    return float(chi2_contingency(np.array(table)).pvalue)


def check_labels(task: Task, losses: dict[str, float]) -> list[ExampleCheck]:
    """Examples whose answer a model that did not see them finds hard to believe; `losses` by digest."""
    values = np.array(list(losses.values()))
    if len(values) < FEWEST:
        return []
    if task is Task.CLASSIFY:
        limit = -np.log(SURPRISING)
    else:
        # 36 mean squared errors of the middle are six deviations.
        limit = 36.0 * max(float(np.median(values)) / 0.455, 1e-12)
    worst = [digest for digest in sorted(losses, key=lambda d: -losses[d]) if losses[digest] > limit]
    if not worst or len(worst) > len(values) / 10:
        return []
    told = f"{len(worst)} answers are hard to believe for a model that did not see them: look whether they are right"
    return [ExampleCheck("labels", told, None, tuple(worst[:MOST_DIGESTS]), len(worst))]
