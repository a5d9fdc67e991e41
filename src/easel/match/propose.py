"""Program and data → the pool of candidates, each with an estimated cost and a first guess of its promise.

A family's base settings come first; then one choice is changed at a time (learning rate, size, augmentation,
normalisation), so that every choice multiplies the pool without the full product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log10

from easel.declare.program import Program
from easel.match.candidate import GRID, NETWORK_FREE, Candidate, Setting
from easel.match.summary import DataSummary
from easel.match.templates import Task, Template, match_program

REFERENCE_GFLOPS = 15.0
"""Sustained single-precision speed of one core of the reference machine while training a convolution."""

_IMAGE_GFLOP = {
    "convnet": 0.049,
    "alexnet": 0.51,
    "resnet18": 1.11,
    "resnet50": 2.6,
    "googlenet": 2.9,
    "squeezenet": 0.047,
    "vgg16": 0.68,
    "nin": 0.45,
    "bn_alexnet": 0.51,
}
"""Operations of one forward pass at 3 × 32 × 32 and width 1, in units of 1e9."""

PIXEL_FAMILIES = ("svm", "extra_trees", "logistic_regression")
"""Table models that look at pictures of at most 32 × 32 and short series as plain vectors: weak priors, but quick."""


@dataclass(frozen=True)
class _Plan:
    """A family's promise and base settings, and alternatives to a setting with what they cost in promise."""

    promise: float
    base: tuple[tuple[str, Setting], ...] = ()
    other: tuple[tuple[str, Setting, float], ...] = ()


@dataclass(frozen=True)
class Choices:
    """What a user may decide about the pool: learning rates as candidates of their own or, as the paper has it,
    a grid inside each trial (`rates_inside`); `vectors`: how many numbers each word of a given GloVe file has.
    """

    rates_inside: bool = False
    vectors: int = 0


def propose_candidates(
    program: Program, summary: DataSummary, choices: Choices | None = None
) -> tuple[Candidate, ...]:
    """All candidates of the template that fires, most promising per cost first."""
    template, chosen = match_program(program), choices or Choices()
    found: dict[str, Candidate] = {}
    for family, plan in _plans(template, summary, chosen):
        inside = chosen.rates_inside and family not in NETWORK_FREE
        found |= {c.name: c for c in _expand(family, _with_grid(plan) if inside else plan, summary)}
    return tuple(sorted(found.values(), key=_eagerness))


def _with_grid(plan: _Plan) -> _Plan:
    """One candidate that looks for its learning rate itself in place of one for each rate."""
    if "lr" not in dict(plan.base):
        return plan
    base = tuple((key, GRID if key == "lr" else value) for key, value in plan.base)
    return _Plan(plan.promise, base, tuple(other for other in plan.other if other[0] != "lr"))


def _eagerness(candidate: Candidate) -> float:
    """Ascending: quick before slow and promising before not; a tenfold cost weighs like 0.1 of promise."""
    return 0.1 * log10(max(candidate.cost_s, 0.5)) - candidate.promise


def _expand(family: str, plan: _Plan, summary: DataSummary) -> Iterator[Candidate]:
    base = dict(plan.base)
    variants = [(base, plan.promise)]
    variants += [({**base, key: value}, plan.promise - loss) for key, value, loss in plan.other]
    for settings, promise in variants:
        draft = Candidate(family, tuple(settings.items()), promise=promise)
        yield Candidate(family, tuple(settings.items()), estimate_cost(draft, summary), promise)


def _plans(template: Template, summary: DataSummary, choices: Choices) -> Iterator[tuple[str, _Plan]]:
    extra: tuple[tuple[str, Setting, float], ...] = ()
    if summary.wide:
        extra = (
            ("norm", "log", 0.02),
            ("norm", "f_0.5", 0.04),
            ("norm", "f_0.25", 0.05),
            ("norm", "f_2", 0.06),
        )
    kind = template.name.split()[0]
    for family in template.families:
        if kind == "image" and template.task is not Task.RECOVER:
            yield family, _image_plan(family, summary, extra)
        elif kind == "image":
            yield (
                family,
                _Plan(
                    {"unet": 0.8, "autoencoder": 0.6}.get(family, 0.7),
                    (("width", 0.5), ("lr", 2e-3)),
                    (("width", 1.0, 0.0), ("lr", 5e-4, 0.05), *extra),
                ),
            )
        elif kind == "time-series" and template.task is not Task.TRANSLATE:
            yield family, _series_plan(family, extra)
        elif kind in ("table", "multi-output"):
            yield family, _table_plan(family, summary, template.task)
        elif kind == "text":
            yield family, _text_plan(family, choices.vectors)
        elif family == "tree_kernel_svm":
            yield family, _Plan(0.6, (("C", 1.0),), (("C", 0.1, 0.05), ("C", 10.0, 0.05)))
        else:
            rates = (("lr", 1e-3, 0.05), ("lr", 1e-2, 0.1), ("width", 1.0, 0.02), *extra)
            yield family, _Plan(0.6, (("width", 0.5), ("lr", 3e-3)), rates)
    flat = template.task in (Task.CLASSIFY, Task.REGRESS) and kind in ("image", "time-series")
    if flat and _plain_cells(summary) <= 4096:
        for family in PIXEL_FAMILIES:
            if family != "logistic_regression" or template.task is Task.CLASSIFY:
                plan = _table_plan(family, summary, template.task)
                yield family, _Plan(plan.promise - 0.2, plan.base, plan.other)


def _plain_cells(summary: DataSummary) -> int:
    """Numbers that a table model sees of one input: of a larger picture a small copy."""
    return summary.cells if summary.side <= 32 else round(summary.cells * (32 / summary.side) ** 2)


def _image_plan(family: str, summary: DataSummary, extra: tuple[tuple[str, Setting, float], ...]) -> _Plan:
    small = summary.side <= 40
    promise = {"convnet": 0.85, "resnet18": 0.84, "bn_alexnet": 0.72, "googlenet": 0.8, "resnet50": 0.78}.get(
        family, 0.7
    )
    rate = 3e-3 if family in ("convnet", "resnet18", "squeezenet", "nin") else 1e-3
    # Small pictures (digits, cells) rarely gain from mirroring; photographs do.
    augment, other = ("affine", "flip") if small else ("flip", "affine")
    base: tuple[tuple[str, Setting], ...] = (
        ("augment", augment),
        ("lr", rate),
        ("width", 0.5 if family == "convnet" else 0.25),
    )
    choices: list[tuple[str, Setting, float]] = [
        ("lr", rate / 3, 0.01),
        ("width", 1.0, 0.0),
        ("augment", other, 0.03),
        ("augment", "none", 0.03),
    ]
    if family == "convnet":
        choices.append(("width", 0.25, 0.03))
    if summary.side > 64:
        base = (*base, ("side", 64))
        choices.append(("side", 224, 0.0))
    return _Plan(promise, base, (*choices, *extra))


def _series_plan(family: str, extra: tuple[tuple[str, Setting, float], ...]) -> _Plan:
    if family == "minirocket":
        return _Plan(
            0.95, (("alpha", 1.0),), (("alpha", 0.1, 0.01), ("alpha", 10.0, 0.02), ("features", 4956, 0.01))
        )
    promise = {"fcn": 0.85, "gru": 0.7, "bilstm": 0.72, "lstm": 0.66}.get(family, 0.55)
    base: tuple[tuple[str, Setting], ...] = (("lr", 3e-3), ("width", 0.5))
    return _Plan(promise, base, (("lr", 1e-3, 0.02), ("lr", 1e-2, 0.04), ("width", 1.0, 0.0), *extra))


def _table_plan(family: str, summary: DataSummary, task: Task) -> _Plan:
    few = summary.examples < 2_000
    match family:
        case "logistic_regression" | "linear":
            return _Plan(
                0.82 if few else 0.72, (("C", 1.0),), (("C", 0.1, 0.01), ("C", 10.0, 0.03), ("C", 0.01, 0.03))
            )
        case "blend":
            return _Plan(0.83)
        case "svm":
            return _Plan(
                0.84 if few else 0.8,
                (("C", 3.0),),
                (("C", 0.5, 0.01), ("C", 20.0, 0.01), ("gamma", "fine", 0.05)),
            )
        case "random_forest":
            return _Plan(0.8, (("trees", 300),), (("leaf", 3, 0.01), ("features", "half", 0.02)))
        case "extra_trees":
            return _Plan(0.82, (("trees", 300),), (("leaf", 3, 0.01), ("features", "half", 0.02)))
        case "lightgbm":
            return _Plan(
                0.85,
                (("lr", 0.1), ("leaves", 31)),
                (("lr", 0.03, 0.0), ("leaves", 7, 0.01), ("leaves", 95, 0.03)),
            )
        case "boosted_trees":
            return _Plan(0.82, (("lr", 0.1),), (("lr", 0.03, 0.01), ("depth", 3, 0.02)))
        case "neural_network":
            return _Plan(
                0.78,
                (("lr", 1e-3), ("hidden", 128)),
                (("lr", 1e-2, 0.03), ("hidden", 512, 0.0), ("alpha", 1.0, 0.0)),
            )
        case "bayes_point":
            return _Plan(0.62)
        case _:
            return _Plan(0.6, (("alpha", 1e-4),), (("alpha", 1e-3, 0.01),))


def _text_plan(family: str, vectors: int) -> _Plan:
    match family:
        case "text_linear":
            return _Plan(0.85, (("C", 3.0),), (("C", 30.0, 0.01), ("C", 0.3, 0.03), ("grams", 1, 0.02)))
        case "text_bayes":
            return _Plan(0.78, (("alpha", 0.3),), (("alpha", 1.0, 0.02),))
        case _:
            given: tuple[tuple[str, Setting, float], ...] = (("vectors", vectors, -0.1),) if vectors else ()
            return _Plan(0.7, (("lr", 3e-3), ("width", 1.0)), (("lr", 1e-3, 0.02), *given))


def estimate_cost(candidate: Candidate, summary: DataSummary) -> float:
    """Seconds on the reference core, from operation counts and rules of thumb; four times for a grid of four."""
    return _once(candidate, summary) * (4.0 if candidate.text("lr", "") == GRID else 1.0)


def _once(candidate: Candidate, summary: DataSummary) -> float:
    n, cells = summary.examples, summary.cells
    rounds = 5 if n < 1_000 else 1
    width: float = candidate.number("width", 1.0)
    family = candidate.family
    epochs = epochs_for(family, n)
    if family in _IMAGE_GFLOP:
        side = min(summary.side, candidate.number("side", 224.0))
        pixels = side**2 if summary.side > 1 else cells
        # Above 64 pixels the stem shrinks the picture by 4 on each side.
        work = pixels / 1024 if side < 64 else pixels / 1024 / 14
        gflop = 3 * _IMAGE_GFLOP[family] * work * max(width, 0.15) ** 1.7 * n * epochs
        return float(1.0 + rounds * (0.5 + gflop / REFERENCE_GFLOPS))
    if family in ("rnn", "lstm", "bilstm", "gru", "seq2seq", "bit_rnn", "tree_lstm"):
        return float(1.0 + rounds * n * epochs * summary.steps * 2.5e-5 * (1 + 3 * width**2))
    if family == "fcn":
        return float(1.0 + rounds * n * epochs * summary.steps * 2e-5 * (0.2 + 4 * width**2))
    if family == "minirocket":
        return 1.0 + (rounds + 1) * n * (summary.steps * 2e-5 + 2e-4) + 1e-9 * n**3
    if family in ("unet", "autoencoder", "pix2pix_gan"):
        twice = 2 if family == "pix2pix_gan" else 1
        return float(1.0 + rounds * n * epochs * cells * 2e-6 * width**1.7 * twice)
    if family in ("bit_autoencoder", "text_network"):
        return 1.0 + rounds * n * epochs * min(cells, 500) * 4e-6
    cells = _plain_cells(summary)
    tables = {
        "svm": 2e-10 * n * n * cells * (summary.classes or 2) ** 0.5 + 2e-5 * n,
        "blend": 0.3 + 4e-10 * n * n * cells + 2e-5 * n + 4e-5 * n * cells**0.5,
        "random_forest": 0.5 + 8e-5 * n * cells**0.5,
        "extra_trees": 0.35 + 5e-5 * n * cells**0.5,
        "lightgbm": (0.3 + 1e-6 * n * cells) * max(1, summary.classes),
        "boosted_trees": (0.5 + 3e-6 * n * cells) * max(1, summary.classes),
        "neural_network": 2e-6 * n * epochs * (cells + 128),
        "logistic_regression": 8e-8 * n * cells * max(1, summary.classes),
    }
    return float(0.1 + (rounds + 1) * tables.get(family, 1e-6 * n * cells))


def epochs_for(family: str, examples: int) -> int:
    """Fewer passes over more data: about 60,000 examples in all, between 12 and 60 passes."""
    most = 120 if family in ("fcn", "rnn", "lstm", "bilstm", "gru", "seq2seq", "tree_lstm") else 60
    return int(min(most, max(12, 80_000 // max(1, examples))))
