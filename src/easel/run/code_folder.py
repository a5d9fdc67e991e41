"""Preparing the folder with a job's code: programs made executable, an archive unpacked within limits."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

from easel.declare.broken_files import BROKEN_ZIP
from easel.records.attempt import EndReason
from easel.run.failure import Failure


def make_executable(folder: Path, names: Sequence[str]) -> None:
    """Makes programs of the code executable; names that lead out of it are passed over."""
    for name in names:
        path = folder / name.lstrip("/")
        if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            path.chmod(0o755)


def unzip(archive: Path, folder: Path, limit: int) -> None:
    """Unpacks code given as one zip file beside itself; members cannot leave the folder."""
    try:
        with zipfile.ZipFile(archive) as opened:
            size = sum(member.file_size for member in opened.infolist())
            if size > limit:
                reason = f"the code {archive.name} unpacks to {size} of {limit} bytes"
                raise Failure(EndReason.FILES, reason, final=True)
            opened.extractall(folder)
    except BROKEN_ZIP as error:
        reason = f"the code {archive.name} is not a usable zip file: {error}"
        raise Failure(EndReason.FILES, reason, final=True) from error
