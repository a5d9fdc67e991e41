"""What a slice reads of many examples, and which checkpoints it goes on from."""

from __future__ import annotations

import json
from pathlib import Path

from easel.flow.apps.slice_files import NOTE, open_checkpoint
from easel.flow.apps.trial import part_of_many, read_pairs
from easel.match.stored import StoredPair, write_lines
from easel.run.slice_files import keep_checkpoint


def test_a_slice_on_a_share_reads_what_it_needs_and_a_larger_one_that_and_more(tmp_path: Path) -> None:
    pairs = [StoredPair(f"{k * 0xFFFFFFFF // 12_000:08x}", k % 5, {"x": k}, "a") for k in range(12_000)]
    (tmp_path / "one.jsonl").write_bytes(b"".join(write_lines(pairs)))
    small, large = part_of_many(0.1, 12_000), part_of_many(0.5, 12_000)
    assert small is not None
    assert large is not None
    few, more = ({p.digest: p for p in read_pairs(tmp_path, frozenset(), one)} for one in (small, large))
    assert few.keys() < more.keys()
    trains = [one for one in few.values() if one.fold != 0]
    assert abs(len(trains) / 9_600 - 0.1) < 0.01
    assert abs(len(few) - len(trains) - 2_000) < 20
    assert part_of_many(1.0, 12_000) is None
    assert part_of_many(0.1, 900) is None


def test_a_checkpoint_of_another_trial_or_version_is_as_good_as_none(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    open_checkpoint(folder, "mine")
    (folder / "round-0.safetensors").write_bytes(b"weights")
    (folder / "round-1.partial").write_bytes(b"half")
    keep_checkpoint(folder, tmp_path / "kept")
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["round-0.safetensors", NOTE]
    open_checkpoint(tmp_path / "kept", "mine")
    assert (tmp_path / "kept" / "round-0.safetensors").exists()
    for note in ('{"format": 0, "trial": "mine"}', json.dumps({"format": 1, "trial": "other"}), "{half"):
        open_checkpoint(folder, "mine")
        (folder / "round-0.safetensors").write_bytes(b"weights")
        (folder / NOTE).write_text(note)
        open_checkpoint(folder, "mine")
        assert [path.name for path in folder.iterdir()] == [NOTE]
