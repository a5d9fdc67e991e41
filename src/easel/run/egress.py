"""The network that a job may be given: a proxy to the internet, and nothing else.

The job keeps a network namespace of its own, without any way out. In it a port of its loopback leads to this proxy,
which runs beside the job and opens connections for it, to public addresses only: never to this machine, its
neighbours, link-local addresses or a cloud's metadata service. Names are resolved here, once, and the address that was
checked is the one that is connected to. Programs find it by the variables that all of them know (`https_proxy`).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import ipaddress
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psutil

PORT = 3128
VARIABLES = {
    **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), f"http://127.0.0.1:{PORT}"),
    **dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1"),
}
_NS_GET_USERNS = 0xB701
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_HEAD = 16 * 1024
_AT_ONCE = 128
_CONNECT_S, _IDLE_S = 20.0, 300.0

Allowed = Callable[[str], bool]


def is_public(address: str) -> bool:
    """Whether a job may be connected to it: public, and not one of this machine's own."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(ip, "ipv4_mapped", None) or getattr(ip, "sixtofour", None)
    if mapped is not None:
        return is_public(str(mapped))
    if not ip.is_global or ip.is_multicast or ip.is_reserved or ip.is_unspecified:
        return False
    own = {each.address.partition("%")[0] for many in psutil.net_if_addrs().values() for each in many}
    return str(ip) not in own


def open_way(pid: int, allowed: Allowed = is_public) -> Proxy:
    """Gives the network namespace of process `pid` its port, and serves it until this process ends."""
    proxy = Proxy(listener_in(pid), allowed)
    threading.Thread(target=proxy.serve, name="egress", daemon=True).start()
    return proxy


def listener_in(pid: int, port: int = PORT) -> socket.socket:
    """A listening socket on the loopback of another process's network."""

    def listen() -> socket.socket:
        made = socket.socket()
        made.bind(("127.0.0.1", port))
        made.listen(_AT_ONCE)
        return made

    return _made_in(pid, listen)


def connection_in(pid: int, port: int) -> socket.socket:
    """A connection to a port of the loopback of another process's network."""
    return _made_in(pid, lambda: socket.create_connection(("127.0.0.1", port), _CONNECT_S))


def _made_in(pid: int, make: Callable[[], socket.socket]) -> socket.socket:
    """What `make` makes in the network of process `pid`: called by a thread or a child that enters it."""

    def enter_and_make() -> socket.socket:
        _enter(pid)
        return make()

    if os.geteuid() == 0:  # root may enter with one thread, which ends there; others must enter as a process
        with ThreadPoolExecutor(1) as entering:
            found = entering.submit(enter_and_make).result()
    else:
        found = _made_by_child(enter_and_make)
    found.setblocking(True)
    return found


def _made_by_child(make: Callable[[], socket.socket]) -> socket.socket:
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            made = make()
            socket.send_fds(theirs, [b"."], [made.fileno()])
            code = 0
        except OSError as error:
            theirs.sendall(str(error).encode()[:500])
        finally:
            os._exit(code)
    theirs.close()
    with ours:
        said, numbers, _, _ = socket.recv_fds(ours, 512, 1)
    os.waitpid(child, 0)
    if not numbers:
        raise OSError(f"the job's network cannot be reached: {said.decode(errors='replace')}")
    return socket.socket(fileno=numbers[0])


def _enter(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    if os.geteuid() != 0:  # who owns the user namespace of a network is its root
        owner = fcntl.ioctl(network, _NS_GET_USERNS)
        if libc.setns(owner, _CLONE_NEWUSER) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if libc.setns(network, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Proxy:
    """An HTTP proxy: CONNECT for everything encrypted, and plain requests by their full address."""

    def __init__(self, listener: socket.socket, allowed: Allowed) -> None:
        self._listener, self._allowed = listener, allowed
        self._room = threading.BoundedSemaphore(_AT_ONCE)

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if not self._room.acquire(blocking=False):
                    client.close()
                    continue
                threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _answer(self, client: socket.socket) -> None:
        try:
            with client, contextlib.suppress(OSError, ValueError):
                client.settimeout(_IDLE_S)
                head, rest = _head(client)
                method, target, *_ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
                if method == "CONNECT":
                    with self._dial(client, *_host_and_port(target, 443)) as server:
                        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                        server.sendall(rest)
                        _relay(client, server)
                elif target.startswith("http://"):
                    where, slash, path = target.removeprefix("http://").partition("/")
                    with self._dial(client, *_host_and_port(where, 80)) as server:
                        lines = head.split(b"\r\n")[1:]
                        kept = [
                            each for each in lines if not each.lower().startswith((b"proxy-", b"connection:"))
                        ]
                        first = f"{method} {slash or '/'}{path} HTTP/1.1".encode("latin-1")
                        server.sendall(
                            b"\r\n".join([first, b"Connection: close", *kept]) + b"\r\n\r\n" + rest
                        )
                        _relay(client, server)
                else:
                    client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        finally:
            self._room.release()

    def _dial(self, client: socket.socket, host: str, port: int) -> socket.socket:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            _say(client, 502, f"there is no host {host[:100]}")
            raise OSError("no such host") from None
        addresses = [str(where[0]) for *_, where in found]
        allowed = [each for each in addresses if self._allowed(each)]
        if not allowed:
            _say(client, 403, f"jobs may not connect to {host[:100]}: only to public addresses")
            raise OSError("not allowed")
        try:
            return socket.create_connection((allowed[0], port), _CONNECT_S)
        except OSError as error:
            _say(client, 502, f"{host[:100]} does not answer: {error}")
            raise


def _host_and_port(text: str, default: int) -> tuple[str, int]:
    """`example.org:8080`, `[::1]:8080`, or either without its port."""
    host, colon, port = text.rpartition(":") if ":" in text.rpartition("]")[2] else (text, "", "")
    return host.removeprefix("[").removesuffix("]"), int(port) if colon else default


def _say(client: socket.socket, status: int, why: str) -> None:
    body = why.encode("ascii", "replace") + b"\n"
    head = f"HTTP/1.1 {status} Refused\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    client.sendall(head.encode() + body)


def _head(client: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = client.recv(4096)
        if not piece or len(data) > _HEAD:
            raise ValueError("no request")
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _relay(client: socket.socket, server: socket.socket) -> None:
    """Copies both ways until both have ended."""
    server.settimeout(_IDLE_S)
    back = threading.Thread(target=_pump, args=(server, client), daemon=True)
    back.start()
    _pump(client, server)
    back.join(_IDLE_S)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(1 << 16):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
