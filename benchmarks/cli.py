"""How long commands take from the start of the interpreter to its end, and how much of that the server answers.

    python -m benchmarks.cli [--repeats 9] [--json PATH]

A real server on this machine with an app, jobs, a study and files. Each command is run in turn with the others, so that a
busy moment hurts all of them; the processor time is that of the command's own process. The target is 250 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from easel.sdk.client import Client
from easel.testing.server import ServerProcess, running

TARGET_MS = 250.0
SMALL = {"vcpu": 0.5, "memory_mb": 256}
PROGRAM = "{input: {[Tensor[2]], []}, output: {[Tensor[2]], []}}"
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("--help",),
    ("whoami",),
    ("projects", "ls"),
    ("users", "ls"),
    ("jobs", "ls"),
    ("jobs", "show", "JOB"),
    ("logs", "JOB"),
    ("why", "JOB"),
    ("run", "--detach", "--no-code", "--", "true"),
    ("apps", "ls"),
    ("apps", "show", "flowers"),
    ("studies", "ls"),
    ("queues", "ls"),
    ("devices",),
    ("ls", "/"),
    ("filesets", "ls"),
    ("find", "job", "accuracy > 0.9"),
    ("estimate", "--help"),
    ("events",),
    ("bills", "report"),
)


def prepare(client: Client) -> str:
    """Make something to list; the id of a job that has ended."""
    line = 'print("[EASEL_METRIC] accuracy=0.95")'
    jobs = [client.jobs.submit(["python", "-c", line], resources=SMALL) for _ in range(5)]
    client.apps.declare("flowers", PROGRAM)
    for job in jobs:
        job.wait(120)
    return jobs[0].id


def run_once(argv: tuple[str, ...], environment: dict[str, str]) -> tuple[float, float, int]:
    """Wall-clock and processor milliseconds of one command, and its exit code."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "easel.cli.main", *argv], env=environment, capture_output=True, check=False
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1000 * wall, 1000 * busy, done.returncode


def measure(server: ServerProcess, repeats: int) -> list[dict[str, object]]:
    """Run every command `repeats` times, in turn."""
    root = server.client()
    root.projects.create("lab")
    client = root.in_project("lab")
    job = prepare(client)
    token = client.connection.authorization.removeprefix("Bearer ")
    named = {"EASEL_SERVER": server.address, "EASEL_TOKEN": token, "EASEL_PROJECT": "lab"}
    environment = {**os.environ, **named}
    commands = [tuple(job if word == "JOB" else word for word in argv) for argv in COMMANDS]
    taken: dict[tuple[str, ...], list[tuple[float, float, int]]] = {argv: [] for argv in commands}
    for _ in range(repeats + 1):
        for argv in commands:
            taken[argv].append(run_once(argv, environment))
    rows: list[dict[str, object]] = []
    for argv, asked in zip(commands, COMMANDS, strict=True):
        found = taken[argv][1:]  # the first one fills the caches of the system
        rows.append(
            {
                "command": " ".join(("easel", *asked)),
                "median_ms": statistics.median(wall for wall, _, _ in found),
                "processor_ms": statistics.median(busy for _, busy, _ in found),
                "exit": max(code for _, _, code in found),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, running(Path(place)) as server:
        rows = measure(server, given.repeats)
    print("| command | median ms | processor ms | < 250 ms | exit |\n|---|---:|---:|---|---:|")
    for row in rows:
        met = "met" if float(str(row["median_ms"])) < TARGET_MS else "missed"
        median, busy = float(str(row["median_ms"])), float(str(row["processor_ms"]))
        print(f"| `{row['command']}` | {median:.0f} | {busy:.0f} | {met} | {row['exit']} |")
    print(f"load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
