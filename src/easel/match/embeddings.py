"""Word vectors from a GloVe file: a word and its numbers on each line, the most frequent words first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from easel.errors import InvalidInput

MOST_NUMBERS = 1_024
LOOKED_AT = 1_000


def read_vectors(lines: Iterable[bytes], name: str) -> Iterator[tuple[str, list[float]]]:
    """Word and vector of each line; all vectors are as long as the first. Says which line is wrong, and how.

    A first line of two whole numbers, as word2vec and fastText write it, is left out.
    """
    size = 0
    for number, raw in enumerate(lines, start=1):
        try:
            word, *cells = raw.decode("utf-8").rstrip().split(" ")
            values = [float(cell) for cell in cells]
        except ValueError:
            raise InvalidInput(f"{name}, line {number}: expected a word and its numbers") from None
        if number == 1 and len(values) == 1 and word.isdigit():
            continue
        size = size or len(values)
        if len(values) != size or not 1 <= size <= MOST_NUMBERS or not all(map(math.isfinite, values)):
            wanted = size if 1 <= size <= MOST_NUMBERS else f"1 to {MOST_NUMBERS:,}"
            raise InvalidInput(f"{name}, line {number}: expected {wanted} numbers, found {len(values)}")
        yield word, values


def vector_size(lines: Iterable[bytes], name: str) -> int:
    """How many numbers a word has, by the first lines of a file."""
    sizes = [len(values) for _, values in islice(read_vectors(lines, name), LOOKED_AT)]
    if not sizes:
        raise InvalidInput(f"{name} holds no word vectors: each line is a word and its numbers")
    return sizes[0]


def some_vectors(path: Path, wanted: Sequence[str], most: int) -> dict[str, list[float]]:
    """The vectors of the words `wanted`, and of the file's first other words until there are `most`."""
    needed = set(wanted)
    found: dict[str, list[float]] = {}
    others = max(0, most - len(needed))
    with path.open("rb") as lines:
        for word, values in read_vectors(lines, path.name):
            if word in needed:
                found.setdefault(word, values)
            elif others and word not in found:
                found[word] = values
                others -= 1
    return found
