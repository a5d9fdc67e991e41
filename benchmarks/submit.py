"""How long a submission takes: a folder of 2,000 files (20 MB), unchanged, and with one file changed.

    python -m benchmarks.submit [--repeats 15]

A real server on this machine. `call` is `client.jobs.submit(code=folder)` in a process that has started; `command` is
`easel run --detach`, from the start of the interpreter to its end.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from easel.sdk.client import Client
from easel.testing.server import running

FILES, BYTES = 2000, 10_000
SMALL = {"vcpu": 0.5, "memory_mb": 256}


def make_folder(folder: Path) -> None:
    for number in range(FILES):
        file = folder / f"part{number // 100:02}" / f"module{number:04}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(BYTES // 2).hex().encode())
    (folder / ".gitignore").write_text("*.log\n")
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        named = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run([*named, *arguments], cwd=folder, check=True)


def processor() -> float:
    """Returns the processor seconds of this process and of the commands that it started and that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def timed(act: Callable[[], object], repeats: int) -> tuple[float, float, float]:
    """Returns median, largest, and the median of the caller's processor time with git's, in milliseconds."""
    found, own = [], []
    for _ in range(repeats):
        start, busy = time.perf_counter(), processor()
        act()
        own.append(1000 * (processor() - busy))
        found.append(1000 * (time.perf_counter() - start))
    return statistics.median(found), max(found), statistics.median(own)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--calls-only", action="store_true")
    given = parser.parse_args()
    repeats, calls_only = given.repeats, given.calls_only
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_CACHE_HOME"] = f"{place}/cache"
        folder = Path(place) / "project"
        make_folder(folder)
        (Path(place) / "server").mkdir()
        with running(Path(place) / "server") as server:
            root = server.client()
            root.projects.create("astro")
            client: Client = root.in_project("astro")
            root.in_project("astro").queues.change(max_active=0)  # they wait: only submitting is measured
            token = client.connection.http.headers["Authorization"].removeprefix("Bearer ")
            variables = {"EASEL_SERVER": server.address, "EASEL_TOKEN": token, "EASEL_PROJECT": "astro"}
            environment = {**os.environ, **variables}
            changing = folder / "part00" / "module0000.py"

            def call() -> None:
                client.jobs.submit(["python", "train.py"], code=folder, resources=SMALL)

            def command() -> None:
                argv = [sys.executable, "-m", "easel.cli.main", "run", "--detach", "--", "python", "train.py"]
                subprocess.run(argv, cwd=folder, env=environment, check=True, capture_output=True)

            def change() -> None:
                changing.write_bytes(os.urandom(BYTES // 2).hex().encode())

            def changed(act: Callable[[], None]) -> Callable[[], None]:
                def both() -> None:
                    change()
                    act()

                return both

            first = timed(call, 1)
            rows = [("first time, all files sent, call", first)]
            call()
            rows.append(("unchanged, call", timed(call, repeats)))
            rows.append(("one file changed, call", timed(changed(call), repeats)))
            if not calls_only:
                rows.append(("unchanged, command", timed(command, repeats)))
                rows.append(("one file changed, command", timed(changed(command), repeats)))
            print("| | median ms | largest ms | processor ms of the caller |\n|---|---|---|---|")
            for name, (median, largest, own) in rows:
                print(f"| {name} | {median:.0f} | {largest:.0f} | {own:.0f} |")
            print(f"load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
