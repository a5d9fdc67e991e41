"""From an order to the command that runs: variables, walls, working folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from easel.declare.job import Command
from easel.run.order import Order
from easel.run.sandbox import INSIDE, Walls, interpreters, wrap
from easel.run.tree import MARK

_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Folders:
    """One attempt's private place. `work` is the command's working folder; journal and log lie outside."""

    root: Path

    @property
    def journal(self) -> Path:
        return self.root.with_name(f"{self.root.name}.journal")

    @property
    def log(self) -> Path:
        return self.root.with_name(f"{self.root.name}.log")

    @property
    def ballast(self) -> Path:
        return self.journal.with_suffix(".ballast")

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def input(self) -> Path:
        return self.root / "input"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    def make(self, order: Order) -> None:
        for folder in (self.work, self.tmp, self.input, self.work / "input", self.work / order.output_folder):
            folder.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        """Everything. The folder is often not there: most trials need none, and making folders is slow."""
        for file in (self.journal, self.log, self.ballast):
            file.unlink(missing_ok=True)
        if self.root.exists():
            shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Launch:
    argv: Sequence[str]
    environment: dict[str, str]
    cwd: Path


def prepare(
    order: Order, folders: Folders, gpus: Sequence[int], bwrap: str | None, home: Path, fd: int
) -> Launch:
    """`home` is the platform's own folder, which a job must not see; `fd` gets bubblewrap's status."""
    shown, programs = interpreters(order.python)
    inside = INSIDE if bwrap else str(folders.work)
    environment = variables(order, gpus, inside, str(programs))
    environment |= {} if bwrap else {"TMPDIR": str(folders.tmp), "HOME": str(folders.tmp)}
    argv = _argv(order, folders)
    if bwrap is None:
        return Launch(argv, environment, folders.work)
    cards = tuple(Path(f"/dev/nvidia{i}") for i in gpus)
    shared = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
    walls = Walls(
        work=folders.work,
        tmp=folders.tmp,
        input=folders.input,
        interpreters=shown,
        hidden=(home,),
        devices=(*cards, *map(Path, shared)) if gpus else (),
        network=order.network,
        status_fd=fd,
    )
    return Launch(wrap(bwrap, walls, argv), environment, folders.work)


def variables(order: Order, gpus: Sequence[int], inside: str, programs: str) -> dict[str, str]:
    """All of the job's environment: nothing of the server's own leaks in."""
    threads = str(order.resources.threads)
    return {
        "PATH": f"{programs}:{_PATH}",
        "HOME": "/tmp",  # noqa: S108
        "TMPDIR": "/tmp",  # noqa: S108
        "LANG": "C.UTF-8",
        "USER": "job",
        **dict.fromkeys(_THREADS, threads),
        **order.variables,
        **order.secrets,
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)),
        "EASEL_JOB_ID": order.job_id,
        "EASEL_INPUT": f"{inside}/input",
        "EASEL_OUTPUT": f"{inside}/{order.output_folder}",
        "EASEL_VCPU": str(order.resources.vcpu),
        "EASEL_MEMORY_MB": str(order.resources.memory_mb),
        MARK: order.key,
    }


def _argv(order: Order, folders: Folders) -> Sequence[str]:
    if isinstance(order.run, Command):
        return order.run.argv
    (folders.work / ".easel-call.json").write_text(
        json.dumps({"target": order.run.target, "arguments": dict(order.run.arguments)})
    )
    return ("python", "-m", "easel.run.entry", ".easel-call.json")
