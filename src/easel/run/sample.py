"""How much a process tree uses: CPU time, resident memory, GPU memory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from easel.records.job import GPU_BUSY, GPU_IDLE, Usage
from easel.run.idle import BUSY_GPU

GPU_LOOK_S = 5.0
"""How often a job's GPUs are asked how busy they are."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Meter:
    """Watches one tree. CPU time of members that have ended is kept by their last sample."""

    cpu: dict[int, float] = field(default_factory=dict)
    peak_mb: float = 0.0
    now_mb: float = 0.0
    peak_gpu_mb: float = 0.0
    now_gpu_mb: float = 0.0

    def sample(self, pids: Iterable[int], gpus: bool = False) -> None:
        total = 0.0
        alive: set[int] = set()
        for pid in pids:
            try:
                process = psutil.Process(pid)
                with process.oneshot():
                    times = process.cpu_times()
                    total += process.memory_info().rss
            except psutil.Error:
                continue
            alive.add(pid)
            self.cpu[pid] = times.user + times.system
        self.now_mb = total / 2**20
        self.peak_mb = max(self.peak_mb, self.now_mb)
        if gpus:
            self.now_gpu_mb = gpu_memory_mb(alive)
            self.peak_gpu_mb = max(self.peak_gpu_mb, self.now_gpu_mb)

    @property
    def cpu_seconds(self) -> float:
        return sum(self.cpu.values())

    def usage(self, wall: float, cpu_seconds: float = 0.0, peak_mb: float = 0.0) -> Usage:
        return Usage(
            round(max(self.cpu_seconds, cpu_seconds), 4),
            round(max(self.peak_mb, peak_mb), 2),
            round(wall, 4),
            round(self.peak_gpu_mb, 1),
        )


@dataclass(slots=True)
class LoadCurve:
    """What a tree uses over time, as series of the job: vCPU and memory, by whole seconds since its start.

    Every second at first, then after each 200th of the time passed: a month of a job is some 2,000 points.
    """

    due: float = 1.0
    _seconds: float = 0.0
    _cpu: float = 0.0

    def points(self, seconds: float, meter: Meter) -> list[tuple[str, int, float | str]]:
        """`(name, step, value)` each, at `seconds` since the start; the vCPU are the mean since the last time."""
        span = seconds - self._seconds
        if span <= 0:
            return []
        cpu = max(0.0, meter.cpu_seconds - self._cpu) / span
        self._seconds, self._cpu = seconds, meter.cpu_seconds
        self.due = seconds + max(1.0, seconds / 200)
        step = round(seconds)
        return [("system/vcpu", step, round(cpu, 3)), ("system/memory_mb", step, round(meter.now_mb, 1))]


@dataclass(slots=True)
class GpuCurve:
    """How busy the GPUs of a job are, by samples that each stand for the time since the one before.

    As series of the job: the mean share of its GPUs' time in use, and the GPU-seconds so far in which a GPU was in use
    for less than 5 %. `held` is how many GPUs it has, or its share of one; a GPU that others share counts as used
    by all of them.
    """

    held: float
    due: float = 1.0
    idle_s: float = 0.0
    _seconds: float = 0.0
    _busy: list[float] = field(default_factory=list)
    _step: int = 0

    def sample(self, seconds: float, busy: Sequence[float]) -> None:
        """What the driver says at `seconds` since the start. Time of which it says nothing is not known to be idle."""
        span, self._seconds, self.due = seconds - self._seconds, seconds, seconds + GPU_LOOK_S
        if busy:
            self.idle_s += span * self.held * sum(one < BUSY_GPU for one in busy) / len(busy)
            self._busy.append(sum(busy) / len(busy))

    def points(self) -> list[tuple[str, int, float | str]]:
        """`(name, step, value)` each of what was sampled since the last time."""
        if not self._busy:
            return []
        mean = sum(self._busy) / len(self._busy)
        self._busy.clear()
        self._step = max(self._step + 1, round(self._seconds))
        return [(GPU_BUSY, self._step, round(mean, 3)), (GPU_IDLE, self._step, round(self.idle_s, 1))]


def tasks_of(user: int) -> int:
    """Threads of all processes of a user, which is what the kernel's limit of processes counts."""
    found = psutil.process_iter(["uids", "num_threads"])
    return sum(
        each.info["num_threads"] or 0
        for each in found
        if each.info["uids"] and each.info["uids"].real == user
    )


def resident_mb(pid: int) -> float:
    """Resident memory of one process; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 2**20
    except (OSError, IndexError):
        return 0.0


def gpu_memory_mb(pids: set[int]) -> float:
    """Memory that these processes hold on NVIDIA cards; 0 where there is none to ask."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0.0
    query = [program, "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=5, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return 0.0
    rows = (line.split(",") for line in answer.stdout.splitlines() if line.count(",") == 1)
    return sum(float(used) for pid, used in rows if int(pid) in pids and used.strip().isdigit())


def disk_mb(folder: Path) -> float:
    """Blocks that the files below `folder` take."""
    total = 0
    stack = [folder]
    while stack:
        try:
            for entry in stack.pop().iterdir():
                if entry.is_symlink():
                    continue
                if entry.is_dir():
                    stack.append(entry)
                else:
                    total += entry.stat().st_blocks
        except OSError:
            continue
    return total * 512 / 2**20
