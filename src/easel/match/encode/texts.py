"""Texts → word numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from easel.match.encode.tables import WORD
from easel.match.examples import Object, Single

MOST_WORDS = 20_000
LONGEST = 256


@dataclass(frozen=True)
class TextEncoder:
    """0 pads, 1 is an unknown word, `words[k]` is number k + 2."""

    words: tuple[str, ...]
    length: int

    def __call__(self, objects: Sequence[Object]) -> dict[str, NDArray[np.int64]]:
        """`{"x": (n, length)}`"""
        place = {word: number for number, word in enumerate(self.words, start=2)}
        x = np.zeros((len(objects), self.length), dtype=np.int64)
        for row, one in enumerate(objects):
            numbers = [place.get(word, 1) for word in words_of(one)[: self.length]]
            x[row, : len(numbers)] = numbers
        return {"x": x}


def text_of(one: Object) -> str:
    assert isinstance(one, Single)
    return str(one.values[0] or "")


def words_of(one: Object) -> list[str]:
    return WORD.findall(text_of(one).lower())


def fit_texts(objects: Sequence[Object], given: Collection[str] = ()) -> TextEncoder:
    """Words seen at least twice (all of them where there are few), the most frequent first; then those `given`."""
    split = [words_of(one) for one in objects]
    seen = Counter(word for words in split for word in words)
    frequent = [word for word, times in seen.most_common(MOST_WORDS) if times > 1 or len(seen) < 2000]
    longest = max((len(words) for words in split), default=1)
    seen_words = set(frequent)
    words = (*frequent, *(word for word in given if word not in seen_words))
    return TextEncoder(words, max(1, min(longest, LONGEST)))
