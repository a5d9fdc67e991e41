"""Small synthetic apps, one for each template, that a right model learns in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from easel.declare.parse import parse_program
from easel.declare.program import Program
from easel.match.examples import Example
from easel.match.read import read_example

World = tuple[Program, list[Example]]


def world(text: str, pairs: Sequence[tuple[Any, Any]]) -> World:
    program = parse_program(text)
    return program, [read_example(program, source, target) for source, target in pairs]


def pictures(n: int = 48) -> World:
    """A bright bar that lies or stands."""
    rng = np.random.default_rng(0)
    pairs = []
    for i in range(n):
        picture = rng.normal(0, 0.1, (12, 12, 1))
        place = int(rng.integers(12))
        picture[(place, slice(None)) if i % 2 else (slice(None), place)] += 1.0
        pairs.append((picture, "lying" if i % 2 else "standing"))
    return world("{input: {[Tensor[12, 12, 1]], []}, output: {[Category[lying, standing]], []}}", pairs)


def recovery(n: int = 24) -> World:
    """A noisy square → the clean one."""
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(n):
        clean = np.zeros((8, 8, 1))
        top, left = rng.integers(0, 5, 2)
        clean[top : top + 3, left : left + 3] = 1.0
        pairs.append((clean + rng.normal(0, 0.3, clean.shape), clean))
    return world("{input: {[Tensor[8, 8, 1]], []}, output: {[Tensor[8, 8, 1]], []}}", pairs)


def waves(n: int = 48) -> World:
    """Slow or quick waves of different lengths, two channels."""
    rng = np.random.default_rng(0)
    pairs = []
    for i in range(n):
        steps = np.arange(int(rng.integers(30, 40)))
        speed = 0.9 if i % 2 else 0.3
        wave = np.sin(speed * steps + rng.uniform(0, 6))
        pairs.append((np.stack([wave, rng.normal(0, 1, len(steps))], 1), ["slow", "quick"][i % 2]))
    return world("{input: {[Tensor[2]], [next]}, output: {[Category], []}}", pairs)


def translation(n: int = 48) -> World:
    """The answer is the question backwards, and doubled."""
    rng = np.random.default_rng(0)
    questions = [rng.normal(0, 1, (4, 1)) for _ in range(n)]
    text = "{input: {[Tensor[1]], [next]}, output: {[Tensor[1]], [next]}}"
    return world(text, [(q, 2 * q[::-1]) for q in questions])


def trees(n: int = 48) -> World:
    """Whether the leaf that hangs to the left of the root is an a."""
    rng = np.random.default_rng(0)
    pairs = []
    for i in range(n):
        leaf = {"kind": "ab"[i % 2], "left": None, "right": None}
        other: dict[str, Any] = {"kind": "ab"[int(rng.integers(2))]}
        pairs.append(({"kind": "root", "left": leaf, "right": other}, ["yes", "no"][i % 2]))
    text = "{input: {[kind :: Category], [left, right]}, output: {[Category[no, yes]], []}}"
    return world(text, pairs)


def table(n: int = 80) -> World:
    """A class that depends on a number with gaps and on a category."""
    rng = np.random.default_rng(0)
    pairs = []
    for i in range(n):
        size, town = rng.normal(), ["Bern", "Chur"][int(rng.integers(2))]
        label = "yes" if size + (1.0 if town == "Bern" else -1.0) > 0 else "no"
        pairs.append(({"size": None if i % 10 == 9 else size, "town": town}, label))
    text = "{input: {[size :: Number?, town :: Category], []}, output: {[Category[no, yes]], []}}"
    return world(text, pairs)


def line(n: int = 80, outputs: int = 1) -> World:
    """A straight line with a little noise; with two outputs also its negative."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (n, 3))
    y = 5.0 + 3.0 * x[:, 0] + 0.1 * rng.normal(size=n)
    answers = [float(v) if outputs == 1 else [v, -v] for v in y]
    kind = "Number" if outputs == 1 else f"Number[{outputs}]"
    return world(
        f"{{input: {{[Tensor[3]], []}}, output: {{[{kind}], []}}}}", list(zip(x, answers, strict=True))
    )


def texts(n: int = 48) -> World:
    """Good or bad words among others."""
    rng = np.random.default_rng(0)
    good, bad, other = ["fine", "lovely", "great"], ["awful", "dull", "poor"], ["film", "the", "was", "a"]
    pairs = []
    for i in range(n):
        words = [*rng.choice(other, 4), *rng.choice(bad if i % 2 else good, 2)]
        pairs.append((" ".join(words), ["good", "bad"][i % 2]))
    return world("{input: {[Text], []}, output: {[Category], []}}", pairs)


def general(n: int = 48) -> World:
    """A picture beside an array of four dimensions: no template but the general one takes both."""
    rng = np.random.default_rng(0)
    pairs = [
        ({"a": np.full((2, 2), float(i % 2)), "b": rng.normal(size=(1, 1, 1, 2))}, ["x", "y"][i % 2])
        for i in range(n)
    ]
    return world(
        "{input: {[a :: Tensor[2, 2], b :: Tensor[1, 1, 1, 2]], []}, output: {[Category], []}}", pairs
    )


def copying(n: int = 48) -> World:
    """Two fields out: only the general auto-encoder answers that."""
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(n):
        kind = ["red", "blue"][int(rng.integers(2))]
        pairs.append(({"k": kind}, {"k": kind, "n": 1.0 if kind == "red" else 3.0}))
    text = "{input: {[k :: Category], []}, output: {[k :: Category, n :: Number], []}}"
    return world(text, pairs)
