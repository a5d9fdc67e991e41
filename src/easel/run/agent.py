"""The agent: one small process beside each command.

It fetches, runs, watches, keeps the output, and writes all of it into the attempt's journal. It talks to
nobody, so nobody's absence can disturb it.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from easel import traces
from easel.clock import Clock
from easel.declare.job import Notebook
from easel.errors import EaselError, InvalidInput
from easel.records.attempt import EndReason
from easel.records.job import JobState, Usage
from easel.run.cgroup import Cgroup
from easel.run.code_folder import make_executable, unzip
from easel.run.command_end import failure_of
from easel.run.command_watch import CommandWatch, WatchedAttempt
from easel.run.conda import CondaFile
from easel.run.confinement import Limits
from easel.run.depot import Depot, outputs
from easel.run.entries import (
    AttemptDone,
    AttemptEnded,
    EntryBody,
    EnvironmentLocked,
    ResultTold,
    StateReached,
    UsageSoFar,
)
from easel.run.environments import BuiltEnvironment, Environments, Wanted, environments_of, lock_key
from easel.run.exec_socket import ExecSocket, Inside, exec_socket_path
from easel.run.failure import Failure, StopSignal
from easel.run.images import Image, NoImage, images_of
from easel.run.installing import NoEnvironment, PackageIndex
from easel.run.interpreters import ForbiddenInterpreter
from easel.run.journal import Journal, born
from easel.run.launch import Folders, Launch, checkpoint_folder, prepare
from easel.run.log_writer import LogWriter
from easel.run.loglines import TagLine
from easel.run.order import MB, Order
from easel.run.python_versions import find_python, is_version
from easel.run.requirements import PackageList, read_requirements
from easel.run.result import read_result
from easel.run.sample import disk_mb, tasks_of
from easel.run.sandbox import UserProgram, start
from easel.run.slice_files import keep_checkpoint, lay_out_checkpoint
from easel.run.tree import become_subreaper

BEAT_S = 5.0


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
        stop = StopSignal()
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
        make_executable(folders.work, order.executable)
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

    def _environment(self, log: LogWriter, stop: StopSignal) -> BuiltEnvironment | None:
        """What the code's requirements name, in the Python version that is asked for, built where it is not here.

        What the installer says goes to the log.
        """
        order, other = self.order, is_version(self.order.python)
        if order.requirements is None and not other:
            return None
        try:
            python = find_python(order.python or "", self.interpreters) if other else None
            wanted: Wanted = PackageList(())
            if order.requirements is not None:
                wanted = read_requirements(self.folders.work, order.requirements)
            if isinstance(wanted, CondaFile) and other:
                raise InvalidInput(f"{order.requirements} names its own Python: leave `--python` out")
            if isinstance(order.run, Notebook) and isinstance(wanted, PackageList):
                wanted = wanted.plus("nbclient", "ipykernel")
            lock = lock_key(wanted, python) if isinstance(wanted, PackageList) else ""

            def tell(line: str) -> None:
                log.feed("platform", f"{line}\n".encode())
                log.flush()

            built = self._environments().get(
                order.project_id,
                wanted,
                lambda: stop.asked,
                python,
                lock=order.locks.get(lock),
                tell=tell,
            )
        except (NoEnvironment, InvalidInput) as error:
            stop.check()
            raise Failure(EndReason.CANNOT_START, error.message, final=True) from error
        how = f"built in {built.seconds:.1f} s" if built.seconds else "known"
        log.feed(
            "platform", f"environment {built.key} ({how}): {', '.join(built.locked) or 'empty'}\n".encode()
        )
        log.tell(TagLine("job", "environment", built.key))
        if order.requirements_digest is not None:
            version = platform.python_version() if python is None else python.version
            asked = EnvironmentLocked(built.key, order.requirements_digest, lock, version, built.locked)
            self.journal.append(asked)
        return built

    def disk_mb(self) -> float:
        """What the job holds of the disk, its checkpoint included."""
        places = [self.folders.work, self.folders.tmp]
        if self.order.preemptible or self.order.slice:
            places.append(checkpoint_folder(self.home, self.order.job_id))
        return sum(disk_mb(place) for place in places)

    # During. --------------------------------------------------------------------------------------------

    def _run(
        self, log: LogWriter, stop: StopSignal, image: Image | None, built: BuiltEnvironment | None
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
                built,
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
        watch = CommandWatch(self._watched(), process, log, stop)
        with self._exec_socket(process, launch) as listening:
            watch.exec_socket = listening
            watch.until_the_end()
        with os.fdopen(status_read) as file:
            status = file.read()
        failure = failure_of(watch.end(status if self.bwrap else None))
        if failure is not None:
            raise failure
        return watch.usage

    def _watched(self) -> WatchedAttempt:
        return WatchedAttempt(
            self.order,
            self.folders,
            self.gpus,
            self.cgroup,
            self.bwrap is not None,
            self.clock,
            self.journal,
            self.disk_mb,
        )

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


def _ended(failure: Failure, usage: Usage) -> AttemptEnded:
    return AttemptEnded(failure.end, failure.reason, failure.exit_code, failure.final, usage)
