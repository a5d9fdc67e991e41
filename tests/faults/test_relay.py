"""A machine that pulls work, when its worker dies at the worst moment."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from pathlib import Path

from easel.clock import SystemClock
from easel.declare.resources import Room
from easel.run.executors.local import LocalExecutor
from easel.run.remote.depot import Link
from easel.run.remote.relay import About, Relay
from easel.run.worker_config import WorkerConfig
from easel.testing.engine import until


def test_a_worker_that_dies_before_it_answers_is_started_again() -> None:
    home = Path(tempfile.mkdtemp(prefix="ez-"))  # the name of a socket must be short
    (home / "run").mkdir()
    dying = socket.socket(socket.AF_UNIX)
    dying.bind(str(home / "run" / "worker.sock"))
    dying.listen(1)
    config = WorkerConfig(home, "box", Room(1.0, 512), str(home / "blobs"), warm=False)
    woken, stopping = threading.Event(), threading.Event()
    executor = LocalExecutor(config, SystemClock(), woken.set)
    about = About("box", "remote", {}, "127.0.0.1", None, None)
    relay = Relay(executor, Link("http://127.0.0.1:9", "no token"), about, SystemClock(), woken)
    running = threading.Thread(target=relay.run, args=(stopping,))
    running.start()
    try:
        peer, _ = dying.accept()
        (home / "run" / "worker.sock").unlink()
        dying.close()
        peer.close()
        until(lambda: (home / "run" / "worker.lock").exists())
        assert executor.worker is not None
        assert executor.worker.poll() is None
    finally:
        stopping.set()
        running.join(60)
    assert not running.is_alive()
    shutil.rmtree(home)
