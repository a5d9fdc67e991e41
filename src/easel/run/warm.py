"""The worker's side of the nursery: ready processes for trials, kept until they are worn."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass

from easel.declare.resources import Resources
from easel.run.cage import Cage, Cages
from easel.run.nursery import write_assignment
from easel.run.trial import Assignment
from easel.run.worker_config import WorkerConfig

_FORK_PATIENCE_S = 120.0


@dataclass(slots=True)
class Ready:
    """One process that waits for an assignment, or performs one."""

    pid: int
    pidfd: int
    socket: socket.socket
    cage: Cage
    limits: Resources | None = None

    def give(self, task: Assignment) -> None:
        if self.limits != task.order.resources:
            self.cage.limit(task.order.resources)
            self.limits = task.order.resources
        self.socket.sendall(write_assignment(task))

    def kill(self) -> None:
        self.cage.kill()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self.socket.close()
        os.close(self.pidfd)
        self.cage.remove()


class WarmPool:
    """Starts the nursery when first needed, and again when it died. Ready processes are kept between trials.

    The `selector` tells, as `("ready", process)`, when one of them has something to say.
    """

    def __init__(self, config: WorkerConfig, cages: Cages, selector: selectors.BaseSelector) -> None:
        self._config, self._cages, self._selector = config, cages, selector
        self._idle: list[Ready] = []
        self._nursery: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None
        self._imported = set(config.preload)
        self._made = 0

    def start(self) -> None:
        if self._nursery is not None and self._nursery.poll() is None:
            return
        ours, theirs = socket.socketpair()
        with (self._config.home / "run" / "nursery.log").open("ab") as log:
            self._nursery = subprocess.Popen(  # noqa: S603
                [
                    sys.executable,
                    "-m",
                    "easel.run.nursery",
                    str(theirs.fileno()),
                    self._config.depot,
                    str(self._config.cache),
                    ",".join(self._config.preload),
                ],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        theirs.close()
        ours.settimeout(_FORK_PATIENCE_S)
        self._door = ours

    def take(self, module: str) -> Ready:
        """An idle process, or a fresh one."""
        if self._idle:
            return self._idle.pop()
        ready = self._fork(module)
        self._selector.register(ready.socket, selectors.EVENT_READ, ("ready", ready))
        return ready

    def keep(self, ready: Ready) -> None:
        """It has done its trial and may get another."""
        self._idle.append(ready)

    def discard(self, ready: Ready) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(ready.socket)
        if ready in self._idle:
            self._idle.remove(ready)
        ready.kill()
        ready.close()

    def _fork(self, module: str) -> Ready:
        """A fresh process that has `module` imported; the nursery learns it, and the next fork is cheaper."""
        self.start()
        assert self._door is not None
        if module not in self._imported:
            socket.send_fds(self._door, [f"import {module}\n".encode().ljust(4096)], [])
            self._imported.add(module)
        ours, theirs = socket.socketpair()
        try:
            socket.send_fds(self._door, [b"fork\n".ljust(4096)], [theirs.fileno()])
            answer = self._door.recv(32)
        except OSError:
            answer = b""
        finally:
            theirs.close()
        if not answer.strip().isdigit():
            ours.close()
            self._stop_nursery()
            raise ConnectionError("the nursery died")
        pid = int(answer)
        self._made += 1
        cage = self._cages.make(f"trial-{pid}")
        cage.enter(pid)
        return Ready(pid, os.pidfd_open(pid), ours, cage)

    @property
    def pid(self) -> int | None:
        return self._nursery.pid if self._nursery else None

    def stop(self) -> None:
        for ready in list(self._idle):
            self.discard(ready)
        self._stop_nursery()

    def _stop_nursery(self) -> None:
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._nursery is not None:
            self._nursery.kill()
            self._nursery.wait()
            self._nursery = None
