"""Watching a running command: its output, its limits, signs of life, and its end with all descendants."""

from __future__ import annotations

import os
import resource
import select
import selectors
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from easel.clock import Clock
from easel.declare.job import Notebook
from easel.records.attempt import EndReason
from easel.records.job import Usage
from easel.run.cells import CellReader
from easel.run.cgroup import Cgroup
from easel.run.command_end import CommandEnd
from easel.run.entries import MetricPoints, UsageSoFar
from easel.run.exec_socket import ExecSocket
from easel.run.failure import StopSignal
from easel.run.idle import IdleWatch
from easel.run.journal import Journal
from easel.run.launch import Folders, card_memory_mb, gpu_use, gpus_busy, session_variables
from easel.run.log_writer import FlushPace, LogWriter, forms_of
from easel.run.order import Order
from easel.run.sample import GpuCurve, LoadCurve, Meter
from easel.run.session_kernels import kernel_is_busy
from easel.run.tree import descendants, kill_descendants, reap, signal_all

SAMPLE_S = 0.5
GPU_SLACK = 1.1
"""A job that takes more than so many times its share of a GPU's memory is ended."""
BEAT_S = 5.0
DISK_S = 2.0
SAME_SIGNAL_S = 1.0
"""Processes that are sent SIGTERM together may hear of it so far apart."""
_READ = 1 << 20
_LAST_SAID = 1000


@dataclass(frozen=True, slots=True)
class WatchedAttempt:
    """What the watch must know of the attempt whose command runs."""

    order: Order
    folders: Folders
    gpus: Sequence[int]
    cgroup: Cgroup
    sandboxed: bool
    clock: Clock
    journal: Journal
    disk_mb: Callable[[], float]


class CommandWatch:
    """The loop beside a running command: output, limits, heartbeats, and its end with all descendants."""

    def __init__(
        self, attempt: WatchedAttempt, process: subprocess.Popen[bytes], log: LogWriter, stop: StopSignal
    ) -> None:
        self.attempt, self.process, self.log, self.stop = attempt, process, log, stop
        self.meter = Meter()
        self.load = LoadCurve()
        held = attempt.order.resources.gpus
        self.gpu_load = GpuCurve(held) if held and attempt.gpus else None
        self.started = attempt.clock.monotonic()
        self.stopped_for: tuple[EndReason, str] | None = None
        self.exit_code = 0
        self._last_said = b""
        self.usage = Usage()
        self._kill_at: float | None = None
        self._own_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self.exec_socket: ExecSocket | None = None
        self.idle = (
            IdleWatch(attempt.order.idle_s, self.started) if attempt.order.idle_s is not None else None
        )
        notebook = isinstance(attempt.order.run, Notebook)
        hidden = forms_of(attempt.order.secrets.values())
        self.cells = CellReader(attempt.folders.work, hidden) if notebook else None
        self._due = {"sample": 0.0, "beat": self.started + BEAT_S, "disk": self.started + DISK_S}
        self._flushes = FlushPace()

    def until_the_end(self) -> None:
        selector = selectors.DefaultSelector()
        for stream, pipe in (("out", self.process.stdout), ("err", self.process.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, stream)
        selector.register(self.stop.read_fd, selectors.EVENT_READ, "stop")
        end = os.pidfd_open(self.process.pid)
        selector.register(end, selectors.EVENT_READ, "end")
        over = False
        while not over:
            for key, _ in selector.select(self._patience()):
                if key.data == "end":
                    over = True
                elif key.data == "stop":
                    os.read(self.stop.read_fd, 64)
                    self._stop(EndReason.STOPPED, "stopped")
                elif not self._read(key.fd, key.data):
                    selector.unregister(key.fileobj)
            self._enforce_limits()
        self._reap()
        if self.gpu_load is not None and (points := self.gpu_load.points()):
            self.attempt.journal.append(MetricPoints(points))
        self._note_shared_signal()
        self._end_descendants()
        for key in list(selector.get_map().values()):
            if key.data in ("out", "err"):
                while self._read(key.fd, key.data, drain=True):
                    pass
        selector.close()
        os.close(end)
        self.read_cells()
        self.log.close()

    def _patience(self) -> float:
        now = self.attempt.clock.monotonic()
        dues = [*self._due.values(), self._flushes.due or now + 60.0]
        if self.attempt.order.time_limit_s is not None and self.stopped_for is None:
            dues.append(self.started + self.attempt.order.time_limit_s)
        if self._kill_at is not None:
            dues.append(self._kill_at)
        return max(0.0, min(dues) - now)

    def _read(self, fd: int, stream: str, drain: bool = False) -> bool:
        """One read; False at the end of the stream (or, while draining, when nothing more is there)."""
        try:
            data = os.read(fd, _READ)
        except BlockingIOError:
            return not drain
        if not data:
            return False
        if stream == "err":
            self._last_said = (self._last_said + data)[-_LAST_SAID:]
        self.log.feed(stream, data)
        return True

    def end(self, sandbox_status: str | None) -> CommandEnd:
        """Returns what was seen of the command, once it has ended."""
        return CommandEnd(
            self.exit_code,
            self.usage,
            self.stopped_for,
            self.exit_code != 0 and self.attempt.cgroup.out_of_memory(),
            self.attempt.order.resources.memory_mb,
            sandbox_status,
            self.last_line,
            None if self.cells is None else self.cells.said,
        )

    @property
    def last_line(self) -> str:
        """The last line on standard error, however many writes it came in (bubblewrap needs several)."""
        lines = self._last_said.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def _enforce_limits(self) -> None:
        now, order = self.attempt.clock.monotonic(), self.attempt.order
        if self._flushes.is_time(now, self.log.waiting):
            self.log.flush()
        if now >= self._due["sample"]:
            self.meter.sample(descendants(os.getpid()), bool(order.resources.gpus))
            # Quick at first, so that short jobs are seen; then at leisure.
            self._due["sample"] = now + min(SAMPLE_S, max(0.02, (now - self.started) / 4))
            if not self.attempt.cgroup.hard and self.meter.now_mb > order.resources.memory_mb:
                reason = f"the memory limit of {order.resources.memory_mb} MB was reached"
                self._stop(EndReason.MEMORY_LIMIT, reason, at_once=True)
            limit_mb = order.resources.gpus * card_memory_mb(self.attempt.gpus) if self._shares_gpu else 0.0
            if limit_mb and self.meter.now_gpu_mb > GPU_SLACK * limit_mb:
                reason = (
                    f"its share of the GPU is {limit_mb:.0f} MB of memory and it took {self.meter.now_gpu_mb:.0f} MB: "
                    "ask for a larger share, or limit it (EASEL_GPU_SHARE)"
                )
                self._stop(EndReason.MEMORY_LIMIT, reason, at_once=True)
            if self.gpu_load is not None and now - self.started >= self.gpu_load.due:
                self.gpu_load.sample(now - self.started, gpus_busy(self.attempt.gpus))
            if now - self.started >= self.load.due:
                points = self.load.points(now - self.started, self.meter)
                points += self.gpu_load.points() if self.gpu_load is not None else []
                self.attempt.journal.append(MetricPoints(points))
            self.read_cells()
            self._watch_idleness(now)
        if now >= self._due["beat"]:
            self.attempt.journal.append(UsageSoFar(self.meter.usage(now - self.started)))
            self._due["beat"] = now + BEAT_S
        if now >= self._due["disk"]:
            self._due["disk"] = now + DISK_S
            if self.attempt.disk_mb() > order.disk_mb:
                reason = f"the disk limit of {order.disk_mb} MB was reached"
                self._stop(EndReason.DISK_LIMIT, reason, at_once=True)
        if order.time_limit_s is not None and now - self.started >= order.time_limit_s:
            self._stop(EndReason.TIME_LIMIT, f"the time limit of {order.time_limit_s:g} s was reached")
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = now + 0.2
            self._kill()

    @property
    def _shares_gpu(self) -> bool:
        return 0.0 < self.attempt.order.resources.gpus < 1.0

    def _watch_idleness(self, now: float) -> None:
        """A session that nobody uses is warned, then saved and ended."""
        if self.idle is None or self.stopped_for is not None:
            return
        touched = self.exec_socket.touched if self.exec_socket is not None else now
        word = self.idle.look(now, touched, self.meter.cpu_seconds, self._session_use)
        if word is not None:
            self.log.feed("platform", f"[easel] {word.text}\n".encode())
            if word.over:
                self._stop(EndReason.IDLE, word.text)

    def _session_use(self) -> float:
        """How busy a session's GPUs are; all of it while one of its kernels runs a cell."""
        port, inside = self.attempt.order.port, self.exec_socket
        if port is not None and inside is not None:
            base = session_variables(self.attempt.order.job_id, port)["EASEL_BASE_URL"]
            if kernel_is_busy(partial(inside.connect, port), base):
                return 1.0
        return gpu_use(self.attempt.gpus)

    def read_cells(self) -> None:
        """What a notebook's cells left since the last look; nothing where it is none."""
        while self.cells is not None and (entries := self.cells.more()):
            self.attempt.journal.append(*entries)

    def _stop(self, end: EndReason, reason: str, at_once: bool = False) -> None:
        """Ask the command to end; after the grace it is made to."""
        if self.stopped_for is not None:
            return
        self.stopped_for = (end, reason)
        # Not bubblewrap's own process: with it the whole sandbox would go at once, without the grace.
        spared = {self.process.pid} if self.attempt.sandboxed else set()
        signal_all(set(descendants(os.getpid())) - spared, signal.SIGTERM)
        grace = 0.0 if at_once else self.attempt.order.grace_s
        self._kill_at = self.attempt.clock.monotonic() + grace

    def _kill(self) -> None:
        self.attempt.cgroup.kill()
        kill_descendants(os.getpid())

    def _reap(self) -> None:
        _, status, used = os.wait4(self.process.pid, 0)
        self.exit_code = os.waitstatus_to_exitcode(status)
        if self.attempt.sandboxed and self.exit_code > 128 and self.exit_code - 128 in list(signal.Signals):
            self.exit_code = 128 - self.exit_code  # bubblewrap reports a signal as a shell does
        self.process.returncode = self.exit_code
        peak = used.ru_maxrss / 1024
        # Between fork and exec the child is a copy of us, and the kernel remembers that peak too.
        self.usage = self.meter.usage(
            self.attempt.clock.monotonic() - self.started,
            max(used.ru_utime + used.ru_stime, self.attempt.cgroup.cpu_seconds()),
            peak if peak > self._own_mb * 1.05 else 0.0,
        )

    def _note_shared_signal(self) -> None:
        """Counts an end by SIGTERM as a stop when this process is told to stop in the same moment.

        Slurm ends all processes of a batch job at once, in any order: a command that hears of it first did not fail.
        """
        if self.stopped_for is not None:
            return
        if self.exit_code == -signal.SIGTERM and not self.stop.asked:
            select.select([self.stop.read_fd], [], [], SAME_SIGNAL_S)
        if self.stop.asked:
            self.stopped_for = (EndReason.STOPPED, "stopped")

    def _end_descendants(self) -> None:
        """Kills what forked away and is left; the job is over for it too."""
        self.attempt.cgroup.kill()
        while not kill_descendants(os.getpid()) or self.attempt.cgroup.members():
            reap()
            self.attempt.cgroup.kill()
            self.attempt.clock.sleep(0.005)
        reap()
