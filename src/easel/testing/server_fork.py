"""Servers and commands for tests, forked from a process that has imported what they need: that is most of a start.

That process is started once by each process that asks, and ends with it. It speaks lines of JSON on its socket:
`{"start": …}` is answered by a pid, `{"wait": pid}` by the exit code.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass
class ForkedServer:
    """A server that was forked, with what tests need of `subprocess.Popen`."""

    pid: int
    _parent: ForkingProcess
    _code: int | None = None

    def __post_init__(self) -> None:
        self._pidfd = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Returns the exit code, or None while it runs."""
        return self._await(0.0)

    def wait(self, timeout: float | None = None) -> int:
        found = self._await(timeout)
        if found is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired("easel", timeout)
        return found

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def _await(self, seconds: float | None) -> int | None:
        if self._code is None and select.select([self._pidfd], [], [], seconds)[0]:
            self._code = self._parent.ask({"wait": self.pid})
            os.close(self._pidfd)
        return self._code


class ForkingProcess:
    """The process that has imported the server, as those see it who ask it for one."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._lines = ours.makefile("rw", encoding="utf-8")
        ours.close()
        self._lock = threading.Lock()
        atexit.register(self._close)

    def ask(self, question: Mapping[str, Any]) -> int:
        with self._lock:
            self._lines.write(json.dumps(question) + "\n")
            self._lines.flush()
            return int(self._lines.readline())

    def _close(self) -> None:
        self._lines.close()
        self._process.wait()


@cache
def _forking_process() -> ForkingProcess:
    return ForkingProcess()


def may_fork(environment: Mapping[str, str]) -> bool:
    """Whether something may be forked: in a test of this code. Benchmarks and coverage measure a plain start."""
    same_code = environment.get("PYTHONPATH") == os.environ.get("PYTHONPATH")
    in_test = "PYTEST_VERSION" in os.environ and os.environ.get("EASEL_TEST_FORK", "true") != "false"
    return in_test and same_code


@dataclass(frozen=True)
class Streams:
    """Files in place of the standard streams. Output goes to `err` too where that is the same file as `out`."""

    out: Path
    err: Path
    input: Path = Path(os.devnull)


def start(
    arguments: Sequence[str], environment: Mapping[str, str], streams: Streams, cwd: Path | None = None
) -> ForkedServer:
    """Starts `easel ARGUMENTS` with this environment in a session of its own."""
    parent = _forking_process()
    asked = {
        "arguments": list(arguments),
        "environment": dict(environment),
        "streams": [str(streams.input), str(streams.out), str(streams.err)],
        "cwd": str(cwd or Path.cwd()),
    }
    return ForkedServer(parent.ask({"start": asked}), parent)


def fork_until_closed(control: socket.socket) -> dict[str, Any] | None:
    """Forks what is asked for; returns in each child what it is to do, and None when nobody asks any more."""
    with control.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            match json.loads(line):
                case {"start": dict(asked)}:
                    answer = os.fork()
                    if answer == 0:
                        return asked
                case {"wait": int(pid)}:
                    _, status = os.waitpid(pid, 0)
                    answer = os.waitstatus_to_exitcode(status)
            lines.write(f"{answer}\n")
            lines.flush()
    return None


def become(asked: Mapping[str, Any]) -> None:
    """Turns this process into the one that was asked for."""
    os.setsid()
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["cwd"])
    given, out, err = asked["streams"]
    made = [
        os.open(given, os.O_RDONLY),
        *(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for path in (out, err)),
    ]
    for standard, file in enumerate(made):
        os.dup2(file, standard)
        os.close(file)
    sys.argv = ["easel", *asked["arguments"]]


if __name__ == "__main__":
    from easel.cli import main, up

    for entry in main.COMMANDS.values():
        import_module(entry.module)
    up._load_server()
    with socket.socket(fileno=int(sys.argv[1])) as own_end:
        wanted = fork_until_closed(own_end)
    if wanted is not None:
        become(wanted)
        sys.exit(main.main())
