"""Running the platform's own functions in a warm process: no imports to pay, no agent beside it.

A trial is `module:function`, where the module lists the function in `__trials__`; it gets a TrialContext and
returns a JSON object, which becomes the job's result and, as `result.json`, part of its output.
"""

from __future__ import annotations

import errno
import hashlib
import importlib
import json
import math
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from easel.clock import Clock
from easel.declare.job import EntryPoint, Trial
from easel.errors import EaselError, InvalidInput
from easel.records.attempt import EndReason
from easel.records.job import JobState, StoredFile, Usage
from easel.run.depot import Depot
from easel.run.entries import AttemptDone, AttemptEnded, ResultTold, StateReached
from easel.run.journal import Journal, born
from easel.run.launch import Folders, card_memory_mb, cards, share_variables
from easel.run.log_writer import LogWriter
from easel.run.order import Order
from easel.run.slice_files import lay_out_checkpoint
from easel.run.trial_walls import Tell, apart, learn_imports, put_up


@dataclass(frozen=True, slots=True)
class TrialContext:
    """What a trial may use. Folders are made when they are first asked for: many trials need none."""

    arguments: Mapping[str, Any]
    folders: Folders
    keep: Path
    threads: int
    gpus: tuple[int, ...]
    input_key: str = ""
    """Equal for trials with the same files in their input."""

    @property
    def input(self) -> Path:
        """The files of the input set."""
        return _made(self.folders.input)

    @property
    def output(self) -> Path:
        """What is left here becomes the output set."""
        return _made(self.folders.root / "output")

    @property
    def checkpoint(self) -> Path:
        """Outlives the attempt: a repeated trial finds here what it left, and the next slice of one what the slice
        before left."""
        return _made(self.keep)

    def asked_to_give_way(self) -> bool:
        """Whether somebody with a better claim waits: stop at the next checkpoint and say how far it came."""
        return self.folders.give_way.exists()

    def was_killed(self) -> bool:
        """Whether a trial that shares its process was killed: whatever is left of it is for nobody."""
        return self.folders.leave.exists()

    @property
    def why_killed(self) -> tuple[EndReason, str, bool]:
        """Why it was, as its worker says."""
        end, _, reason = self.folders.leave.read_text().partition(" ")
        return EndReason(end), reason, False


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


TrialFunction = Callable[[TrialContext], Mapping[str, Any]]


def resolve(run: Trial | EntryPoint) -> TrialFunction:
    """The function that a trial names; only those that their module offers."""
    module_name, _, name = run.target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InvalidInput(f"there is no module {module_name}: {error}") from error
    if name not in getattr(module, "__trials__", ()):
        raise InvalidInput(f"{module_name} offers no trial {name!r}: it must list it in __trials__")
    function: TrialFunction = getattr(module, name)
    return function


class _Speech:
    """Standard output and error of a trial, as a text stream that feeds the log, or those of several trials."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, logs: Sequence[LogWriter], stream: str, lock: threading.Lock) -> None:
        self._logs, self._stream, self._lock = logs, stream, lock
        self._timer: threading.Timer | None = None

    def write(self, text: str) -> int:
        with self._lock:
            for log in self._logs:
                if not log.closed:  # one of several trials is over: what comes now is none of its
                    log.feed(self._stream, text.encode(errors="replace"))
            if self._timer is None and any(log.waiting for log in self._logs):
                # One thread at most, and only for trials that speak.
                self._timer = threading.Timer(0.2, self._late_flush)
                self._timer.daemon = True
                self._timer.start()
        return len(text)

    def _late_flush(self) -> None:
        with self._lock:
            self._timer = None
            for log in self._logs:
                log.flush()

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def end(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """One trial for this process: the order, its folder and the GPUs it may use."""

    order: Order
    folders: Folders
    checkpoint: Path
    gpus: tuple[int, ...]


def perform(task: Assignment, depot: Depot, clock: Clock, wake_fd: int, home: Path | None = None) -> Usage:
    """Run one trial; everything about it goes into its journal. With `home` it runs behind walls that hide it."""
    journal = Journal(task.folders.journal, clock, wake_fd)
    meter = OwnMeter(clock)
    context = begin(task, depot, journal, meter)
    if isinstance(context, Told):
        told = context
    elif home is None:
        told = _speak(task, context, clock, journal)
    else:
        told = _behind_walls(task, context, clock, journal, home)
    end(task, depot, journal, told)
    journal.close()
    learn_imports(told.imported)
    return told.usage


def begin(task: Assignment, depot: Depot, journal: Journal, meter: OwnMeter) -> TrialContext | Told:
    """Brings a trial's files; returns what it may use, or why there is nothing to run."""
    journal.append(born(os.getpid()), StateReached(JobState.DOWNLOADING), wake=False)
    try:
        context = _context(task, depot)
    except Exception as error:  # noqa: BLE001 - whatever keeps its files away is its end, not ours
        final = isinstance(error, InvalidInput)
        told = Told(failure=(_files_or_raised(error), f"{type(error).__name__}: {error}"[:2000], final))
        told.usage = meter.stop()
        return told
    # No wake: most trials are over before anybody could look, and a long one is seen at the next tick.
    journal.append(StateReached(JobState.RUNNING), wake=False)
    return context


def end(task: Assignment, depot: Depot, journal: Journal, told: Told) -> None:
    """Keeps what a trial left, and writes its end."""
    if told.failure is not None:
        why, reason, final = told.failure
        journal.append(AttemptEnded(why, reason, 1, final, told.usage))
    else:
        _finish(task, depot, journal, told.result, told.usage)


@dataclass(slots=True)
class Told:
    """What a trial's function came to: a result, or why there is none (the reason, in words, whether it is final)."""

    result: dict[str, Any] = field(default_factory=dict)
    failure: tuple[EndReason, str, bool] | None = None
    usage: Usage = field(default_factory=Usage)
    imported: tuple[str, ...] = ()
    """What a child imported that is gone with it: the next one should find it here."""

    def to_json(self, journal: Journal) -> dict[str, Any]:
        """Returns this as a child tells it, with how far it wrote the journal."""
        return {
            "result": self.result,
            "failure": self.failure,
            "usage": asdict(self.usage),
            "next": journal.next,
            "imported": self.imported,
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any], journal: Journal) -> Told:
        """Returns what a child told; the journal goes on behind its last entry."""
        journal.next = int(said["next"])
        failure = said["failure"]
        reason = None if failure is None else (EndReason(failure[0]), str(failure[1]), bool(failure[2]))
        return cls(dict(said["result"]), reason, Usage(**said["usage"]), tuple(said["imported"]))


def _speak(task: Assignment, context: TrialContext, clock: Clock, journal: Journal) -> Told:
    """Call the function; what it prints goes into the log."""
    order, told = task.order, Told()
    meter = OwnMeter(clock)
    with speech_to([LogWriter(task.folders.log, journal, order.log)]):
        try:
            meter.start()
            assert isinstance(order.run, Trial)
            told.result = plain_result(resolve(order.run)(context))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a trial raises is its end, not ours
            told.failure = failure_of(error, order)
        told.usage = meter.stop()
    return told


@contextmanager
def speech_to(logs: Sequence[LogWriter]) -> Iterator[threading.Lock]:
    """What is printed meanwhile goes into these logs, which are closed in the end; whoever closes one before holds the
    lock that is given."""
    lock = threading.Lock()
    speech = [_Speech(logs, stream, lock) for stream in ("out", "err")]
    kept_streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = speech
    try:
        yield lock
    finally:
        sys.stdout, sys.stderr = kept_streams
        for each in speech:
            each.end()
        with lock:
            for log in logs:
                log.close()


def failure_of(error: BaseException, order: Order) -> tuple[EndReason, str, bool]:
    """Why a trial ended that raised this, in words, and whether that is final; what is not expected is printed."""
    if isinstance(error, MemoryError):
        return (
            EndReason.MEMORY_LIMIT,
            f"the memory limit of {order.resources.memory_mb} MB was reached",
            False,
        )
    reason = f"{type(error).__name__}: {error}"
    if isinstance(error, EaselError):
        return EndReason.RAISED, reason, isinstance(error, InvalidInput)
    if not _is_full(error):
        sys.stderr.write("".join(traceback.format_exception(error)))
    if is_gpu_fault(error):
        return EndReason.DEVICE_LOST, reason[:2000], False
    return _files_or_raised(error), reason[:2000], False


def _is_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_gpu_fault(error: BaseException) -> bool:
    """Whether a GPU or its driver failed, and not the trial: it fell off the bus, hung, or was reset under us."""
    text = str(error)
    known = ("CUDA error", "CUDA driver", "NVML", "cudaError", "no CUDA-capable device", "GPU is lost")
    short = "out of memory" in text or "illegal memory access" in text or "device-side assert" in text
    return isinstance(error, RuntimeError) and not short and any(word in text for word in known)


def _files_or_raised(error: BaseException) -> EndReason:
    """A full disk is the machine's fault, not the trial's."""
    return EndReason.FILES if _is_full(error) else EndReason.RAISED


def _behind_walls(
    task: Assignment, context: TrialContext, clock: Clock, journal: Journal, home: Path
) -> Told:
    """The same in a child that sees only its own folders. If it dies, so does this process: the worker sees that."""
    prepare_walls([task])
    known = frozenset(sys.modules)

    def work(tell: Tell) -> None:
        told = _speak(task, context, clock, journal)
        told.imported = tuple(sorted(set(sys.modules) - known))
        tell(told.to_json(journal))

    heard: list[dict[str, Any]] = []
    if not apart(work, lambda: put_up([(task.folders, task.checkpoint)], home), heard.append) or not heard:
        die()
    return Told.from_json(heard[0], journal)


def prepare_walls(tasks: Sequence[Assignment]) -> None:
    """Makes the folders that a child behind walls may use, and imports what its trials will need."""
    for task in tasks:
        for folder in (task.folders.root, task.checkpoint):
            _made(folder)
        task.folders.log.touch(0o600)
        _import_ahead(task.order.run)


def die() -> NoReturn:
    """Ends this process as its child ended: the worker says why."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("not reached")


def _import_ahead(run: Any) -> None:
    """What the trial's module says that it will need: imports of a child are gone with it."""
    assert isinstance(run, Trial)
    with suppress(Exception):  # the child says what is wrong
        module = importlib.import_module(run.target.partition(":")[0])
        for name in module.ahead(run.arguments) if hasattr(module, "ahead") else ():
            with suppress(ImportError):
                importlib.import_module(name)


def _finish(task: Assignment, depot: Depot, journal: Journal, result: dict[str, Any], usage: Usage) -> None:
    try:
        kept = depot.keep(
            task.folders.root / "output", task.order.key, {"/result.json": json.dumps(result).encode()}
        )
    except (EaselError, OSError) as error:
        reason = f"the output could not be stored: {type(error).__name__}: {error}"
        journal.append(AttemptEnded(EndReason.FILES, reason, usage=usage))
        return
    journal.append(StateReached(JobState.UPLOADING, usage), kept, ResultTold(result), AttemptDone(usage))


def _context(task: Assignment, depot: Depot) -> TrialContext:
    order = task.order
    assert isinstance(order.run, Trial)
    context = TrialContext(
        arguments=order.run.arguments,
        folders=task.folders,
        keep=task.checkpoint,
        threads=order.resources.threads,
        gpus=task.gpus,
        input_key=_key_of(order.input),
    )
    if order.input:
        depot.fetch(order.input, task.folders.input, order.key, read_only=False)
    lay_out_checkpoint(depot, order, context.checkpoint)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(cards(task.gpus))
    os.environ.pop("EASEL_GPU_SHARE", None)
    if task.gpus:
        os.environ.update(share_variables(order.resources.gpus, card_memory_mb(task.gpus)))
    os.environ["EASEL_JOB_ID"] = order.job_id
    for name, value in order.variables.items():
        os.environ[name] = value
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(context.threads)
    return context


def _key_of(files: Sequence[StoredFile]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for file in files:
        found.update(f"{file.path}\0{file.digest}\n".encode())
    return found.hexdigest()


def plain_result(result: Any) -> dict[str, Any]:
    """JSON, with NaN and infinities as None: a diverged network is an ordinary result."""
    if not isinstance(result, Mapping):
        raise InvalidInput(f"a trial returns a mapping of names to JSON values, not {type(result).__name__}")

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, Mapping):
            return {str(key): plain(each) for key, each in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            return [plain(each) for each in value]
        return value

    made: dict[str, Any] = plain(result)
    try:
        json.dumps(made, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the trial's result is not JSON: {error}") from error
    return made


class OwnMeter:
    """This process's use between two moments; the kernel's peak of resident memory is reset at the start."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall = clock.monotonic()
        self._cpu = _cpu()

    def start(self) -> None:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._wall, self._cpu = self._clock.monotonic(), _cpu()

    def stop(self) -> Usage:
        return Usage(
            round(_cpu() - self._cpu, 4),
            round(status_mb("VmHWM"), 2),
            round(self._clock.monotonic() - self._wall, 4),
        )


def _cpu() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def status_mb(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0.0
