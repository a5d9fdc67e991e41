"""The socket of a running job, held by its agent, through which programs are started beside it, behind its walls.

Who may come in is asked by the server; the socket lies in the platform's own folder, which nobody else can enter.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import termios
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from easel.clock import Clock
from easel.run import frames, seccomp
from easel.run.confinement import Limits, confine, job_user
from easel.run.egress import connection_in
from easel.run.enter import become
from easel.run.tree import descendants

_PIECE = 1 << 16
_AT_ONCE = 16
_CONNECT_S = 5.0
SUFFIX = ".exec"


def exec_socket_path(attempts: Path, key: str) -> Path:
    """Return the path of an attempt's socket."""
    return attempts / f"{key}{SUFFIX}"


def dial(attempts: Path, key: str) -> socket.socket:
    """Returns a connection to an attempt's socket on this machine; an OSError where there is none."""
    path = exec_socket_path(attempts, key)
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(_CONNECT_S)
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:  # the path itself may be too long for a socket
            stream.connect(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
    except OSError:
        stream.close()
        raise
    stream.settimeout(None)
    return stream


@dataclass(frozen=True, slots=True)
class Inside:
    """What a program that comes in gets: the job's own environment, limits, control group and user."""

    key: str
    environment: Mapping[str, str]
    limits: Limits
    enter: Callable[[], None]
    work: Path
    sandboxed: bool
    process: int
    """The process that the agent started: bubblewrap, or the command itself."""

    def target(self) -> int:
        """Any process inside the sandbox; 0 without one."""
        if not self.sandboxed:
            return 0
        ours = Path("/proc/self/ns/pid").readlink()
        for pid in descendants(self.process):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/ns/pid").readlink() != ours:
                    return pid
        raise ProcessLookupError("the job has no process to join")


class ExecSocket:
    """Open while the job runs. Each visitor says first what it wants: `{"argv": […], "rows": 24, "columns": 80}` for a
    program, `{"port": 8888}` for what the job serves there, `{"active": true}`, also beside a port, to say that
    somebody works in it.
    """

    def __init__(self, path: Path, inside: Inside, clock: Clock) -> None:
        self._path, self._inside, self._clock = path, inside, clock
        self.touched = clock.monotonic()
        """When somebody last did something here."""
        self._listener = socket.socket(socket.AF_UNIX)
        path.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:  # the path itself may be too long for a socket
            self._listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
        path.chmod(0o600)
        self._listener.listen(_AT_ONCE)
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        threading.Thread(target=self._serve, name="exec-socket", daemon=True).start()

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                visitor, _ = self._listener.accept()
                if self._room.acquire(blocking=False):
                    threading.Thread(target=self._answer, args=(visitor,), daemon=True).start()
                else:
                    visitor.close()

    def _answer(self, visitor: socket.socket) -> None:
        try:
            with visitor, contextlib.suppress(OSError, ValueError, KeyError):
                head, rest = _first_line(visitor)
                asked = json.loads(head)
                if asked.get("active"):
                    self._touch()
                if "port" in asked:
                    self._forward(visitor, int(asked["port"]), rest)
                elif "argv" in asked:
                    _Visit(visitor, self._inside, asked, self._touch).run(rest)
        finally:
            self._room.release()

    def connect(self, port: int) -> socket.socket:
        """Returns a connection to a port of the job's own network."""
        target = self._inside.target()
        return connection_in(target, port) if target else socket.create_connection(("127.0.0.1", port))

    def _touch(self) -> None:
        self.touched = self._clock.monotonic()

    def _forward(self, visitor: socket.socket, port: int, rest: bytes) -> None:
        """Bytes both ways between the visitor and a port of the job's own network."""
        with self.connect(port) as job:
            job.sendall(rest)
            back = threading.Thread(target=_pump, args=(job, visitor), daemon=True)
            back.start()
            _pump(visitor, job)
            back.join()


class _Visit:
    """One program for one visitor, ended with it."""

    def __init__(
        self,
        visitor: socket.socket,
        inside: Inside,
        asked: Mapping[str, object],
        touch: Callable[[], None],
    ) -> None:
        self._visitor, self._inside, self._touch = visitor, inside, touch
        argv = asked["argv"]
        if not isinstance(argv, list) or not argv:
            raise ValueError("no program")
        self._argv = [str(part) for part in argv]
        rows, columns = asked.get("rows"), asked.get("columns")
        self._size = (int(rows), int(columns)) if isinstance(rows, int) and isinstance(columns, int) else None

    def run(self, rest: bytes) -> None:
        try:
            pid, ours = self._start()
        except OSError as error:
            self._say(frames.DATA, f"{error}\n".encode())
            self._say(frames.EXIT, b"126")
            return
        try:
            self._carry(ours, rest)
        finally:
            os.close(ours)
            with contextlib.suppress(OSError):
                self._say(frames.EXIT, str(_ended(pid)).encode())

    def _start(self) -> tuple[int, int]:
        """(the new process, our end of its terminal or of the stream that stands for one)."""
        inside, tty = self._inside, self._size is not None
        target = inside.target()
        rules = (seccomp.program() or b"") if inside.sandboxed else b""
        user = job_user(inside.key) if inside.sandboxed else None
        if tty:
            ours, theirs = pty.openpty()
            self._resize(ours, *(self._size or (24, 80)))
        else:
            one, two = socket.socketpair()
            ours, theirs = one.detach(), two.detach()
        environment = {"TERM": "xterm-256color", **inside.environment}
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                for number in range(3):
                    os.dup2(theirs, number)
                os.closerange(3, 65536)
                os.setsid()
                confine(parent, inside.enter, inside.limits, None, user)
                become(target, self._argv, environment, inside.work, tty, rules)
            finally:
                os._exit(126)
        os.close(theirs)
        return pid, ours

    def _carry(self, ours: int, rest: bytes) -> None:
        """Carries bytes both ways until the program has said everything, or the visitor leaves."""
        reader = frames.FrameReader()
        self._take(ours, reader, rest)
        while True:
            ready, _, _ = select.select([ours, self._visitor.fileno()], [], [])
            if self._visitor.fileno() in ready:
                data = self._visitor.recv(_PIECE)
                if not data:
                    return
                self._take(ours, reader, data)
            if ours in ready:
                try:
                    data = os.read(ours, _PIECE)
                except OSError:  # a terminal whose other end is closed
                    return
                if not data:
                    return
                self._say(frames.DATA, data)

    def _take(self, ours: int, reader: frames.FrameReader, data: bytes) -> None:
        for kind, piece in reader.feed(data):
            if kind == frames.DATA:
                self._touch()
                os.write(ours, piece)
            elif kind == frames.RESIZE and self._size is not None:
                self._resize(ours, *frames.sized(piece))

    def _say(self, kind: bytes, data: bytes) -> None:
        self._visitor.sendall(frames.frame(kind, data))

    @staticmethod
    def _resize(terminal: int, rows: int, columns: int) -> None:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _ended(pid: int) -> int:
    """The exit code of a visitor's program; one that goes on without its visitor is killed."""
    for _ in range(20):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status) % 256
        time.sleep(0.05)
    for each in (*descendants(pid), pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) % 256


def _first_line(visitor: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\n" not in data:
        piece = visitor.recv(_PIECE)
        if not piece or len(data) > frames.MOST:
            raise ValueError("nothing was asked for")
        data += piece
    head, _, rest = data.partition(b"\n")
    return head, rest
