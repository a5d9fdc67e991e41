"""The worker's side of the fork server: ready processes for trials, kept until they are worn."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from easel.declare.resources import Resources
from easel.run.assignments import write_assignments
from easel.run.cgroup import Cgroup, Cgroups
from easel.run.trial import Assignment
from easel.run.worker_config import WorkerConfig

_FORK_PATIENCE_S = 120.0


@dataclass(slots=True)
class WarmProcess:
    """One process that waits for an assignment, or performs one."""

    pid: int
    pidfd: int
    socket: socket.socket
    cgroup: Cgroup
    limits: Resources | None = None

    def give(self, tasks: Sequence[Assignment]) -> None:
        """Have it perform a trial, or several together, within what all of them asked for."""
        asked = [task.order.resources for task in tasks]
        whole = Resources(sum(one.vcpu for one in asked), sum(one.memory_mb for one in asked), asked[0].gpus)
        if self.limits != whole:
            self.cgroup.limit(whole, sum(task.order.processes for task in tasks))
            self.limits = whole
        self.socket.sendall(write_assignments(tasks))

    def kill(self) -> None:
        self.cgroup.kill()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self.socket.close()
        os.close(self.pidfd)
        self.cgroup.remove()


class WarmProcesses:
    """Starts the fork server when first needed, and again when it died. Ready processes are kept between trials.

    The `selector` tells, as `("ready", process)`, when one of them has something to say.
    """

    def __init__(self, config: WorkerConfig, cgroups: Cgroups, selector: selectors.BaseSelector) -> None:
        self._config, self._cgroups, self._selector = config, cgroups, selector
        self._idle: list[WarmProcess] = []
        self._fork_server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._imported = set(config.preload)
        self._made = 0

    def start(self) -> None:
        if self._fork_server is not None and self._fork_server.poll() is None:
            return
        ours, theirs = socket.socketpair()
        with (self._config.home / "run" / "fork_server.log").open("ab") as log:
            self._fork_server = subprocess.Popen(  # noqa: S603
                [
                    sys.executable,
                    "-m",
                    "easel.run.fork_server",
                    str(theirs.fileno()),
                    self._config.depot,
                    str(self._config.cache),
                    ",".join(self._config.preload),
                    str(self._config.home) if self._config.sandbox else "",
                ],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        theirs.close()
        ours.settimeout(_FORK_PATIENCE_S)
        self._control = ours

    def take(self, module: str) -> WarmProcess:
        """An idle process, or a fresh one."""
        if self._idle:
            return self._idle.pop()
        ready = self._fork(module)
        self._selector.register(ready.socket, selectors.EVENT_READ, ("ready", ready))
        return ready

    def keep(self, ready: WarmProcess) -> None:
        """Keeps a process that has done its trial for another one."""
        self._idle.append(ready)

    def discard(self, ready: WarmProcess) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(ready.socket)
        if ready in self._idle:
            self._idle.remove(ready)
        ready.kill()
        ready.close()

    def _fork(self, module: str) -> WarmProcess:
        """A fresh process that has `module` imported; the fork server learns it, and the next fork is cheaper."""
        self.start()
        assert self._control is not None
        if module not in self._imported:
            socket.send_fds(self._control, [f"import {module}\n".encode().ljust(4096)], [])
            self._imported.add(module)
        ours, theirs = socket.socketpair()
        try:
            socket.send_fds(self._control, [b"fork\n".ljust(4096)], [theirs.fileno()])
            answer = self._control.recv(32)
        except OSError:
            answer = b""
        finally:
            theirs.close()
        if not answer.strip().isdigit():
            ours.close()
            self._stop_fork_server()
            raise ConnectionError("the fork server died")
        pid = int(answer)
        self._made += 1
        cgroup = self._cgroups.make(f"trial-{pid}")
        cgroup.enter(pid)
        return WarmProcess(pid, os.pidfd_open(pid), ours, cgroup)

    @property
    def pid(self) -> int | None:
        return self._fork_server.pid if self._fork_server else None

    def stop(self) -> None:
        for ready in list(self._idle):
            self.discard(ready)
        self._stop_fork_server()

    def _stop_fork_server(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._fork_server is not None:
            self._fork_server.kill()
            self._fork_server.wait()
            self._fork_server = None
