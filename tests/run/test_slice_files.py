"""What one slice leaves for the next: copied, but never through a link, and left out where there is no room."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from easel.run.slice_files import keep_checkpoint


def test_links_that_lead_out_are_never_followed(tmp_path: Path) -> None:
    secret, folder, output = tmp_path / "secret", tmp_path / "checkpoint", tmp_path / "output"
    secret.mkdir()
    (secret / "key").write_text("hush")
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "key").write_text("mine")
    (folder / "link").symlink_to(secret / "key")
    output.mkdir()
    (output / "inner").symlink_to(secret)
    keep_checkpoint(folder, output)
    assert (secret / "key").read_text() == "hush"
    assert (output / "inner" / "key").read_text() == "mine"
    assert (output / "link").is_symlink()


def test_a_full_disk_leaves_no_half_checkpoint_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, output = tmp_path / "checkpoint", tmp_path / "kept"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text(name)
    copied: list[str] = []

    def full(source: str, target: str, **_: object) -> None:
        copied.append(source)
        if len(copied) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        Path(target).write_bytes(b"half")

    monkeypatch.setattr(shutil, "copy2", full)
    monkeypatch.setattr(shutil.copytree, "__defaults__", (False, None, full, False, False))
    keep_checkpoint(folder, output)
    assert not output.exists()
    assert "No space left" in capsys.readouterr().err
