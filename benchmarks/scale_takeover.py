"""Kill -9 the active controller, again and again, and see how long it takes until the other one acts.

PostgreSQL, a server and two controllers are real, in processes of their own, with the lease that is the default. Killed
at random moments: whether the lease was just renewed or is about to be is most of the difference.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from easel.serve.settings import Settings
from easel.store import leases
from easel.store.engine import Store
from easel.testing import postgres
from easel.testing.engine import until
from easel.testing.server import ServerProcess


def start_controller(server: ServerProcess) -> subprocess.Popen[bytes]:
    with (server.folder / "controllers.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "easel.cli.main", "controller"],
            env=server.environment,
            stdout=log,
            stderr=log,
        )


def takeover(quick: bool, folder: Path) -> dict[str, Any]:
    """Seconds from the kill until the lease has another holder, whose process is the one that stood by."""
    rounds = 1 if quick else 12
    rng = np.random.default_rng(0)
    times: list[float] = []
    with postgres.running() as database:
        url = database.create("takeover")
        server = ServerProcess(folder, url, command="serve", executor="remote")
        server.start()
        store = Store(url)
        processes: dict[int, subprocess.Popen[bytes]] = {}

        def holder() -> int | None:
            with store.read() as tx:
                found = leases.stand(tx, "controller")
            return int(found[0].split(":")[1]) if found else None

        def join() -> None:
            made = start_controller(server)
            processes[made.pid] = made

        try:
            join()
            until(lambda: holder() in processes, 120)
            for _ in range(rounds):
                join()
                # Until it surely stands by, and then some: kills come at any phase of the lease.
                time.sleep(6.0 + rng.uniform(0.0, 4.0))
                active = processes.pop(holder() or 0)
                active.kill()
                began = time.perf_counter()
                until(lambda: holder() in processes, 120)
                times.append(time.perf_counter() - began)
                active.wait()
        finally:
            for process in processes.values():
                process.terminate()
            for process in processes.values():
                process.wait(60)
            store.close()
            server.stop()
    return {
        "rounds": rounds,
        "lease_s": Settings().controller_lease_s,
        "median_s": round(float(np.median(times)), 2),
        "longest_s": round(max(times), 2),
    }
