"""Kept answers that were damaged, or that lie, are refused in words: another metric is chosen all the same."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import numpy as np
import pytest

from easel.errors import InvalidInput
from easel.flow.apps import kept_answers
from easel.flow.apps.kept_answers import read_kept

DESCRIBED = {"target": {"state": {"names": ["no", "yes"]}}}


def packed(digests: Any = ("a", "b", "c"), predicted: Any = ((0.2, 0.8),) * 3, **more: Any) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, digests=np.array(digests), predicted=np.array(predicted), **more)
    return out.getvalue()


def described(**fields: Any) -> bytes:
    return json.dumps({**DESCRIBED, **fields}).encode()


def test_what_was_kept_is_read() -> None:
    found = read_kept(packed(), described())
    assert (found.names, found.digests) == (("no", "yes"), ("a", "b", "c"))
    assert found.predicted.tolist() == [[0.2, 0.8]] * 3


@pytest.mark.parametrize(
    ("predictions", "model"),
    [
        (b"", described()),
        (b"PK\x03\x04", described()),
        (packed(predicted=((0.2, 0.8),) * 2), described()),
        (packed(predicted=(0.2, 0.8, 0.1)), described()),
        (packed(predicted=((0.2, 0.3, 0.5),) * 3), described()),
        (packed(predicted=(("a", "b"),) * 3), described()),
        (packed(digests=((1.0, 2.0),) * 3), described()),
        (packed(digests="a"), described()),
        (packed(), b"{"),
        (packed(), b"\xff"),
        (packed(), b"[]"),
        (packed(), b"[" * 100_000),
        (packed(), described(target=None)),
        (packed(), described(target={"state": {"names": "no"}})),
        (packed(), described(target={"state": {"names": [["no"], "yes"]}})),
    ],
)
def test_what_is_no_answer_is_refused_in_words(predictions: bytes, model: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_kept(predictions, model)


def test_a_small_file_that_unpacks_to_a_huge_one_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "MOST_UNPACKED", 10_000)
    with pytest.raises(InvalidInput, match="unpack to more"):
        read_kept(packed(more=np.zeros(100_000)), described())


def test_flipped_bytes_are_never_more_than_an_error_in_words() -> None:
    rng, good = random.Random(1), packed()
    for _ in range(500):
        broken = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        try:
            read_kept(bytes(broken[: rng.choice([len(broken), rng.randrange(len(broken))])]), described())
        except InvalidInput:
            continue
