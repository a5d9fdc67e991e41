"""Candidates that differ by rate and augmentation are learned as one program, and each ends by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from easel.flow.apps import trial
from easel.flow.apps.learn_together import learn_together
from easel.flow.apps.trial import learn
from easel.match import fit_packed
from easel.match.candidate import Candidate
from easel.match.checkpoint import state_in
from easel.match.packed import fit_together
from easel.match.stored import StoredPair, write_lines

PROGRAM = "{input: {[Tensor[12, 12, 1]], []}, output: {[Category[lying, standing]], []}}"


@dataclass
class Place:
    """A trial's context; it is killed after its epochs were asked about so often."""

    arguments: dict[str, Any]
    input: Path
    root: Path
    killed_after: int | None = None
    input_key: str = "the same"
    gives_way: bool = False

    @property
    def output(self) -> Path:
        return self.root / "output"

    @property
    def checkpoint(self) -> Path:
        folder = self.root / "checkpoint"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def asked_to_give_way(self) -> bool:
        return self.gives_way

    def was_killed(self) -> bool:
        if self.killed_after is None:
            return False
        self.killed_after -= 1
        return self.killed_after < 0


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    rng, pairs = np.random.default_rng(0), []
    for i in range(40):
        picture = rng.normal(0, 0.1, (12, 12, 1))
        place = int(rng.integers(12))
        picture[(place, slice(None)) if i % 2 else (slice(None), place)] += 1.0
        pairs.append(StoredPair(f"{i:032x}", i // 2 % 2, picture.tolist(), "lying" if i % 2 else "standing"))
    folder = tmp_path / "examples"
    folder.mkdir()
    (folder / "shard.jsonl").write_bytes(b"".join(write_lines(pairs)))
    return folder


def place_of(examples: Path, root: Path, *settings: tuple[str, Any], **more: Any) -> Place:
    candidate = Candidate("convnet", (("width", 0.25), *settings))
    wanted = {
        "program": PROGRAM,
        "candidate": candidate.to_json(),
        "seed": 0,
        "budget_s": 600.0,
        "until": 1 / 60,
    }
    return Place(wanted, examples, root / candidate.name, **more)


def test_one_is_killed_one_fails_and_the_others_learn_together(
    examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_packed, "PACKED_DEVICES", ("cpu",))
    packs: list[int] = []
    reads: list[Path] = []
    real, read = fit_together, trial.read_pairs

    def watched(members: Any, *rest: Any, **named: Any) -> Any:
        packs.append(len(members))
        return real(members, *rest, **named)

    def noted(folder: Path, *rest: Any) -> Any:
        reads.append(folder)
        return read(folder, *rest)

    monkeypatch.setattr(fit_packed, "fit_together", watched)
    monkeypatch.setattr(trial, "read_pairs", noted)
    places = [
        place_of(examples, tmp_path, ("lr", 1e-2)),
        place_of(examples, tmp_path, ("lr", 3e-3), ("augment", "affine"), killed_after=1),
        place_of(examples, tmp_path, ("lr", 3e-3)),
        place_of(examples, tmp_path, ("lr", 1e-3), ("side", -1)),
    ]
    places[3].arguments["program"] = PROGRAM.replace("12, 12", "12, 13")
    told: dict[int, Mapping[str, Any] | BaseException] = {}
    order: list[int] = []

    def hear(number: int, what: Mapping[str, Any] | BaseException) -> None:
        told[number] = what
        order.append(number)

    learn_together(places, hear)
    assert sorted(told) == [0, 1, 2, 3]
    assert packs == [6]  # two folds of three candidates
    assert reads == [examples] * 2  # once for what is the same, and once for the program of other pictures
    assert isinstance(told[3], Exception)
    assert isinstance(told[1], fit_packed.Left)
    assert order[:2] == [3, 1]  # whoever is killed ends before the others
    for number in (0, 2):
        result = told[number]
        assert isinstance(result, Mapping)
        assert result["reached"] == pytest.approx(1 / 60)
        assert list(places[number].output.rglob("model.json"))
        kept = sorted(places[number].checkpoint.glob("round-*.safetensors"))
        assert [state_in(one).epoch for one in kept] == [1, 1]
    # What was begun together goes on alone.
    places[0].arguments["until"] = 2 / 60
    alone = learn(places[0])
    assert (alone["resumed_epochs"], alone["reached"]) == (2, pytest.approx(2 / 60))


def test_candidates_of_other_shapes_are_learned_in_turn(
    examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_packed, "PACKED_DEVICES", ("cpu",))
    wide = place_of(examples, tmp_path, ("lr", 1e-2))
    wide.arguments["candidate"]["settings"]["width"] = 0.5
    wide.root = tmp_path / "wide"
    told: dict[int, Any] = {}
    learn_together([place_of(examples, tmp_path, ("lr", 1e-2)), wide], told.__setitem__)
    assert [told[number]["reached"] for number in (0, 1)] == [pytest.approx(1 / 60)] * 2
