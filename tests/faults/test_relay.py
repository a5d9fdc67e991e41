"""A machine that pulls work, when its worker or its node ends at the worst moment."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

from easel.clock import SystemClock
from easel.declare.job import Command
from easel.declare.resources import Room
from easel.run.executors.base import Away, Connected, Report
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


def test_an_order_that_was_lost_with_the_worker_is_taken_when_it_is_offered_again(tmp_path: Path) -> None:
    """The worker was killed before it read it: the server, which heard nothing, offers it as before."""
    started: list[str] = []

    class Killed(LocalExecutor):
        reports: ClassVar[list[Report]] = []

        def start(self, order: Order) -> None:
            started.append(order.key)

        def poll(self) -> list[Report]:
            found, self.reports[:] = list(self.reports), []
            return found

    def offered(key: str) -> wire.Orders:
        order = Order("job", int(key[-1]), "prj", Command(("true",)))
        given = wire.Given(offer=f"offer of {key}", order=ORDER.dump_python(order, mode="json"))
        return wire.Orders(session=1, start=[given])

    config = WorkerConfig(tmp_path, "box", Room(1.0, 512), str(tmp_path / "blobs"), warm=False)
    executor, woken = Killed(config, SystemClock(), lambda: None), threading.Event()
    relay = Relay(executor, Link("http://127.0.0.1:9", "no token"), About("box"), SystemClock(), woken)
    for key in ("job.1", "job.2", "job.3"):
        relay._apply_orders(offered(key))
    relay._apply_orders(wire.Orders(session=1, forget={"job.3": True}))  # it ended
    executor.reports.append(Away("killed"))
    executor.reports.append(Connected(Room(1.0, 512), frozenset({"job.2"}), {}))
    assert relay._poll_executor()
    assert set(relay._attempts) == {"job.2"}
    for key in ("job.1", "job.2", "job.3"):
        relay._apply_orders(offered(key))
    assert started == ["job.1", "job.2", "job.3", "job.1"], (
        "what has ended, and what it kept, is not begun again"
    )


def test_a_worker_that_was_started_again_is_told_again_what_must_end(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []

    class Told(LocalExecutor):
        reports: ClassVar[list[Report]] = []

        def kill(self, key: str, *, force: bool = False) -> None:
            told.append(("kill", key))

        def give_way(self, key: str) -> None:
            told.append(("give way", key))

        def poll(self) -> list[Report]:
            found, self.reports[:] = list(self.reports), []
            return found

    config = WorkerConfig(tmp_path, "box", Room(1.0, 512), str(tmp_path / "blobs"), warm=False)
    executor, woken = Told(config, SystemClock(), lambda: None), threading.Event()
    relay = Relay(executor, Link("http://127.0.0.1:9", "no token"), About("box"), SystemClock(), woken)
    orders = wire.Orders(session=1, kill={"job.1": False}, give_way=["job.2"])
    for _ in range(2):
        executor.reports.append(Connected(Room(1.0, 512), frozenset({"job.1", "job.2"}), {}))
        relay._poll_executor()
        for _ in range(2):
            relay._apply_orders(orders)
    assert told == [("kill", "job.1"), ("give way", "job.2")] * 2
