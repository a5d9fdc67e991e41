"""Machines of different speed in one pool, live: trials are chosen for a kind of machine and run on that kind."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
from tests.end_to_end.test_workers import join

from easel.testing.engine import until
from easel.testing.server import running

PROGRAM = "input: {size: number, weight: number, town: category}\noutput: [no, yes]"
BOTH = {("quick", True), ("slow", False)}
"""Something that was chosen for the fast machine ran there, and something else on the slow one."""


def trials(database: Path) -> list[tuple[str, dict[str, str]]]:
    """Where the app's trials that finished ran, and what they had asked of their machine."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        rows = db.execute(
            "select device, spec from jobs where kind = 'trial' and state = 'finished'"
        ).fetchall()
    return [(device, json.loads(spec).get("wants") or {}) for device, spec in rows]


def test_a_fast_and_a_slow_machine_are_both_given_trials_that_were_chosen_for_them(tmp_path: Path) -> None:
    """They differ only by what they say of themselves: what is predicted for the fast one is a quarter."""
    rng = np.random.default_rng(0)
    pairs = [
        ({"size": float(a), "weight": float(b), "town": "Bern"}, "yes" if a + b > 0 else "no")
        for a, b in rng.normal(size=(400, 2))
    ]
    with running(tmp_path, executor="remote") as server:
        root = server.client()
        root.projects.create("astro")
        ana, token = root.in_project("astro"), root.worker_tokens.create("lab").secret
        assert token is not None
        size = ("--vcpu", "1", "--memory-mb", "4096")
        workers = [join(server, "quick", token, *size, "--label", "speed=4")]
        workers.append(join(server, "slow", token, *size))
        try:
            until(lambda: sum(one.connected for one in root.queues.devices()) == 2)
            ana.apps.declare("flowers", PROGRAM)
            ana.apps.feed("flowers", pairs)
            kept = server.folder / "home" / "easel.sqlite"
            until(lambda: {(device, bool(wants)) for device, wants in trials(kept)} >= BOTH, 200)
            assert {device for device, wants in trials(kept) if wants} == {"quick"}
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(60)
