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
CACHE, KERNELS, NONE_KEPT = "TRITON_CACHE_DIR", "EASEL_KERNELS", "none kept"
_READY = "ready"


def folder(home: Path) -> Path:
    """Where a machine keeps its kernels."""
    return home / "kernels"


def lend(home: Path, own: Path, environment: MutableMapping[str, str]) -> None:
    """Lets a trial build kernels in its `own` folder, where all that the machine keeps are to be found already.

    They are links to files that it can read only. Where none are kept, the trial is told.
    """
    environment[CACHE] = str(own)
    kept = folder(home) / _READY
    if not kept.is_dir():
        environment[KERNELS] = NONE_KEPT
        return
    environment.pop(KERNELS, None)
    own.mkdir(parents=True, exist_ok=True)
    for one in kept.resolve().iterdir():
        with contextlib.suppress(FileExistsError):
            (own / one.name).symlink_to(one)


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
        """Begin, where there is something to build."""
        name = self.name
        ready = self._folder / _READY
        if name is None or (ready.is_dir() and ready.resolve().name == name):
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        for old in self._folder.iterdir():
            old.unlink() if old.is_symlink() else shutil.rmtree(old, ignore_errors=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                ["nice", "-n", "19", *command],  # noqa: S607
                env={**os.environ, CACHE: str(self._folder / name), "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def look(self) -> None:
        """Lend what was built, once all of it is."""
        if self._process is None or (code := self._process.poll()) is None:
            return
        self._process, name = None, self.name
        if code == 0 and name is not None and (self._folder / name).is_dir():
            link = self._folder / "ready.new"
            link.unlink(missing_ok=True)
            link.symlink_to(name)
            link.replace(self._folder / _READY)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
