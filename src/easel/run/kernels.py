"""GPU kernels that are built once for a machine, outside the walls, and lent to trials that cannot change them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import MutableMapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from easel.version import __version__

BUILDER = "easel.match.build_kernels"
CACHE, KERNELS = "TRITON_CACHE_DIR", "EASEL_KERNELS"
_READY, _CACHE, _WHOLE, _NETWORKS, _COMPLETE = "ready", "cache", "whole", "networks", "complete"


def folder(home: Path) -> Path:
    """Where a machine keeps its kernels."""
    return home / "kernels"


def lend(home: Path, own: Path, environment: MutableMapping[str, str]) -> None:
    """Lets a trial build kernels in its `own` folder, where all that the machine keeps are to be found already.

    They are links to files that it can read only; so is the list of networks that need no others.
    """
    kept = folder(home) / _READY
    environment.update({CACHE: str(own), KERNELS: str(kept / _NETWORKS)})
    try:
        whole = (kept / _WHOLE).read_text(encoding="utf-8").split()
    except OSError:
        return
    own.mkdir(parents=True, exist_ok=True)
    cache = kept.resolve() / _CACHE
    for name in whole:
        with contextlib.suppress(FileExistsError):
            (own / name).symlink_to(cache / name)


class KernelBuilder:
    """Has the kernels of a machine built in the background, at the lowest priority, unless they are kept already."""

    def __init__(self, home: Path, cards: Sequence[str], log: Path) -> None:
        self._folder, self._cards, self._log = folder(home), cards, log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str | None:
        """What the kernels depend on, as the name of a folder; None where this machine builds none."""
        try:
            built_by = version("triton")
        except PackageNotFoundError:
            return None
        told = "\n".join((built_by, __version__, sys.version, *sorted(set(self._cards))))
        return hashlib.sha256(told.encode()).hexdigest()[:16] if self._cards else None

    def start(self, command: Sequence[str] = (sys.executable, "-m", BUILDER)) -> None:
        """Begin, or go on, where there is something to build."""
        name = self.name
        if name is None or (self._folder / name / _COMPLETE).exists():
            return
        self._make_place(name)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                ["nice", "-n", "19", *command, str(self._folder / name)],  # noqa: S607
                env={**os.environ, CACHE: str(self._folder / name / _CACHE), "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _make_place(self, name: str) -> None:
        """Lend this folder from now on, and remove those of other machines and versions."""
        (self._folder / name).mkdir(parents=True, exist_ok=True)
        link = self._folder / f"{_READY}.new"
        link.unlink(missing_ok=True)
        link.symlink_to(name)
        link.replace(self._folder / _READY)
        for old in self._folder.iterdir():
            if old.name not in (name, _READY):
                shutil.rmtree(old, ignore_errors=True)

    def look(self) -> None:
        """Note the end of it: what was built to its end is not begun again."""
        if self._process is None or (code := self._process.poll()) is None:
            return
        self._process, name = None, self.name
        if code == 0 and name is not None:
            (self._folder / name / _COMPLETE).touch()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
