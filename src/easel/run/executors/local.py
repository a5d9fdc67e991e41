"""This machine as an executor: the client of the worker process, which it starts where none runs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from easel.clock import Clock
from easel.declare.resources import Room
from easel.errors import TryLater
from easel.records.attempt import EndReason
from easel.run.control_socket import address
from easel.run.entries import decode_entry
from easel.run.executors.base import AttemptGone, Away, Beat, Connected, Entries, Report
from easel.run.gpus import cards_here
from easel.run.order import ORDER, Order
from easel.run.worker_config import WorkerConfig, describe

_START_PATIENCE_S = 20.0


def this_machine(vcpu: float | None = None, memory_mb: int | None = None, gpus: int | None = None) -> Room:
    """What jobs may use of it: all cores, and memory but for a tenth, which the system needs."""
    cores = len(os.sched_getaffinity(0))
    total_mb = psutil.virtual_memory().total // 2**20
    return Room(
        float(cores) if vcpu is None else vcpu,
        int(total_mb * 0.9) if memory_mb is None else memory_mb,
        (1.0,) * (len(cards_here()) if gpus is None else gpus),
    )


class LocalExecutor:
    """Talks to the worker of `config.home`. `wake` is called, from another thread, when there is news."""

    def __init__(
        self, config: WorkerConfig, clock: Clock, wake: Callable[[], None], spawn: bool = True
    ) -> None:
        self.config, self.name = config, config.name
        self._clock, self._wake, self._spawn = clock, wake, spawn
        self._folder = config.home / "run"
        self._socket: socket.socket | None = None
        self._spared: bool | None = None
        self._reports: deque[Report] = deque()
        self._send_lock = threading.Lock()
        self.worker: subprocess.Popen[bytes] | None = None

    def connect(self, fence: int, seen: Mapping[str, int]) -> None:
        self._disconnect()
        try:
            peer = self._dial()
        except OSError as error:
            self._reports.append(Away(f"no worker answers: {error}"))
            return
        self._socket, self._spared = peer, None
        threading.Thread(target=self._listen, args=(peer,), name="worker-reports", daemon=True).start()
        self._send({"op": "hello", "fence": fence, "seen": dict(seen)})

    def _dial(self) -> socket.socket:
        """Connect, starting a worker first where none runs."""
        self._folder.mkdir(parents=True, exist_ok=True)
        deadline = self._clock.monotonic() + _START_PATIENCE_S
        while True:
            try:
                return _connect(self._folder)
            except OSError:
                if not self._spawn or self._clock.monotonic() > deadline:
                    raise
                self._start_worker()
                self._clock.sleep(0.02)

    def _start_worker(self) -> None:
        if self.worker is not None and self.worker.poll() is None:
            return
        source = str(Path(__file__).resolve().parents[3])
        path = os.pathsep.join(part for part in (source, os.environ.get("PYTHONPATH", "")) if part)
        with (self._folder / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "easel.run.worker_main", describe(self.config)],
                env={**os.environ, **self.config.credentials, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _listen(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError), peer.makefile("rb") as lines:
            for line in lines:
                report = _read(json.loads(line))
                if report is not None:
                    self._reports.append(report)
                    self._wake()
        if peer is self._socket:
            self._reports.append(Away("the worker went away"))
            self._wake()

    def spare(self, names: frozenset[str]) -> None:
        wanted = self.name in names
        if wanted is not self._spared:
            self._spared = wanted
            self._send({"op": "spare", "on": wanted})

    def reserve(self, kept: Mapping[str, str]) -> None:
        """One device alone: whose work comes here is decided before."""

    def start(self, order: Order) -> None:
        self._send({"op": "start", "order": ORDER.dump_python(order, mode="json")})

    def kill(self, key: str, *, force: bool = False) -> None:
        self._send({"op": "kill", "key": key, "force": force})

    def give_way(self, key: str) -> None:
        self._send({"op": "give_way", "key": key})

    def forget(self, key: str, *, over: bool = True) -> None:
        self._send({"op": "forget", "key": key, "over": over})

    def resend(self, key: str, seen: int) -> None:
        self._send({"op": "resend", "key": key, "seen": seen})

    def poll(self) -> list[Report]:
        reports: list[Report] = []
        with contextlib.suppress(IndexError):
            while True:
                reports.append(self._reports.popleft())
        return reports

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        with self._send_lock, contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.sendall(data)

    def _disconnect(self) -> None:
        peer, self._socket = self._socket, None
        if peer is not None:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
            peer.close()
        self._reports.clear()

    def close(self, *, stop: bool) -> None:
        if stop:
            self._stop_worker()
        self._disconnect()

    def _stop_worker(self) -> None:
        """Ends the worker of this home, whoever started it, with everything on it."""
        self._disconnect()  # somebody may have taken our place at the socket without our noticing
        with contextlib.suppress(OSError):
            self._socket = _connect(self._folder)
        self._send({"op": "stop"})
        deadline = self._clock.monotonic() + _START_PATIENCE_S
        while worker_is_there(self._folder):
            if self._clock.monotonic() > deadline:
                raise TryLater("the worker does not stop: look at its log, run/worker.log")
            self._clock.sleep(0.02)
        if self.worker is not None:
            self.worker.wait()


def worker_is_there(folder: Path) -> bool:
    """Whether a worker holds this home's lock."""
    try:
        fd = os.open(folder / "worker.lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _connect(folder: Path) -> socket.socket:
    name, fd = address(folder)
    peer = socket.socket(socket.AF_UNIX)
    try:
        peer.connect(name)
    except OSError:
        peer.close()
        raise
    finally:
        os.close(fd)
    return peer


def _read(message: dict[str, Any]) -> Report | None:
    match message:
        case {"op": "entries", "key": key, "entries": entries}:
            return Entries(key, [decode_entry(entry) for entry in entries])
        case {"op": "gone", "key": key, "reason": reason, **rest}:
            return AttemptGone(key, reason, EndReason(rest.get("end", EndReason.OTHER)))
        case {"op": "beat", "alive": alive}:
            return Beat(frozenset(alive), message.get("notes", {}))
        case {"op": "state", "capacity": [vcpu, memory_mb, gpus], "attempts": attempts, **rest}:
            notes: dict[str, str] = {name: str(rest[name]) for name in ("sandbox", "limits")}
            notes |= rest.get("notes", {})
            return Connected(Room(vcpu, memory_mb, tuple(gpus)), frozenset(attempts), notes)
        case {"op": "refused", "reason": reason}:
            return Away(reason, superseded=True)
    return None
