"""Word vectors from a GloVe file: a word and its numbers on each line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from easel.errors import InvalidInput


@torch.no_grad()
def load_vectors(path: Path, words: Sequence[str], table: Tensor) -> int:
    """Overwrite row k + 2 of `table (words + 2, d)` with the vector of `words[k]`; how many were found."""
    place = {word: number for number, word in enumerate(words, start=2)}
    found = 0
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            word, *numbers = line.rstrip().split(" ")
            if word not in place:
                continue
            if len(numbers) != table.shape[1]:
                raise InvalidInput(
                    f"{path.name}, line {number}: expected {table.shape[1]} numbers, found {len(numbers)}"
                )
            table[place[word]] = torch.tensor([float(value) for value in numbers])
            found += 1
    return found
