"""What is sent to a tracking server with which credentials, and what happens when it does not answer whole."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from easel.errors import EaselError, InvalidInput, Misconfigured, TryLater
from easel.sdk.mlflow.http import same_server
from easel.sdk.mlflow.server import TrackingServer
from easel.testing.clock import FakeClock
from easel.testing.tls import own_certificate


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOKEN", "USERNAME", "PASSWORD", "URI"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    monkeypatch.delenv("EASEL_CA_FILE", raising=False)


def presented(address: str, token: str | None = None) -> str | None:
    """The header by which a server at this address learns who calls."""
    seen: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return httpx.Response(200, json={})

    server = TrackingServer(address, token, transport=httpx.MockTransport(answer))
    server.call("GET", "experiments/get", experiment_id="0")
    server.close()
    return seen[0]


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_credentials_in_the_address_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "theirs")
    assert presented("http://ann:se%3Acret@other:5000") == basic("ann", "se:cret")
    assert presented("http://other:5000") == "Bearer theirs"


@pytest.mark.parametrize("variable", ["TOKEN", "PASSWORD"])
def test_an_easel_token_of_the_environment_reaches_only_the_server_that_it_is_for(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """As the how-to has people set them; then they import from somewhere else."""
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ann")
    monkeypatch.setenv(f"MLFLOW_TRACKING_{variable}", "easel_secret")
    assert presented("http://other:5000") is None
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://easel.lab/mlflow/astro")
    for elsewhere in (
        "http://other:5000",
        "http://easel.lab/mlflow/astro",
        "https://easel.lab:8443/mlflow/a",
    ):
        assert presented(elsewhere) is None
    told = presented("https://EASEL.lab:443/mlflow/botany")
    assert told == ("Bearer easel_secret" if variable == "TOKEN" else basic("ann", "easel_secret"))


def test_variables_that_are_for_one_server_are_not_sent_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "theirs")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.lab:5000")
    assert presented("http://other:5000") is None
    assert presented("http://mlflow.lab:5000/") == "Bearer theirs"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "databricks://scope:prefix")
    assert presented("http://mlflow.lab:5000/") is None


@pytest.mark.parametrize(
    "address", ["http://other:99999", "http://ann:secret@other:port/mlflow", "http://[::1"]
)
def test_an_address_that_cannot_be_read_is_refused_in_words(address: str) -> None:
    with pytest.raises(InvalidInput, match="no address of an MLflow server") as refused:
        TrackingServer(address)
    assert "secret" not in str(refused.value)
    with pytest.raises(InvalidInput, match="no address"):
        same_server(address, "http://easel.lab")


class _Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"path": self.path}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def secured(folder: Path) -> Iterator[tuple[str, Path]]:
    """A server with a certificate of its own: its address, and the authority that signed it."""
    own = own_certificate(folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as made:
        made.socket = own.server.wrap_socket(made.socket, server_side=True)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{made.server_port}", own.authority
        made.shutdown()


def test_a_server_with_a_certificate_of_its_own_is_reached_by_its_authority(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with secured(tmp_path) as (address, authority):
        clock = FakeClock()
        stranger = TrackingServer(address, clock=clock)
        with pytest.raises(Misconfigured, match=r"certificate of https://.* is not trusted.*EASEL_CA_FILE"):
            stranger.call("GET", "experiments/get")
        assert clock.monotonic() == 0  # waiting makes no certificate better
        monkeypatch.setenv("EASEL_CA_FILE", str(authority))
        assert TrackingServer(address).call("GET", "x") == {"path": "/api/2.0/mlflow/x"}


def cut_off(whole: bytes, cuts: list[int], *, ranges: bool) -> tuple[httpx.MockTransport, list[str | None]]:
    """A server that breaks off answers after so many bytes, and the ranges that it was asked for."""
    asked: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        wanted = request.headers.get("range")
        asked.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and ranges else 0
        end = cuts.pop(0) if cuts else len(whole)

        def body() -> Iterator[bytes]:
            yield whole[start:end]
            if end < len(whole):
                raise httpx.ReadError("gone")

        return httpx.Response(206 if start else 200, content=body())

    return httpx.MockTransport(answer), asked


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_breaks_off_goes_on_where_it_stopped(ranges: bool) -> None:
    whole = bytes(range(256)) * 20
    transport, asked = cut_off(whole, [1000, 3000], ranges=ranges)
    server = TrackingServer("http://other", transport=transport, clock=FakeClock())
    assert b"".join(server.http.stream("/file")) == whole
    assert asked == [None, "bytes=1000-", "bytes=3000-"]


def test_a_download_that_never_ends_well_is_told() -> None:
    transport, asked = cut_off(b"x" * 9, [0, 0, 0], ranges=True)
    server = TrackingServer("http://other", attempts=3, transport=transport, clock=FakeClock())
    with pytest.raises(TryLater, match="http://other"):
        list(server.http.stream("/file"))
    assert len(asked) == 3


def test_an_upload_is_sent_again_from_its_beginning() -> None:
    got: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        got.append(request.read())
        if len(got) == 1:
            raise httpx.WriteError("gone")
        return httpx.Response(503 if len(got) == 2 else 200, json={})

    server = TrackingServer("http://other", transport=httpx.MockTransport(answer), clock=FakeClock())
    server.put_file("mlflow-artifacts:/0/a", "b.txt", lambda: iter([b"one", b"two"]))
    assert got == [b"onetwo"] * 3


def test_a_source_that_fails_is_not_taken_for_a_target_that_is_away() -> None:
    sent = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.read())
        return httpx.Response(200, json={})

    def chunks() -> Iterator[bytes]:
        yield b"one"
        raise EaselError("the disk is gone")

    server = TrackingServer("http://other", transport=httpx.MockTransport(answer), clock=FakeClock())
    with pytest.raises(EaselError, match="the disk is gone"):
        server.put_file("mlflow-artifacts:/0/a", "b.txt", chunks)
    assert sent == []
