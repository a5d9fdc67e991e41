"""The system calls that user code never needs, as a seccomp filter: a classic BPF program, assembled by hand.

What is refused answers "not permitted" (or "not implemented", where a library then takes another way) rather than
killing the program, so that whoever only probes for a feature goes on without it.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Sequence
from dataclasses import dataclass

_LD, _JEQ, _JGE, _JSET, _AND, _RET = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NR, _ARCH, _ARGS = 0, 4, 16
_X32_BIT = 0x40000000


@dataclass(frozen=True, slots=True)
class Architecture:
    """What the kernel calls a processor, and which column of the tables below is its own."""

    audit: int
    column: int


ARCHITECTURES = {"x86_64": Architecture(0xC000003E, 0), "aarch64": Architecture(0xC00000B7, 1)}

# Numbers on x86_64 and aarch64; None where the call does not exist.
REFUSED: dict[str, tuple[int | None, int | None]] = {
    # Mounts, and another root.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    # Namespaces. (`clone` with their flags: below.)
    "unshare": (272, 97),
    "setns": (308, 268),
    # Other processes' memory and files.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # The kernel: its code, keys, programs, counters.
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "create_module": (174, None),
    "query_module": (178, None),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "syslog": (103, 116),
    "lookup_dcookie": (212, 18),
    "fanotify_init": (300, 262),
    "_sysctl": (156, None),
    "sysfs": (139, None),
    "uselib": (134, None),
    "ustat": (136, None),
    "nfsservctl": (180, 42),
    "vhangup": (153, 58),
    "personality": (135, 92),
    # The machine: its clock, name, swap, accounts, ports.
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    # Files by their number rather than their name, past every mount.
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
}

# Libraries fall back to older calls when these are not there.
ABSENT: dict[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435),  # its flags lie in memory, where a filter cannot look
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}

_CLONE = (56, 220)
_NEW_NAMESPACES = 0x7E020080  # NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME
_SOCKET = (41, 198)
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _TYPE = 1, 2, 0xF
_IOCTL = (16, 29)
_TYPING = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX put words into a terminal's mouth
_SET_USER_ID = 0o4000
_CHMODS: dict[tuple[int | None, int | None], int] = {(90, None): 1, (91, 52): 1, (268, 53): 2, (452, 452): 2}
_MKNODS: dict[tuple[int | None, int | None], int] = {(133, None): 1, (259, 33): 2}
_DEVICE_KINDS = (0o020000, 0o060000)


def program(machine: str | None = None, *, internet: bool = True) -> bytes | None:
    """The filter for this machine's processor, as bubblewrap's `--seccomp` reads it; None for an unknown one.

    Without `internet` there are Unix sockets only: for code that shares the machine's network.
    """
    found = ARCHITECTURES.get(machine or platform.machine())
    if found is None:
        return None
    column = found.column
    code = [_load(_ARCH), _jump(_JEQ, found.audit, 1, 0), _refuse(errno.ENOSYS), _load(_NR)]
    if column == 0:
        code += [_jump(_JGE, _X32_BIT, 0, 1), _refuse(errno.ENOSYS)]
    for numbers, error in ((REFUSED, errno.EPERM), (ABSENT, errno.ENOSYS)):
        for pair in numbers.values():
            if (number := pair[column]) is not None:
                code += [_jump(_JEQ, number, 0, 1), _refuse(error)]
    code += _for_call(_CLONE[column], [_load_arg(0), _jump(_JSET, _NEW_NAMESPACES, 0, 1), _refuse()])
    code += _for_call(_SOCKET[column], _sockets() if internet else _unix_sockets())
    typing = [line for each in _TYPING for line in (_jump(_JEQ, each, 0, 1), _refuse())]
    code += _for_call(_IOCTL[column], [_load_arg(1), *typing])
    for calls, argument in _CHMODS.items():
        check = [_load_arg(argument), _jump(_JSET, _SET_USER_ID, 0, 1), _refuse()]
        code += _for_call(calls[column], check)
    for calls, argument in _MKNODS.items():
        kinds = [line for each in _DEVICE_KINDS for line in (_jump(_JEQ, each, 0, 1), _refuse())]
        code += _for_call(calls[column], [_load_arg(argument), _line(_AND, 0o170000), *kinds])
    return b"".join([*code, _line(_RET, _ALLOW)])


def _sockets() -> list[bytes]:
    """Unix sockets of every kind, streams and datagrams of the internet, and netlink for routes: nothing else."""
    allow, refuse = _line(_RET, _ALLOW), _refuse(errno.EAFNOSUPPORT)
    return [
        _load_arg(0),
        _jump(_JEQ, _UNIX, 0, 1),
        allow,
        _jump(_JEQ, _NETLINK, 0, 4),
        _load_arg(2),
        _jump(_JEQ, 0, 0, 1),
        allow,
        refuse,
        _jump(_JEQ, _INET, 2, 0),
        _jump(_JEQ, _INET6, 1, 0),
        refuse,
        _load_arg(1),
        _line(_AND, _TYPE),
        _jump(_JEQ, _STREAM, 2, 0),
        _jump(_JEQ, _DATAGRAM, 1, 0),
        _refuse(),
        allow,
    ]


def _unix_sockets() -> list[bytes]:
    return [_load_arg(0), _jump(_JEQ, _UNIX, 1, 0), _refuse(errno.EAFNOSUPPORT), _line(_RET, _ALLOW)]


def _for_call(number: int | None, block: Sequence[bytes]) -> list[bytes]:
    """`block` for this call only. Whatever it does to the accumulator, the next rule finds the number again."""
    return [] if number is None else [_jump(_JEQ, number, 0, len(block)), *block, _load(_NR)]


def _line(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _load(offset: int) -> bytes:
    return _line(_LD, offset)


def _load_arg(index: int) -> bytes:
    """The lower half of an argument: the kernel itself looks at no more of flags, modes and families."""
    return _load(_ARGS + 8 * index)


def _jump(code: int, value: int, yes: int, no: int) -> bytes:
    return _line(code, value, yes, no)


def _refuse(error: int = errno.EPERM) -> bytes:
    return _line(_RET, _ERRNO | error)
