"""A machine that pulls work, when its worker or its node ends at the worst moment."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from easel.clock import SystemClock
from easel.declare.job import Command
from easel.declare.resources import Room
from easel.run.executors.local import LocalExecutor
from easel.run.order import ORDER, Order
from easel.run.remote.depot import Link
from easel.run.remote.relay import About, Relay
from easel.run.worker_config import WorkerConfig
from easel.testing.engine import until
from easel.wire import worker as wire


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


def test_an_order_that_comes_when_the_worker_was_told_to_end_is_left_to_another() -> None:
    """As on a node of a cluster that has just died: whatever it took now would be lost with it."""
    home = Path(tempfile.mkdtemp(prefix="ez-"))
    (home / "run").mkdir()
    woken, stopping = threading.Event(), threading.Event()
    order = ORDER.dump_python(Order("job", 2, "prj", Command(("true",))), mode="json")
    late = wire.Orders(session=1, start=[wire.Given(offer="1", order=order)])
    said: list[wire.Exchange] = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = wire.Exchange.model_validate_json(self.rfile.read(int(self.headers["Content-Length"])))
            said.append(asked)
            if asked.wait_s:
                stopping.set()  # the signal comes between the question and its answer
            answer = (late if asked.wait_s else wire.Orders(session=1)).model_dump_json().encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever).start()
        config = WorkerConfig(home, "box", Room(1.0, 512), str(home / "blobs"), warm=False)
        executor = LocalExecutor(config, SystemClock(), woken.set)
        link = Link(f"http://127.0.0.1:{server.server_port}", "no token")
        Relay(executor, link, About("box"), SystemClock(), woken).run(stopping)
        server.shutdown()
    assert said[-1].leaving
    assert said[-1].attempts == {}
    assert not list((home / "run" / "attempts").glob("job.2*"))
    shutil.rmtree(home)


def test_a_slice_is_asked_to_give_way_once_however_often_the_server_says_so(tmp_path: Path) -> None:
    asked: list[str] = []

    class Asked(LocalExecutor):
        def give_way(self, key: str) -> None:
            asked.append(key)

    config = WorkerConfig(tmp_path, "box", Room(1.0, 512), str(tmp_path / "blobs"), warm=False)
    executor = Asked(config, SystemClock(), lambda: None)
    link, woken = Link("http://127.0.0.1:9", "no token"), threading.Event()
    relay = Relay(executor, link, About("box"), SystemClock(), woken)
    relay._attempts["job_a.1"], relay._number = 0, 1
    for _ in range(2):
        relay._apply_orders(wire.Orders(session=1, give_way=["job_a.1", "job_unknown.1"]))
    assert asked == ["job_a.1"]
    assert relay._say([], 0.0, leaving=False).gave_way == ["job_a.1"]
    relay._apply_orders(wire.Orders(session=1, forget={"job_a.1": True}))
    assert relay._say([], 0.0, leaving=False).gave_way == []
