"""The agent: one small process beside each command.

It fetches, runs, watches, keeps the output, and writes all of it into the attempt's journal. It talks to
nobody, so nobody's absence can disturb it.
"""

from __future__ import annotations

import contextlib
import lzma
import os
import resource
import selectors
import signal
import subprocess
import sys
import threading
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from easel import traces
from easel.clock import Clock
from easel.declare.job import Notebook
from easel.errors import EaselError, InvalidInput
from easel.records.attempt import EndReason
from easel.records.job import JobState, Usage
from easel.run.cells import CellReader
from easel.run.cgroup import Cgroup
from easel.run.confinement import Limits
from easel.run.depot import Depot, outputs
from easel.run.entries import (
    AttemptDone,
    AttemptEnded,
    EntryBody,
    MetricPoints,
    ResultTold,
    StateReached,
    UsageSoFar,
)
from easel.run.environments import (
    BuiltEnvironment,
    Environments,
    NoEnvironment,
    PackageIndex,
    environments_of,
)
from easel.run.exec_socket import ExecSocket, Inside, exec_socket_path
from easel.run.idle import IdleWatch
from easel.run.images import Image, NoImage, images_of
from easel.run.interpreters import ForbiddenInterpreter
from easel.run.journal import Journal, born
from easel.run.launch import Folders, Launch, card_memory_mb, checkpoint_folder, prepare
from easel.run.log_writer import LogWriter, forms_of
from easel.run.loglines import TagLine
from easel.run.order import MB, Order
from easel.run.requirements import read_requirements
from easel.run.result import read_result
from easel.run.sample import LoadCurve, Meter, disk_mb, gpu_use, tasks_of
from easel.run.sandbox import UserProgram, start
from easel.run.slice_files import keep_checkpoint, lay_out_checkpoint
from easel.run.tree import become_subreaper, descendants, kill_descendants, reap, signal_all

FLUSH_S = 0.2
SAMPLE_S = 0.5
GPU_SLACK = 1.1
"""A job that takes more than so many times its share of a GPU's memory is ended."""
BEAT_S = 5.0
DISK_S = 2.0
_READ = 1 << 20
_LAST_SAID = 1000
_BAD_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    OSError,
)
"""What the standard library raises at a broken archive."""


class Failure(Exception):
    """The attempt ends here, for this reason. `final` when trying again cannot help."""

    def __init__(
        self,
        end: EndReason,
        reason: str,
        exit_code: int | None = None,
        final: bool = False,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(reason)
        self.end, self.reason, self.exit_code = end, reason, exit_code
        self.final, self.usage = final, usage


@dataclass(slots=True)
class Agent:
    order: Order
    folders: Folders
    gpus: Sequence[int]
    cgroup: Cgroup
    depot: Depot
    bwrap: str | None
    home: Path
    clock: Clock
    journal: Journal
    interpreters: Sequence[Path] = ()
    """Those that a job may name."""

    def live(self) -> None:
        """Lives the whole attempt; whatever goes wrong becomes the journal's last entry."""
        order = self.order
        with traces.timed(traces.AGENT, "easel-agent", order.job_id, order.attempt, self.clock) as span:
            self._live(span)

    def _live(self, span: traces.Timed) -> None:
        stop = _StopSignal()
        become_subreaper()
        self.journal.append(born(os.getpid()))
        self.journal.keep_ballast()
        log = LogWriter(self.folders.log, self.journal, self.order.log, self.order.secrets.values())
        usage = Usage()
        try:
            span.step("download")
            self.journal.append(StateReached(JobState.DOWNLOADING))
            with self._beating(usage):
                self._download()
                image = self._image()
                built = self._environment(log, stop)
            span.step("run")
            with contextlib.nullcontext() if built is None else self._environments().in_use(built.key):
                usage = self._run(log, stop, image, built)
            stop.check()
            span.step("upload")
            self.journal.append(StateReached(JobState.UPLOADING, usage))
            with self._beating(usage):
                output = self._upload()
            stop.check()
            self.journal.append(*output, AttemptDone(usage))
        except Failure as failure:
            span.error = failure.reason
            log.close()
            self.journal.append(_ended(failure, failure.usage or usage))
        except (EaselError, OSError) as error:
            span.error = str(error)
            log.close()
            self.journal.append(_ended(Failure(EndReason.FILES, f"{type(error).__name__}: {error}"), usage))

    @contextlib.contextmanager
    def _beating(self, usage: Usage) -> Iterator[None]:
        """Show signs of life while files are moved, which may take long."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(BEAT_S):
                self.journal.append(UsageSoFar(usage))

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    # Before. --------------------------------------------------------------------------------------------

    def _download(self) -> None:
        order, folders = self.order, self.folders
        self.depot.fetch(order.code, folders.work, order.key, read_only=False)
        _make_executable(folders.work, order.executable)
        if len(order.code) == 1 and (name := order.code[0].path).endswith(".zip"):
            unzip(folders.work / name.lstrip("/"), folders.work, order.disk_mb * MB)
        place = folders.input if self.bwrap else folders.work / "input"
        self.depot.fetch(order.input, place, order.key, read_only=self.bwrap is not None)
        folders.make(order)
        if order.slice:
            lay_out_checkpoint(self.depot, order, checkpoint_folder(self.home, order.job_id))

    def _image(self) -> Image | None:
        if self.order.image is None:
            return None
        try:
            return images_of(self.home, self.bwrap).get(self.order.image)
        except NoImage as error:
            raise Failure(EndReason.CANNOT_START, str(error), final=True) from error

    def _environments(self) -> Environments:
        order = self.order
        wheels = Path(order.wheels) if order.wheels else None
        return environments_of(self.home, self.bwrap, PackageIndex(order.index_url, wheels))

    def _environment(self, log: LogWriter, stop: _StopSignal) -> BuiltEnvironment | None:
        """What the code's requirements name, built where it is not here; the installer's last lines go to the log."""
        if self.order.requirements is None:
            return None
        try:
            wanted = read_requirements(self.folders.work, self.order.requirements)
            if isinstance(self.order.run, Notebook):
                wanted = wanted.plus("nbclient", "ipykernel")
            built = self._environments().get(self.order.project_id, wanted, lambda: stop.asked)
        except (NoEnvironment, InvalidInput) as error:
            stop.check()
            for line in error.log if isinstance(error, NoEnvironment) else ():
                log.feed("platform", f"{line}\n".encode())
            raise Failure(EndReason.CANNOT_START, error.message, final=True) from error
        how = f"built in {built.seconds:.1f} s" if built.seconds else "known"
        log.feed(
            "platform", f"environment {built.key} ({how}): {', '.join(built.locked) or 'empty'}\n".encode()
        )
        log.tell(TagLine("job", "environment", built.key))
        return built

    def disk_mb(self) -> float:
        """What the job holds of the disk, its checkpoint included."""
        places = [self.folders.work, self.folders.tmp]
        if self.order.preemptible or self.order.slice:
            places.append(checkpoint_folder(self.home, self.order.job_id))
        return sum(disk_mb(place) for place in places)

    # During. --------------------------------------------------------------------------------------------

    def _run(
        self, log: LogWriter, stop: _StopSignal, image: Image | None, built: BuiltEnvironment | None
    ) -> Usage:
        stop.check()
        status_read, status_write = os.pipe()
        try:
            launch = prepare(
                self.order,
                self.folders,
                self.gpus,
                self.bwrap,
                self.home,
                image,
                self.interpreters,
                built.folder if built else None,
            )
            # Said before the program starts: its first line must not come before the word that it runs.
            self.journal.append(StateReached(JobState.RUNNING))
            process = start(
                self.bwrap,
                UserProgram(self.order.key, launch.argv, launch.environment, launch.walls, self._limits()),
                status=status_write,
                enter=self.cgroup.enter,
            )
        except ForbiddenInterpreter as error:
            raise Failure(EndReason.REFUSED, error.message, final=True) from error
        except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
            reason = f"the command cannot be started: {error}"
            raise Failure(EndReason.CANNOT_START, reason, 127, final=True) from error
        finally:
            os.close(status_write)
        watch = _Watch(self, process, log, stop)
        with self._exec_socket(process, launch) as listening:
            watch.exec_socket = listening
            watch.until_the_end()
        with os.fdopen(status_read) as file:
            status = file.read()
        self._judge(watch, status)
        return watch.usage

    @contextlib.contextmanager
    def _exec_socket(self, process: subprocess.Popen[bytes], launch: Launch) -> Iterator[ExecSocket | None]:
        """Lets the owner come in while the command runs. A job whose socket cannot be made runs all the same."""
        root = self.folders.root
        try:
            inside = Inside(
                self.order.key,
                launch.environment,
                self._limits(),
                self.cgroup.enter,
                self.folders.work,
                self.bwrap is not None,
                process.pid,
            )
            listening = ExecSocket(exec_socket_path(root.parent, root.name), inside, self.clock)
        except OSError as error:
            sys.stderr.write(
                f"easel agent: {self.order.key} has no socket for shells and sessions: {error}\n"
            )
            yield None
            return
        try:
            yield listening
        finally:
            listening.close()

    def _limits(self) -> Limits:
        """What the order allows; where control groups limit, the rest is theirs."""
        asked, size = self.order.resources, self.order.disk_mb * MB
        if self.cgroup.hard:
            return Limits(file_bytes=size, processes=self.order.processes if os.geteuid() == 0 else None)
        cores = sorted(os.sched_getaffinity(0))
        wanted = min(max(1, int(asked.vcpu + 0.5)), len(cores))
        first = hash(self.order.key) % len(cores)
        return Limits(
            processes=self.order.processes + (0 if os.geteuid() == 0 else tasks_of(os.getuid())),
            file_bytes=size,
            data_bytes=(asked.memory_mb + 64) * MB,
            cores=tuple(cores[(first + i) % len(cores)] for i in range(wanted)),
        )

    def _judge(self, watch: _Watch, status: str) -> None:
        """What the end of the process means."""
        if watch.stopped_for is not None and watch.stopped_for[0] is EndReason.IDLE:
            return  # a session that did nothing is saved
        if watch.stopped_for is not None:
            raise Failure(*watch.stopped_for, watch.exit_code, usage=watch.usage)
        code = watch.exit_code
        memory = f"the memory limit of {self.order.resources.memory_mb} MB was reached"
        if code != 0 and self.cgroup.out_of_memory():
            raise Failure(EndReason.MEMORY_LIMIT, memory, code, usage=watch.usage)
        # One that was killed from outside did not fail: it has nothing to say.
        if self.bwrap and code > 0 and '"exit-code"' not in status:
            said = watch.last_line.removeprefix("bwrap: ")
            missing = "execvp" in said
            reason = f"the command cannot be started: {said}" if missing else f"the sandbox failed: {said}"
            raise Failure(
                EndReason.CANNOT_START, reason, 127 if missing else code, final=missing, usage=watch.usage
            )
        if code > 0 and watch.cells is not None and watch.cells.said is not None:
            raise Failure(EndReason.EXIT_CODE, watch.cells.said, code, usage=watch.usage)
        if code != 0:
            name = f" ({signal.Signals(-code).name})" if code < 0 and -code in list(signal.Signals) else ""
            raise Failure(EndReason.EXIT_CODE, f"exit code {code}{name}", code, usage=watch.usage)

    # After. ---------------------------------------------------------------------------------------------

    def _upload(self) -> list[EntryBody]:
        folder = self.folders.work / self.order.output_folder
        if folder.resolve() != self.folders.work.resolve() / self.order.output_folder:
            reason = "the output folder is a link that leads elsewhere: nothing was stored"
            raise Failure(EndReason.FILES, reason, final=True)
        if self.order.slice:
            keep_checkpoint(checkpoint_folder(self.home, self.order.job_id), folder / "checkpoint")
        # By what they say they hold: a file with holes takes no disk, but reading it takes as long as if it did.
        size = sum(path.stat().st_size for _, path in outputs(folder))
        if size > self.order.disk_mb * MB:
            reason = f"the output has {size} bytes, more than the disk limit of {self.order.disk_mb} MB"
            raise Failure(EndReason.DISK_LIMIT, reason, final=True)
        entries: list[EntryBody] = [self.depot.keep(folder, self.order.key)]
        result = read_result(self.folders.work)
        return entries if result is None else [*entries, ResultTold(result)]


class _StopSignal:
    """SIGTERM to the agent means: end the job, then yourself."""

    def __init__(self) -> None:
        self.asked = False
        self.read_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGTERM, self._on)

    def _on(self, *_: object) -> None:
        self.asked = True
        with contextlib.suppress(OSError):
            os.write(self._write_fd, b"!")

    def check(self) -> None:
        if self.asked:
            raise Failure(EndReason.STOPPED, "stopped")


class _Watch:
    """The loop beside a running command: output, limits, heartbeats, and its end with all descendants."""

    def __init__(
        self, agent: Agent, process: subprocess.Popen[bytes], log: LogWriter, stop: _StopSignal
    ) -> None:
        self.agent, self.process, self.log, self.stop = agent, process, log, stop
        self.meter = Meter()
        self.load = LoadCurve()
        self.started = agent.clock.monotonic()
        self.stopped_for: tuple[EndReason, str] | None = None
        self.exit_code = 0
        self._last_said = b""
        self.usage = Usage()
        self._kill_at: float | None = None
        self._own_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self.exec_socket: ExecSocket | None = None
        self.idle = IdleWatch(agent.order.idle_s, self.started) if agent.order.idle_s is not None else None
        notebook = isinstance(agent.order.run, Notebook)
        hidden = forms_of(agent.order.secrets.values())
        self.cells = CellReader(agent.folders.work, hidden) if notebook else None
        self._due = {"sample": 0.0, "beat": self.started + BEAT_S, "disk": self.started + DISK_S}

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
        now = self.agent.clock.monotonic()
        dues = [*self._due.values(), now + (FLUSH_S if self.log.waiting else 60.0)]
        if self.agent.order.time_limit_s is not None and self.stopped_for is None:
            dues.append(self.started + self.agent.order.time_limit_s)
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

    @property
    def last_line(self) -> str:
        """The last line on standard error, however many writes it came in (bubblewrap needs several)."""
        lines = self._last_said.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def _enforce_limits(self) -> None:
        now, order = self.agent.clock.monotonic(), self.agent.order
        if self.log.waiting and now >= self._due.setdefault("flush", now + FLUSH_S):
            self.log.flush()
        if not self.log.waiting:
            self._due.pop("flush", None)
        if now >= self._due["sample"]:
            self.meter.sample(descendants(os.getpid()), bool(order.resources.gpus))
            # Quick at first, so that short jobs are seen; then at leisure.
            self._due["sample"] = now + min(SAMPLE_S, max(0.02, (now - self.started) / 4))
            if not self.agent.cgroup.hard and self.meter.now_mb > order.resources.memory_mb:
                reason = f"the memory limit of {order.resources.memory_mb} MB was reached"
                self._stop(EndReason.MEMORY_LIMIT, reason, at_once=True)
            limit_mb = order.resources.gpus * card_memory_mb(self.agent.gpus) if self._shares_gpu else 0.0
            if limit_mb and self.meter.now_gpu_mb > GPU_SLACK * limit_mb:
                reason = (
                    f"its share of the GPU is {limit_mb:.0f} MB of memory and it took {self.meter.now_gpu_mb:.0f} MB: "
                    "ask for a larger share, or limit it (EASEL_GPU_SHARE)"
                )
                self._stop(EndReason.MEMORY_LIMIT, reason, at_once=True)
            if now - self.started >= self.load.due:
                points = self.load.points(now - self.started, self.meter)
                self.agent.journal.append(MetricPoints(points))
            self.read_cells()
            self._watch_idleness(now)
        if now >= self._due["beat"]:
            self.agent.journal.append(UsageSoFar(self.meter.usage(now - self.started)))
            self._due["beat"] = now + BEAT_S
        if now >= self._due["disk"]:
            self._due["disk"] = now + DISK_S
            if self.agent.disk_mb() > order.disk_mb:
                reason = f"the disk limit of {order.disk_mb} MB was reached"
                self._stop(EndReason.DISK_LIMIT, reason, at_once=True)
        if order.time_limit_s is not None and now - self.started >= order.time_limit_s:
            self._stop(EndReason.TIME_LIMIT, f"the time limit of {order.time_limit_s:g} s was reached")
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = now + 0.2
            self._kill()

    @property
    def _shares_gpu(self) -> bool:
        return 0.0 < self.agent.order.resources.gpus < 1.0

    def _watch_idleness(self, now: float) -> None:
        """A session that nobody uses is warned, then saved and ended."""
        if self.idle is None or self.stopped_for is not None:
            return
        touched = self.exec_socket.touched if self.exec_socket is not None else now
        gpus = bool(self.agent.order.resources.gpus)
        word = self.idle.look(now, touched, self.meter.cpu_seconds, gpu_use if gpus else lambda: 0.0)
        if word is not None:
            self.log.feed("platform", f"[easel] {word.text}\n".encode())
            if word.over:
                self._stop(EndReason.IDLE, word.text)

    def read_cells(self) -> None:
        """What a notebook's cells left since the last look; nothing where it is none."""
        while self.cells is not None and (entries := self.cells.more()):
            self.agent.journal.append(*entries)

    def _stop(self, end: EndReason, reason: str, at_once: bool = False) -> None:
        """Ask the command to end; after the grace it is made to."""
        if self.stopped_for is not None:
            return
        self.stopped_for = (end, reason)
        # Not bubblewrap's own process: with it the whole sandbox would go at once, without the grace.
        spared = {self.process.pid} if self.agent.bwrap else set()
        signal_all(set(descendants(os.getpid())) - spared, signal.SIGTERM)
        grace = 0.0 if at_once else self.agent.order.grace_s
        self._kill_at = self.agent.clock.monotonic() + grace

    def _kill(self) -> None:
        self.agent.cgroup.kill()
        kill_descendants(os.getpid())

    def _reap(self) -> None:
        _, status, used = os.wait4(self.process.pid, 0)
        self.exit_code = os.waitstatus_to_exitcode(status)
        if self.agent.bwrap and self.exit_code > 128 and self.exit_code - 128 in list(signal.Signals):
            self.exit_code = 128 - self.exit_code  # bubblewrap reports a signal as a shell does
        self.process.returncode = self.exit_code
        peak = used.ru_maxrss / 1024
        # Between fork and exec the child is a copy of us, and the kernel remembers that peak too.
        self.usage = self.meter.usage(
            self.agent.clock.monotonic() - self.started,
            max(used.ru_utime + used.ru_stime, self.agent.cgroup.cpu_seconds()),
            peak if peak > self._own_mb * 1.05 else 0.0,
        )

    def _end_descendants(self) -> None:
        """Kills what forked away and is left; the job is over for it too."""
        self.agent.cgroup.kill()
        while not kill_descendants(os.getpid()) or self.agent.cgroup.members():
            reap()
            self.agent.cgroup.kill()
            self.agent.clock.sleep(0.005)
        reap()


def _ended(failure: Failure, usage: Usage) -> AttemptEnded:
    return AttemptEnded(failure.end, failure.reason, failure.exit_code, failure.final, usage)


def _make_executable(folder: Path, names: Sequence[str]) -> None:
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
    except _BAD_ZIP as error:
        reason = f"the code {archive.name} is not a usable zip file: {error}"
        raise Failure(EndReason.FILES, reason, final=True) from error
