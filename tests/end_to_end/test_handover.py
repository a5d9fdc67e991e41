"""Large files of this machine go to a server of this machine by descriptor, and by HTTP where that cannot be."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.lake.digest import digest_of
from easel.sdk.client import Client
from easel.sdk.handover import is_here
from easel.testing.server import ServerProcess, running
from easel.wire import lake as wire

BIG = 3 * 2**20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("s"), public_metrics="true") as started:
        started.client().projects.create("qa")
        yield started


@pytest.fixture
def client(server: ServerProcess) -> Client:
    return server.client().in_project("qa")


def puts(client: Client) -> int:
    """How many parts came by HTTP."""
    lines = client.connection.request("GET", "/metrics").text.splitlines()
    counts = [
        line for line in lines if "/blobs/stages" in line and "count" in line and 'method="PUT"' in line
    ]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in counts)


def sockets(server: ServerProcess) -> list[Path]:
    return list((server.folder / "home" / "run").glob("handover-*.sock"))


def announce(client: Client, content: bytes) -> wire.Transfers:
    """Open a session for one file and ask where its bytes go."""
    root = f"/api/v1/projects/{client.project}/uploads"
    session = client.connection.post(root, {}, wire.Upload)
    digest = digest_of(content).hex()
    files = {"files": [{"path": "/x", "size": len(content), "hash": digest}]}
    client.connection.post(f"{root}/{session.id}/files", files, wire.WantedHashes)
    objects = {"objects": [{"hash": digest, "size": len(content), "members": []}]}
    return client.connection.post(f"{root}/{session.id}/objects", objects, wire.Transfers)


def say(path: str, message: bytes, descriptors: list[int]) -> dict[str, str]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(60)
        connection.connect(path)
        assert connection.recv(16) == b"ready"
        socket.send_fds(connection, [message], descriptors)
        answer: dict[str, str] = json.loads(connection.recv(4096))
        return answer


def test_a_large_file_needs_no_put(client: Client, tmp_path: Path) -> None:
    content = os.urandom(BIG)
    (tmp_path / "big").write_bytes(content)
    before = puts(client)
    client.lake.upload(tmp_path / "big", "/data/big")
    assert puts(client) == before
    client.lake.download("/data/big", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content


def test_only_the_owner_can_reach_the_socket(server: ServerProcess) -> None:
    (path,) = sockets(server)
    assert path.stat().st_mode & 0o777 == 0o600


def test_without_the_socket_the_file_comes_by_http(
    server: ServerProcess, client: Client, tmp_path: Path
) -> None:
    (path,) = sockets(server)
    hidden = path.rename(path.with_suffix(".hidden"))
    try:
        content = os.urandom(BIG)
        (tmp_path / "big").write_bytes(content)
        before = puts(client)
        client.lake.upload(tmp_path / "big", "/data/by-http")
        assert puts(client) > before
        assert client.lake.cat("/data/by-http") == content
    finally:
        hidden.rename(path)


@pytest.mark.parametrize(
    "case",
    ["signature", "address", "short", "long", "pipe", "nothing", "no words", "offset", "huge", "unreadable"],
)
def test_what_is_handed_over_wrongly_is_refused_and_can_be_sent_again(
    client: Client, tmp_path: Path, case: str
) -> None:
    content = os.urandom(BIG)
    (tmp_path / "big").write_bytes(content)
    answer = announce(client, content)
    (part,) = answer.transfers[0].parts
    asked = {"url": part.url, "offset": 0, "size": part.size}
    read, write = os.pipe()
    descriptor = os.open(tmp_path / "big", os.O_RDONLY)
    try:
        given = [descriptor]
        if case == "signature":
            asked["url"] = part.url[:-1] + ("0" if part.url[-1] != "0" else "1")
        elif case == "address":
            asked["url"] = "/blobs/stages/../../x/1?expires=1&signature=0"
        elif case == "short":
            (tmp_path / "big").write_bytes(content[:-1])
        elif case == "long":
            (tmp_path / "big").write_bytes(content + b"!")
            asked["size"] = part.size + 1
        elif case == "pipe":
            given = [read]
        elif case == "nothing":
            given = []
        elif case == "offset":
            asked["offset"] = -1
        elif case == "huge":
            asked["offset"] = 2**70
        elif case == "unreadable":
            os.close(descriptor)
            descriptor = os.open(tmp_path / "big", os.O_WRONLY)
            given = [descriptor]
        message = b"\xff{" if case == "no words" else json.dumps(asked).encode()
        told = say(answer.handover, message, given)
        assert told["kind"] in {"denied", "invalid-input"}, told
        (tmp_path / "big").write_bytes(content)
        os.close(descriptor)
        descriptor = os.open(tmp_path / "big", os.O_RDONLY)
        assert (
            say(
                answer.handover,
                json.dumps({**asked, "url": part.url, "offset": 0, "size": part.size}).encode(),
                [descriptor],
            )
            == {}
        )
    finally:
        for each in (read, write, descriptor):
            os.close(each)


def test_people_who_hold_every_place_and_say_nothing_stop_nobody(
    server: ServerProcess, client: Client, tmp_path: Path
) -> None:
    (path,) = sockets(server)
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(12)]
    try:
        for each in silent:
            each.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                each.connect(str(path))
        content = os.urandom(BIG)
        (tmp_path / "big").write_bytes(content)
        client.lake.upload(tmp_path / "big", "/data/beside")
        assert client.lake.cat("/data/beside") == content
    finally:
        for each in silent:
            each.close()


def test_a_killed_server_leaves_no_socket_to_its_successor(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # A short name: the path of a socket must fit into a hundred bytes.
    with running(tmp_path_factory.mktemp("k")) as server:
        server.client().projects.create("qa")
        (before,) = sockets(server)
        server.kill()
        assert before.exists()
        server.start()
        (after,) = sockets(server)
        assert after != before
        (tmp_path / "big").write_bytes(os.urandom(BIG))
        server.client().in_project("qa").lake.upload(tmp_path / "big", "/data/big")


@pytest.mark.parametrize(
    ("server", "here"),
    [
        ("http://127.0.0.1:8700", True),
        ("http://localhost:8700", True),
        ("http://[::1]:8700", True),
        ("https://easel.lab.example", False),
        ("http://10.0.0.7:8700", False),
    ],
)
def test_files_are_handed_to_nobody_elsewhere(server: str, here: bool) -> None:
    assert is_here(server) is here
