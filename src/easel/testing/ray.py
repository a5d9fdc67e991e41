"""A real Ray cluster for tests: a head without CPUs and nodes beside it, each a `ray start` of its own."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from easel.testing.ending import end_orderly_when_told
from easel.testing.engine import until
from easel.testing.ports import free_port

_PROGRAM = Path(sys.executable).parent / "ray"
_SMALL = ("--disable-usage-stats", "--include-log-monitor=false", "--object-store-memory", str(80 << 20))
_START_S = 240
"""How long a node may take to start: on a busy machine nearly all of it is what Ray's own processes import."""
PATIENT = {
    "RAY_raylet_start_wait_time_s": "200",  # until a node is known to the head; half a minute unless told
    "RAY_agent_register_timeout_ms": "200000",
    "RAY_worker_register_timeout_seconds": "200",
    "RAY_gcs_server_port_wait_time_s": "120",
    "RAY_gcs_rpc_server_connect_timeout_s": "60",
    "RAY_py_gcs_connect_timeout_s": "120",
    # Actors start processes when they come; more of them beforehand would only compute beside the tests.
    "RAY_enable_worker_prestart": "false",
    "RAY_prestart_worker_first_driver": "false",
}
"""Ray's own settings for a machine that is busy with other tests."""


def _agents_ports() -> list[str]:
    """Returns ports for the agents of a node. A raylet that is not told them ends itself when the agents, which import
    for long, do not say theirs within half a minute: that limit cannot be set.
    """
    names = ("dashboard-agent-listen", "dashboard-agent-grpc", "metrics-export", "runtime-env-agent")
    return [f"--{name}-port={free_port()}" for name in names]


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
            **PATIENT,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token_file),
            # How long nodes and drivers look for a head that is gone; a minute unless told.
            "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
        }

    def start_head(self) -> None:
        words = ["--head", f"--port={self.port}", "--num-cpus=0", "--include-dashboard=false", "--no-monitor"]
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
            [*program, "start", *words, *_SMALL, "--node-ip-address=127.0.0.1", *_agents_ports()],
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            timeout=_START_S,
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
    end_orderly_when_told()
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
    cluster = RayCluster(folder, free_port(), token_file)
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
