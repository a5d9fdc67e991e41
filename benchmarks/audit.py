"""What the audit costs: the server's processor time for a request, with the audit and without it, in turns.

    python -m benchmarks.audit [--rounds 60] [--requests 100]

Two servers of their own over SQLite get the same requests (nine of ten read a job, one submits one), each request first
the one and then the other, in turns, so that whatever else the machine does meets both alike; their processes' time is
read from the system. Merging, hashing and writing of entries, which the audit does beside the requests, counts. The
difference is told with its standard error over the rounds: without it one round says nothing.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
from starlette.types import Scope

from easel.flow.first_start import create_platform_admin
from easel.serve import audit, middleware
from easel.serve.app import create_app
from easel.serve.settings import Settings
from easel.store.engine import Store
from easel.store.migrate import migrate
from easel.store.noting import RequestNote

_SCHEDULED = 2
"""Of a process' clocks the one that the scheduler keeps, to the nanosecond (clock_getcpuclockid)."""
JOB = {"name": "x", "run": {"kind": "entry", "target": "m:f"}}


def serve(home: str, port: int, audited: bool) -> None:
    import uvicorn

    if not audited:
        begin = audit.begin_note

        def begin_kept(scope: Scope, request_id: str) -> RequestNote:
            note = begin(scope, request_id)
            note.kept = True  # so that no transaction writes it down
            return note

        vars(middleware)["begin_note"] = begin_kept
        vars(middleware)["is_audited"] = lambda scope: False
    app = create_app(Settings(home=Path(home)), Store(f"sqlite:///{home}/easel.sqlite"))
    uvicorn.run(app, port=port, log_config=None, access_log=False)


class Measured:
    """One server, and what it is asked."""

    def __init__(self, folder: Path, audited: bool) -> None:
        folder.mkdir(mode=0o700)
        store = Store(f"sqlite:///{folder}/easel.sqlite")
        migrate(store, backup=lambda _revision: None)
        token = create_platform_admin(store)
        store.close()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.process = multiprocessing.Process(target=serve, args=(str(folder), port, audited), daemon=True)
        self.process.start()
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=headers, timeout=60)
        while True:
            try:
                self.http.post("/projects", json={"name": "astro"}).raise_for_status()
                break
            except httpx.ConnectError:
                time.sleep(0.1)
        self.job = self.http.post("/projects/astro/jobs", json=JOB).json()["id"]

    def ask(self, number: int) -> None:
        if number % 10 == 0:
            self.http.post("/projects/astro/jobs", json=JOB).raise_for_status()
        else:
            self.http.get(f"/projects/astro/jobs/{self.job}").raise_for_status()

    def used(self) -> float:
        """Seconds that the server has run, threads that have ended included, by the clock that Linux keeps of it."""
        pid = self.process.pid
        assert pid is not None
        return time.clock_gettime((~pid << 3) | _SCHEDULED)


def measured(both: Sequence[Measured], requests: int) -> list[float]:
    """Seconds of processor time a request of each of them."""
    before = [each.used() for each in both]
    for number in range(requests):
        for each in both if number % 2 else reversed(both):
            each.ask(number)
    time.sleep(1.2)  # the entries of the last requests are written
    return [(each.used() - was) / requests for each, was in zip(both, before, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--requests", type=int, default=100)
    given = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    with tempfile.TemporaryDirectory() as place:
        both = [Measured(Path(place) / name, name == "audited") for name in ("audited", "plain")]
        measured(both, given.requests)  # warm
        found = [measured(both, given.requests) for _ in range(given.rounds)]
        for each in both:
            each.process.terminate()
            each.process.join()
    audited, plain = (statistics.mean(times) for times in zip(*found, strict=True))
    ratios = [math.log(one / other) for one, other in found]
    error = statistics.stdev(ratios) / math.sqrt(len(ratios))
    print(f"load average {os.getloadavg()[0]:.1f}; {given.rounds} rounds of {given.requests} requests each")
    print(
        f"audited {1000 * audited:.3f} ms a request, without {1000 * plain:.3f} ms: "
        f"{math.expm1(statistics.mean(ratios)):+.1%} ± {error:.1%}"
    )
    print("by round: " + ", ".join(f"{one / other - 1:+.1%}" for one, other in found))


if __name__ == "__main__":
    main()
