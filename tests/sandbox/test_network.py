"""A job with leave reaches public addresses through the proxy, and nothing of this machine."""

from __future__ import annotations

import http.server
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.run.egress import Allowed, is_public
from easel.run.sandbox import UserProgram, Walls, probe, start

ASK = """
import sys, urllib.error, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://127.0.0.1:3128"}))
for address in sys.argv[1:]:
    try:
        print(opener.open(address, timeout=10).read().decode())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode().strip())
"""


class _Here(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the host's own service")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Here) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made.server_port
        made.shutdown()


def ask(folder: Path, allowed: Allowed, *addresses: str) -> list[str]:
    bwrap = probe()
    if bwrap is None:
        pytest.skip("bubblewrap does not work here: apt install bubblewrap")
    for name in ("work", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    walls = Walls(folder / "work", folder / "tmp", None, network=True)
    argv = ["/usr/bin/python3", "-c", ASK, *addresses]
    program = UserProgram("asks", argv, {"PATH": "/usr/bin:/bin"}, walls)
    process = start(bwrap, program, stderr=subprocess.STDOUT, allowed=allowed)
    return process.communicate(timeout=60)[0].decode().splitlines()


def test_the_proxy_connects_a_job_that_has_no_network_of_its_own(tmp_path: Path, service: int) -> None:
    assert ask(tmp_path, lambda _: True, f"http://127.0.0.1:{service}/") == ["the host's own service"]


def test_it_refuses_this_machine_and_link_local_addresses(tmp_path: Path, service: int) -> None:
    addresses = [f"http://127.0.0.1:{service}/", f"http://localhost:{service}/", "http://169.254.169.254/"]
    said = ask(tmp_path, is_public, *addresses, "http://[::ffff:127.0.0.1]/", "http://10.0.0.1/")
    assert len(said) == 5
    assert all(line.startswith("403 jobs may not connect to") for line in said), said


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("127.0.0.1", False),
        ("::1", False),
        ("10.1.2.3", False),
        ("192.168.0.1", False),
        ("172.16.0.1", False),
        ("169.254.169.254", False),
        ("fe80::1%eth0", False),
        ("fd00:ec2::254", False),
        ("::ffff:127.0.0.1", False),
        ("2002:7f00:1::", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
    ],
)
def test_only_public_addresses_are_connected_to(address: str, public: bool) -> None:
    assert is_public(address) is public
