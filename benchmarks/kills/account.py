"""What became of everything that was acknowledged, and what is left of processes, mounts, groups and folders."""

from __future__ import annotations

import os
import shutil
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import select

from benchmarks.kills.load import APP, LINES, RESOURCES, RETRY, STUDY, Acknowledged, wait_until
from benchmarks.kills.parts import Installation, engine_workers
from easel.errors import NotFound
from easel.records.attempt import AttemptKey, EndReason
from easel.run.entries import JournalEntry, StateReached
from easel.run.journal import read_whole
from easel.sdk.client import Client
from easel.store.engine import Store
from easel.store.schema.jobs import job_attempts
from easel.store.schema.price import bill_lines


@dataclass
class Tally:
    """One round: what was done and what is wrong. `faults` names each thing that is not as it should be."""

    seed: int
    seconds: float = 0.0
    kills: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    journal_s: float = 0.0
    billed_s: float = 0.0

    def fault(self, kind: str, what: str) -> None:
        self.faults.setdefault(kind, []).append(what)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class JournalKeeper:
    """Keeps every journal by a second name, before its worker removes it."""

    def __init__(self, installation: Installation, folder: Path) -> None:
        self._installation, self.folder = installation, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="journals", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(0.05):
            self._look()

    def _look(self) -> None:
        for home in self._installation.attempt_homes():
            for journal in (home / "run" / "attempts").glob("*.journal"):
                kept = self.folder / journal.name
                try:
                    if not kept.exists():
                        os.link(journal, kept)
                except (FileNotFoundError, FileExistsError):
                    continue

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def seconds(self) -> dict[AttemptKey, tuple[float, bool]]:
        """How long each attempt held its device by its own journal, and whether the journal has an end."""
        found: dict[AttemptKey, tuple[float, bool]] = {}
        for path in self.folder.glob("*.journal"):
            entries, _ = read_whole(path)
            held = _held(entries)
            if held is not None:
                found[AttemptKey.parse(path.stem)] = (held, entries[-1].last)
        return found


def _held(entries: Iterable[JournalEntry]) -> float | None:
    first: float | None = None
    last = 0.0
    for entry in entries:
        if first is None and isinstance(entry.body, StateReached):
            first = entry.at
        last = entry.at
    return None if first is None else last - first


def settle(client: Client, done: Acknowledged, tally: Tally, patience_s: float) -> None:
    """Wait until everything that was acknowledged is over. What is not, while nothing else ends either, is stuck."""
    waiting = set(done.jobs.values())

    def some_over() -> bool:
        before = len(waiting)
        for job in sorted(waiting)[:200]:
            try:
                if client.jobs.get(job).about.over:
                    waiting.discard(job)
            except NotFound:
                waiting.discard(job)
        return len(waiting) < before

    while waiting and wait_until(some_over, patience_s):
        pass
    for job in waiting:
        tally.fault("jobs stuck", f"{job} {client.jobs.get(job).state}")
    if done.points and not wait_until(lambda: client.studies.get(STUDY).state == "finished", patience_s):
        tally.fault("study not finished", client.studies.get(STUDY).state)


def account_jobs(client: Client, done: Acknowledged, tally: Tally) -> None:
    retried = 0
    tags = {found.name: found.tags for found in client.lake.find("job")}
    for number, job_id in done.jobs.items():
        try:
            job = client.jobs.get(job_id)
        except NotFound:
            tally.fault("jobs missing", job_id)
            continue
        if job.state != "finished":
            tally.fault("jobs not finished", f"{job_id} {job.state}: {job.about.reason}")
            continue
        retried += job.about.attempt > 1
        lines = [line.text for line in job.logs()]
        if len(lines) != LINES or lines[0] != f"begin {number}" or lines[-1] != f"end {number}":
            tally.fault("lines lost or doubled", f"{job_id} has {lines}")
        if job.about.started_at is None or job.about.ended_at is None:
            tally.fault("times missing", job_id)
        if job.metrics().get("value") != 1:
            tally.fault("metrics lost or doubled", job_id)
        if tags.get(job_id, {}).get("number") != f"n{number}":
            tally.fault("tags lost", job_id)
        events = [event.kind for event in client.events.list(500, filter=[f"subject:eq:{job_id}"])]
        if events.count("job.finished") != 1:
            tally.fault("finished twice", job_id)
        said = client.lake.cat(_output_path(str(job.about.output_set)))
        if said.strip() != str(number).encode():
            tally.fault("outputs wrong", f"{job_id} left {said[:40]!r}")
    tally.counts |= {"jobs": len(done.jobs), "of them retried": retried, "log lines": LINES * len(done.jobs)}


def _output_path(reference: str) -> str:
    """Where a job's output of one file lies in its set."""
    return f"/{reference.partition(':')[0]}/number@{reference}"


def account_rest(client: Client, fed: Client, done: Acknowledged, tally: Tally) -> None:
    for path, data in done.uploads.items():
        try:
            if client.lake.cat(path) != data:
                tally.fault("uploads differ", path)
        except NotFound:
            tally.fault("uploads missing", path)
    shown = Counter(example.input["size"] for example in _examples(fed))
    for size in done.examples:
        if shown[size] != 1:
            tally.fault("examples missing or doubled", f"{size}: {shown[size]}")
    points = client.studies.points(STUDY) if done.points else []
    if len(points) != done.points:
        tally.fault("points missing or doubled", f"{len(points)} of {done.points}")
    tally.counts |= {"uploads": len(done.uploads), "examples": len(done.examples), "points": done.points}


def _examples(client: Client) -> list[Any]:
    return [client.apps.example(APP, each.digest) for each in client.apps.examples(APP)]


def account_bills(installation: Installation, keeper: JournalKeeper, tally: Tally) -> None:
    """Every attempt that is over is billed once, for the seconds of its journal."""
    store = Store(installation.database_url)
    journals = keeper.seconds()

    def all_billed() -> bool:
        with store.read() as tx:
            waiting = select(job_attempts.c.seq).where(job_attempts.c.billed.is_(False)).limit(1)
            return tx.execute(waiting).first() is None

    if not wait_until(all_billed, 60):
        tally.fault("bills not drawn up", "attempts wait for their bills")
    with store.read() as tx:
        attempts = tx.execute(select(job_attempts)).all()
        lines = tx.execute(select(bill_lines)).all()
    store.close()
    billed: Counter[AttemptKey] = Counter()
    for line in lines:
        billed[AttemptKey(line.job_id, line.attempt)] += line.seconds
    for row in attempts:
        key = AttemptKey(row.job_id, row.attempt)
        if row.held_at is None:
            if billed[key]:
                tally.fault("bills wrong", f"{key} held no device and was billed {billed[key]:.2f} s")
            continue
        known, complete = journals.get(key, (None, False))
        tally.billed_s += billed[key]
        cut_off = row.end_reason in (EndReason.DEVICE_LOST, EndReason.UNKNOWN_THERE)
        expected = row.seconds if known is None or not complete or cut_off else known
        tally.journal_s += expected
        if abs(billed[key] - expected) > 0.01 + 0.01 * expected:
            tally.fault("bills wrong", f"{key} ran {expected:.2f} s and was billed {billed[key]:.2f} s")
    tally.counts |= {"attempts billed": len(attempts), "journals kept": len(journals)}


def sweep(client: Client, installation: Installation, tally: Tally, patience_s: float) -> None:
    """Lets the next worker on an engine's machine come: it removes what killed ones left there."""
    if not installation.engine_starts_workers:
        return
    if not wait_until(lambda: not engine_workers(installation.addresses), patience_s):
        tally.fault("workers that do not end when idle", str(engine_workers(installation.addresses)))
    job = client.jobs.submit("true", resources=RESOURCES, retry=RETRY)
    if not wait_until(lambda: job.refresh().about.over, patience_s):
        tally.fault("jobs stuck", f"{job.id} {job.state}, the one after the kills")


def account_leftovers(installation: Installation, tally: Tally) -> None:
    """After everything was stopped: within some seconds nothing of it may be left on this machine."""
    wait_until(lambda: not list(_left(installation)), 20)
    for kind, what in _left(installation):
        tally.fault(kind, what)


def _left(installation: Installation) -> Iterator[tuple[str, str]]:
    homes = installation.attempt_homes()
    ours = [str(installation.folder), *map(str, homes)]
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = process.info["cmdline"] or [""]
        is_ours = any(folder in word for word in words for folder in ours)
        if process.pid != os.getpid() and is_ours and "postgres" not in words[0]:
            yield "processes left", f"{process.pid} {' '.join(words)[:120]}"
    for line in Path("/proc/mounts").read_text().splitlines():
        if any(folder in line.split()[1] for folder in ours):
            yield "mounts left", line.split()[1]
    for home in homes:
        for group in cgroups(home):
            yield "control groups left", group
        for folder in (home / "run" / "attempts").glob("*"):
            yield "folders left", str(folder)
        if installation.engine_starts_workers and home.exists():
            yield "homes of workers left", str(home)


def cgroups(home: Path) -> set[str]:
    """Control groups of attempts that the worker of this home made and that are still there."""
    mine = f"{zlib.crc32(bytes(home)):08x}"
    return {str(path) for path in Path("/sys/fs/cgroup").glob(f"**/easel-*-{mine}/*") if path.is_dir()}


def clean(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
