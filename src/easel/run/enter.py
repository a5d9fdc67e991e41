"""Becoming a program inside the sandbox of a job that runs already: its namespaces, its user, its filter of calls.

For a process that was just forked and has the job's limits and user; it never returns. Only calls of the system are
made, because other threads of the parent may have held any lock.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

_LIBC = ctypes.CDLL(None, use_errno=True)
_NS_GET_USERNS = 0xB701
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _FILTER = 4, 22, 2
_OWNED = ("ipc", "uts", "net", "pid", "mnt")


def become(
    pid: int, program: Sequence[str], environment: Mapping[str, str], work: Path, tty: bool, rules: bytes
) -> NoReturn:
    """Run `program` beside process `pid` of the job (0: there is no sandbox), and end as it does.

    Standard input is a terminal where `tty` says so; `rules` is the filter of system calls.
    """
    code = 126
    try:
        _LIBC.prctl(
            _PR_SET_DUMPABLE, 0, 0, 0, 0
        )  # until then it has the agent's memory: nobody may look into it
        if pid:
            _enter(pid)
        child = os.fork()  # only a child is in the namespace of processes
        if child:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256
        else:
            _exec(program, environment, "/job" if pid else str(work), tty, rules)
    except OSError as error:
        os.write(2, f"{program[0]}: {error.strerror}\n".encode())
        code = 127 if isinstance(error, FileNotFoundError) else 126
    finally:
        os._exit(code)


def _exec(
    program: Sequence[str], environment: Mapping[str, str], folder: str, tty: bool, rules: bytes
) -> None:
    os.setsid()
    if tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(folder)
    if rules:
        code = ctypes.create_string_buffer(rules, len(rules))
        # struct sock_fprog: how many instructions, and where they are.
        about = struct.pack("HL", len(rules) // 8, ctypes.addressof(code))
        _check(_LIBC.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.create_string_buffer(about, len(about)), 0, 0))
    os.execvpe(program[0], list(program), environment)  # noqa: S606 - behind the walls, without a shell


def _enter(pid: int) -> None:
    """First as whom the namespaces belong to, last as the user namespace in which the job itself is."""
    opened = {name: os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in (*_OWNED, "user")}
    owner = fcntl.ioctl(opened["net"], _NS_GET_USERNS)
    for number in (owner, *(opened[name] for name in _OWNED)):
        _check(_LIBC.setns(number, 0))
    if os.fstat(owner).st_ino != os.fstat(opened["user"]).st_ino:
        _check(_LIBC.setns(opened["user"], 0))
    for number in (owner, *opened.values()):
        os.close(number)


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
