"""A job without a network reaches MLflow's API of its project through the process beside it, and nothing else."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.run.sandbox import UserProgram, Walls, probe, start
from easel.run.tracking import inside, reachable
from easel.testing.tls import own_certificate

ASK = r"""
import http.client, json, sys
said = []
for verb, target, body in json.loads(sys.argv[1]):
    way = http.client.HTTPConnection("127.0.0.1", 3129, timeout=20)
    body = iter([b"in ", b"pieces"]) if body == "CHUNKED" else body
    way.request(verb, target, body, {"Authorization": "Bearer t"}, encode_chunked=True)
    answer = way.getresponse()
    said.append([answer.status, answer.read().decode()])
kept = http.client.HTTPConnection("127.0.0.1", 3129, timeout=20)
for _ in range(2):
    kept.request("GET", "/mlflow/lab/again")
    said.append(kept.getresponse().read().decode())
print(json.dumps(said))
"""


class _Server(http.server.BaseHTTPRequestHandler):
    def _echo(self) -> None:
        if self.headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
        told = f"{self.command} {self.path} {self.headers.get('authorization')} {body.decode()}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    do_GET = do_POST = do_PUT = _echo  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}/mlflow/lab"
        made.shutdown()


def ask(folder: Path, address: str, *requests: tuple[str, str, str | None]) -> list[object]:
    bwrap = probe()
    if bwrap is None:
        pytest.skip("bubblewrap does not work here: apt install bubblewrap")
    for name in ("work", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    walls = Walls(folder / "work", folder / "tmp", None, tracking=address)
    argv = ["/usr/bin/python3", "-c", ASK, json.dumps(requests)]
    process = start(
        bwrap, UserProgram("asks", argv, {"PATH": "/usr/bin:/bin"}, walls), stderr=subprocess.STDOUT
    )
    said = process.communicate(timeout=60)[0].decode()
    found: list[object] = json.loads(said)
    return found


def test_only_what_lies_below_the_project_is_passed_on(tmp_path: Path, server: str) -> None:
    said = ask(
        tmp_path,
        server,
        ("POST", "/mlflow/lab/api/2.0/x?y=1", "body"),
        ("PUT", "/mlflow/lab/file", "CHUNKED"),
        ("GET", "/api/v1/projects", None),
        ("GET", "/mlflow/other/api", None),
        ("GET", "/mlflow/lab/../other", None),
        ("GET", "/mlflow/lab/%252e%252e/other", None),
        ("GET", "http://127.0.0.1/mlflow/lab/x", None),
    )
    assert said[0] == [200, "POST /mlflow/lab/api/2.0/x?y=1 Bearer t body"]
    assert said[1] == [200, "PUT /mlflow/lab/file Bearer t in pieces"]
    assert [one[0] for one in said[2:7]] == [403] * 5  # type: ignore[index]
    assert said[7:] == ["GET /mlflow/lab/again None "] * 2


def test_a_server_that_is_away_is_told_so_that_clients_try_again(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{unused.getsockname()[1]}/mlflow/lab"
    said = ask(tmp_path, away, ("GET", "/mlflow/lab/x", None))
    assert said[0] == [
        503,
        '{"error_code": "TEMPORARILY_UNAVAILABLE", "message": "the server does not answer: try again shortly"}',
    ]


def test_a_server_with_a_certificate_of_its_own_is_reached_by_its_authority(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = own_certificate(tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as made:
        made.socket = own.server.wrap_socket(made.socket, server_side=True)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        address = f"https://127.0.0.1:{made.server_port}/mlflow/lab"
        monkeypatch.delenv("EASEL_CA_FILE", raising=False)
        (stranger,) = ask(tmp_path, address, ("GET", "/mlflow/lab/x", None))[:1]
        monkeypatch.setenv("EASEL_CA_FILE", str(own.authority))
        (told,) = ask(tmp_path, address, ("GET", "/mlflow/lab/x", None))[:1]
        monkeypatch.setenv("EASEL_CA_FILE", str(tmp_path / "nothing.pem"))
        (misled,) = ask(tmp_path, address, ("GET", "/mlflow/lab/x", None))[:1]
        made.shutdown()
    for refused, why in ((stranger, "is not trusted"), (misled, "nothing.pem")):
        assert isinstance(refused, list)
        status, said = refused
        assert status == 400  # clients repeat what answers with 503 for minutes
        assert json.loads(said)["error_code"] == "INVALID_STATE"
        assert why in said
        assert "EASEL_CA_FILE" in said
    assert told == [200, "GET /mlflow/lab/x Bearer t "]


@pytest.mark.parametrize(
    ("address", "joined", "found"),
    [
        ("http://0.0.0.0:8000/mlflow/a", None, "http://127.0.0.1:8000/mlflow/a"),
        ("http://[::]:8000/mlflow/a", None, "http://[::1]:8000/mlflow/a"),
        ("https://easel.lab/mlflow/a", None, "https://easel.lab/mlflow/a"),
        ("http://10.0.0.1:8000/mlflow/a", "https://easel.lab/", "https://easel.lab/mlflow/a"),
        ("/mlflow/a", "https://easel.lab", "https://easel.lab/mlflow/a"),
        ("/mlflow/a", None, None),
    ],
)
def test_a_worker_finds_the_server_where_it_can(address: str, joined: str | None, found: str | None) -> None:
    assert reachable(address, joined) == found
    assert inside("https://easel.lab/mlflow/a") == "http://127.0.0.1:3129/mlflow/a"
