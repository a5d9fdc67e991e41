"""Work that is asked for while processes are killed. Only what was acknowledged is remembered."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from easel.errors import EaselError
from easel.sdk.client import Client

PROJECT, FEEDS, APP, STUDY = "kills", "feeds", "halves", "sweep"
RESOURCES = {"vcpu": 0.5, "memory_mb": 128}
RETRY = {"lost": 50, "failed": 50}
LINES = 4
STUDY_TEXT = """
name: {name}
job:
  command: sh -c 'sleep 0.2; echo "[EASEL_METRIC] accuracy=0.{{rate}}"'
  resources: {{vcpu: 0.5, memory_mb: 128}}
  retry: {{lost: 50, failed: 50}}
space:
  - {{name: rate, type: integer, low: 1, high: 99}}
goal: {{maximise: accuracy, budget: {{count: {count}}}}}
strategy: random
seed: 3
"""


@dataclass
class Acknowledged:
    """What the servers said they have: jobs by number, uploads by path, examples, points of a study."""

    jobs: dict[int, str] = field(default_factory=dict)
    uploads: dict[str, bytes] = field(default_factory=dict)
    examples: set[float] = field(default_factory=set)
    points: int = 0
    refused: int = 0
    """Requests that failed and were made again."""


def script(number: int, seconds: float) -> str:
    """A job that says four lines, a metric and a tag, and leaves its number."""
    return (
        f"echo begin {number}; echo '[EASEL_METRIC] value={number}'; echo '[EASEL_TAG] job number:n{number}'; "
        f"sleep {seconds:.2f}; echo {number} > $EASEL_OUTPUT/number; echo end {number}"
    )


class Load:
    """Threads that ask for work until they are told to stop. Seeded: what is asked for, not when it is heard."""

    def __init__(self, make: Callable[[int], Client], seed: int, *, points: int, trials: bool) -> None:
        self._make, self._seed, self._points, self._trials = make, seed, points, trials
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.done = Acknowledged()

    def start(self) -> None:
        with self._make(0) as root:
            root.projects.create(PROJECT)
            here = root.in_project(PROJECT)
            root.projects.create(FEEDS)
            fed = root.in_project(FEEDS)
            if not self._trials:  # what is fed must be there; nothing is learned of it
                fed.queues.change(paused=True)
            fed.apps.declare(APP, "input: {size: number}\noutput: [no, yes]")
            if self._points:
                here.studies.create_from(STUDY_TEXT.format(name=STUDY, count=self._points))
                self.done.points = self._points
        for number, act in enumerate((self._upload, self._submit, self._submit, self._feed)):
            thread = threading.Thread(target=self._loop, args=(number, act), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(120)

    def _loop(self, number: int, act: Callable[[Client, random.Random, int], None]) -> None:
        with self._make(number) as root:
            client = root.in_project(FEEDS if act == self._feed else PROJECT)
            count = 0
            while not self._stopping.is_set():
                rng = random.Random(f"{self._seed}-{number}-{count}")  # the same however often it is asked
                try:
                    act(client, rng, number + 4 * count)
                    count += 1
                except EaselError:
                    self.done.refused += 1
                self._stopping.wait(rng.uniform(0.1, 0.8))

    def _submit(self, client: Client, rng: random.Random, number: int) -> None:
        text = script(number, rng.uniform(0.3, 3.0))
        key = f"job-{self._seed}-{number}"
        job = client.jobs.submit(text, name=f"j{number}", resources=RESOURCES, retry=RETRY, key=key)
        self.done.jobs[number] = job.id

    def _upload(self, client: Client, rng: random.Random, number: int) -> None:
        data = rng.randbytes(rng.randrange(1, 200_000))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"f{number}.bin"
            file.write_bytes(data)
            client.lake.upload(file, "/data/")
        self.done.uploads[f"/data/f{number}.bin"] = data

    def _feed(self, client: Client, rng: random.Random, number: int) -> None:
        sizes = [round(rng.uniform(-1, 1), 9) for _ in range(3)]
        client.apps.feed(APP, [({"size": size}, "yes" if size > 0 else "no") for size in sizes])
        self.done.examples |= set(sizes)


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Whether it came to pass in this time."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        try:
            if done():
                return True
        except EaselError:
            pass
        time.sleep(0.3)
    return False
