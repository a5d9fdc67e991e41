"""A rolling upgrade under load: two servers and two controllers replaced one after the other behind a proxy.

    python -m benchmarks.rolling [--rate 200] [--jobs 50] [--quick]

Real processes over one PostgreSQL. The next release is this source with one more migration. Requests come due at the
asked rate whether or not earlier ones were answered, from 5 s before the upgrade until it is over, and each is sent once.
Printed: requests that failed, attempts that were lost, and how long answers took, from when each request was due.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from easel.sdk.client import Client
from easel.testing import postgres
from easel.testing.engine import until
from easel.testing.rolling import Traffic, installed

BEFORE_S = 5.0
SMALL = {"vcpu": 0.5, "memory_mb": 64}


def measure(folder: Path, database: str, rate: float, number: int) -> bool:
    with (
        installed(folder, database, vcpu=max(2, number // 2 + 1)) as lab,
        Client(lab.proxy.address, lab.token, attempts=12) as root,
    ):
        for name in ("traffic", "work"):
            root.projects.create(name)
        root.in_project("traffic").queues.change(max_active=0)
        wait = f"while [ ! -e {folder}/go ]; do sleep 1; done"
        work = root.in_project("work")
        jobs = [work.jobs.submit(["sh", "-c", wait], resources=SMALL) for _ in range(number)]
        until(lambda: all(job.refresh().state == "running" for job in jobs), 600)
        traffic = Traffic(lab.proxy.address, lab.token, "traffic", rate, clients=max(2, round(rate / 12)))
        begun = time.monotonic()
        with traffic.flowing():
            time.sleep(BEFORE_S)
            lab.upgrade_server(0)
            lab.upgrade_server(1)
            lab.upgrade_controllers()
            (folder / "go").touch()
            for job in jobs:
                job.wait()
            took = time.monotonic() - begun
        lost = sum(1 for job in jobs if (job.about.state, len(job.attempts())) != ("finished", 1))
    total = traffic.answered + len(traffic.failures)
    answers = sorted(traffic.seconds)
    print(f"load average {os.getloadavg()[0]:.1f}; the upgrade took {took - BEFORE_S:.0f} s")
    print(
        f"{total} requests came due, {total / took:.0f}/s (asked for: {rate:g}/s): {len(traffic.failures)} failed"
    )
    print(f"the last of them was answered {traffic.behind:.1f} s after the upgrade")
    print(f"{number} running jobs: {lost} attempts lost")
    print(
        f"answers: median {1000 * statistics.median(answers):.0f} ms, "
        f"99 % within {1000 * answers[int(0.99 * len(answers))]:.0f} ms, longest {1000 * answers[-1]:.0f} ms"
    )
    for failure in traffic.failures[:10]:
        print(" ", failure)
    return not traffic.failures and not lost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="20 requests/s and 5 jobs")
    given = parser.parse_args()
    rate, number = (20.0, 5) if given.quick else (given.rate, given.jobs)
    with tempfile.TemporaryDirectory() as place, postgres.running() as server:
        raise SystemExit(0 if measure(Path(place), server.create("rolling"), rate, number) else 1)


if __name__ == "__main__":
    main()
