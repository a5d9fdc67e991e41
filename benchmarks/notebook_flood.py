"""A notebook's cell that prints 1 GB: how long it takes, what is kept of it, and what it costs the platform in memory.

    python -m benchmarks.notebook_flood [--mb 1000]

A real server with its own worker. The cell prints lines of 100 bytes, a metric among the last; a second cell follows.
The peer is a plain program that prints the same as a job of its own. Memory is the largest resident set of the server
and its worker, and of all processes of the job, looked at four times a second.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from easel.sdk.client import Client
from easel.sdk.jobs import JobHandle
from easel.testing.server import ServerProcess, running

FLOOD = """\
line = "x" * 99
for _ in range({lines}):
    print(line)
print("[EASEL_METRIC] loss=0.5")
"""
RESOURCES = {"vcpu": 1.0, "memory_mb": 1024}


@dataclass
class Memory:
    """The most that each process of the platform held, in MB."""

    server: ServerProcess
    most: dict[str, float] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        while not self.over.wait(0.25):
            for name, pid in (("server", self.server.pid), ("worker", self.server.worker_pid)):
                try:
                    held = 0.0 if pid is None else psutil.Process(pid).memory_info().rss / 2**20
                except psutil.Error:
                    continue
                self.most[name] = max(self.most.get(name, 0.0), held)


def folder_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def told(name: str, job: JobHandle, seconds: float, memory: Memory) -> None:
    lines = list(job.logs())
    shown = sum(len(line.text) + 1 for line in lines) / 2**20
    usage = job.about.usage
    metric = [point.value for point in job.series("loss")]
    print(
        f"| {name} | {job.state} | {seconds:.1f} | {shown:.1f} | {metric} | "
        f"{0.0 if usage is None else usage.peak_memory_mb:.0f} | {memory.most.get('server', 0.0):.0f} | "
        f"{memory.most.get('worker', 0.0):.0f} |",
        flush=True,
    )


def run(server: ServerProcess, name: str, job: JobHandle) -> None:
    memory = Memory(server)
    watch = threading.Thread(target=memory.watch, daemon=True)
    watch.start()
    start = time.perf_counter()
    job.wait(3600, check=False)
    took = time.perf_counter() - start
    memory.over.set()
    watch.join()
    told(name, job, took, memory)


def submit_notebook(client: Client, folder: Path, source: str) -> JobHandle:
    folder.mkdir()
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "metadata": {},
            "source": text.splitlines(keepends=True),
            "outputs": [],
            "execution_count": None,
        }
        for text in (source, "print('after')")
    ]
    body = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    (folder / "flood.ipynb").write_text(json.dumps(body))
    return client.jobs.submit(notebook="flood.ipynb", code=folder, resources=RESOURCES)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    words.add_argument("--mb", type=int, default=1000, help="millions of bytes to print")
    given = words.parse_args()
    source = FLOOD.format(lines=given.mb * 10_000)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        (place / "server").mkdir()
        with running(place / "server") as server:
            server.client().projects.create("lab")
            client = server.client(project="lab")
            print("| what prints | ended | s | MB of log kept | metric | MB: job | server | worker |")
            print("|---|---|---:|---:|---|---:|---:|---:|", flush=True)
            plain = client.jobs.submit(["python3", "-c", source], resources=RESOURCES)
            run(server, "a program", plain)
            job = submit_notebook(client, place / "work", source)
            run(server, "a notebook's cell", job)
            start = time.perf_counter()
            notebook = job.notebook()
            took = 1000 * (time.perf_counter() - start)
            size = len(json.dumps(notebook)) / 2**20
            said = "".join(out.get("text", "") for out in notebook["cells"][1]["outputs"]).strip()
            print(
                f"\nthe executed notebook: {size:.2f} MB, fetched in {took:.0f} ms; its second cell printed {said!r}"
            )
            home = folder_mb(place / "server" / "home")
            print(f"the server's folder afterwards: {home:.0f} MB; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
