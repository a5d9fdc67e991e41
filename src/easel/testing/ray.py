"""A real Ray cluster for tests: a head without CPUs and nodes beside it, each a `ray start` of its own."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from easel.testing.engine import until

_PROGRAM = Path(sys.executable).parent / "ray"
_SMALL = ("--disable-usage-stats", "--include-log-monitor=false", "--object-store-memory", str(80 << 20))


@dataclass
class RayCluster:
    """`token_file` is what a driver needs to be let in."""

    folder: Path
    port: int
    token_file: Path
    nodes: list[int] = field(default_factory=list)
    head: int | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def variables(self) -> dict[str, str]:
        return {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token_file),
            # How long nodes and drivers look for a head that is gone; a minute unless told.
            "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
        }

    def start_head(self) -> None:
        words = ["--head", f"--port={self.port}", "--num-cpus=0", "--include-dashboard=false"]
        self.head = self._start(*words, f"--temp-dir={self.folder}/t")

    def add_node(self, cpus: int = 2, memory_mb: int = 2048, gpus: int = 0) -> int:
        """A further node; returns the pid of its raylet. GPUs are declared: Ray hands out numbers of them."""
        size = (f"--num-cpus={cpus}", f"--memory={memory_mb << 20}", f"--num-gpus={gpus}")
        pid = self._start(f"--address={self.address}", *size)
        self.nodes.append(pid)
        return pid

    def _start(self, *words: str) -> int:
        before = self._raylets()
        program = [str(_PROGRAM)] if _PROGRAM.exists() else [sys.executable, "-m", "ray.scripts.scripts"]
        done = subprocess.run(
            [*program, "start", *words, *_SMALL, "--node-ip-address=127.0.0.1"],
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"ray start failed: {done.stdout[-1500:]}{done.stderr[-1500:]}")
        (fresh,) = self._raylets() - before
        return fresh

    def _raylets(self) -> set[int]:
        """Returns the raylets of this cluster: there may be others on the machine."""
        found = psutil.process_iter(["name", "cmdline"])
        return {
            process.pid
            for process in found
            if (process.info["name"] or "").startswith("raylet")
            and re.search(rf":{self.port}\b", " ".join(process.info["cmdline"] or ()))
        }

    def kill_node(self, pid: int) -> None:
        """The node's raylet and everything that it started end at once, as if the machine had."""
        _kill_tree(pid)
        if pid in self.nodes:
            self.nodes.remove(pid)

    def kill_head(self) -> None:
        for process in psutil.process_iter(["cmdline"]):
            words = " ".join(process.info["cmdline"] or ())
            if str(self.folder) in words and "gcs_server" in words:
                process.kill()
                process.wait()
        if self.head is not None:
            _kill_tree(self.head)
            self.head = None

    def restart_head(self) -> None:
        """Restarts the head without what it knew. Nodes of the old one end when they have looked in vain."""
        self.kill_head()
        until(lambda: not self._raylets(), 120)
        self.nodes.clear()
        self.start_head()

    def stop(self) -> None:
        for pid in [*self.nodes, *([self.head] if self.head else [])]:
            _kill_tree(pid)
        for process in psutil.process_iter(["cmdline"]):
            if str(self.folder) in " ".join(process.info["cmdline"] or ()):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _kill_tree(pid: int) -> None:
    """Ray's own processes, all at once. Workers of ours, and the jobs under them, notice: that is what is tested.

    A job's process that were killed beside them would end by that, if its agent saw it before it heard of the rest.
    """
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        found = _of_ray(process)
        for each in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGKILL)


def _of_ray(process: psutil.Process) -> list[psutil.Process]:
    """A process of Ray and its children, as far down as they are Ray's."""
    found = [process]
    for child in process.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "easel.cli.main" not in child.cmdline():
                found += _of_ray(child)
    return found


@contextlib.contextmanager
def running(nodes: int = 1) -> Iterator[RayCluster]:
    """A head and nodes of 2 CPUs and 2 GiB each. One that is not up in Ray's 30 s is started anew."""
    cluster = _started(nodes, tries=3)
    try:
        yield cluster
    finally:
        cluster.stop()


def _started(nodes: int, tries: int) -> RayCluster:
    folder = Path(tempfile.mkdtemp(prefix="ez-ray-", dir="/tmp"))  # short: Ray's sockets lie in it
    token_file = folder / "token"
    token_file.touch(mode=0o600)
    token_file.write_text(secrets.token_hex(32))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    cluster = RayCluster(folder, port, token_file)
    try:
        cluster.start_head()
        for _ in range(nodes):
            cluster.add_node()
    except BaseException as error:
        cluster.stop()
        if tries == 1 or not isinstance(error, RuntimeError | subprocess.TimeoutExpired):
            raise
        return _started(nodes, tries - 1)
    return cluster
