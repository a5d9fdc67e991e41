"""What one slice of a trial leaves for the next: the files of its checkpoint, with a note of what they belong to."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from pathlib import Path

FORMAT = 1
"""Of the files in a checkpoint. One of another format is as good as none."""
NOTE = "slice.json"


def open_checkpoint(folder: Path, key: str) -> None:
    """Leave in `folder` only what belongs to the trial `key` and can be read by this version of Easel.

    What an attempt that was killed left is there too, newer than what the slice before left.
    """
    try:
        told = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        fits = told == {"format": FORMAT, "trial": key}
    except (OSError, ValueError):
        fits = False
    if not fits:
        if any(folder.iterdir()):
            sys.stderr.write("the checkpoint is of another trial or version, the trial begins anew\n")
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        with contextlib.suppress(OSError):  # without a note nothing is gone on with
            (folder / NOTE).write_text(json.dumps({"format": FORMAT, "trial": key}), encoding="utf-8")
