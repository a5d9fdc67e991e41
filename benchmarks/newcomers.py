"""How long a newly fed app waits for its first model on a full pool, and whether anybody loses work by it.

    python -m benchmarks.newcomers [--tries 20] [--rows 12000] [--json PATH]

Starts `easel up` on an empty folder with two cores, feeds three apps whose trials take long and waits until each has a
model and both cores are busy. Then, again and again: an app is declared, fed 1,000 rows, and asked for its model; the time
counts from the end of the feed. In the end the books are read: every slice that was asked to give way must have ended
well and further than the one before, and no job of the three apps may have been lost, killed or begun anew.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from easel.sdk.client import Client
from easel.testing.server import running

BUSY = ("north", "south", "west")
LIMIT_S = 10.0


def table(rows: int, columns: int, classes: int, seed: int) -> tuple[str, list[tuple[Any, Any]]]:
    """A program and examples that nothing learns at once."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns))
    hidden = np.tanh(x @ rng.normal(size=(columns, 12))) @ rng.normal(size=(12, classes))
    labels = (hidden + rng.normal(size=hidden.shape)).argmax(1)
    fields = ", ".join(f"f{k}: number" for k in range(columns))
    names = ", ".join(f"c{k}" for k in range(classes))
    pairs = [
        ({f"f{k}": round(float(v), 4) for k, v in enumerate(row)}, f"c{label}")
        for row, label in zip(x, labels, strict=True)
    ]
    return f"input: {{{fields}}}\noutput: [{names}]", pairs


def feed(client: Client, name: str, rows: int, columns: int, classes: int, seed: int) -> None:
    program, pairs = table(rows, columns, classes, seed)
    client.apps.declare(name, program)
    client.apps.feed(name, pairs)


def wait_for_model(client: Client, name: str, limit: float) -> float:
    began = time.perf_counter()
    while client.apps.get(name).serving is None:
        if time.perf_counter() - began > limit:
            return float("inf")
        time.sleep(0.05)
    return time.perf_counter() - began


def wait_until_busy(client: Client, limit: float = 120.0) -> None:
    """Both cores run slices of apps that have a model."""
    began = time.perf_counter()
    while time.perf_counter() - began < limit:
        running_now = [t for name in BUSY for t in client.apps.trials(name) if t.state == "running"]
        if len(running_now) >= 2:
            return
        time.sleep(0.1)
    raise SystemExit("the pool is not busy: the three apps have nothing long to run")


def books(database: Path) -> dict[str, Any]:
    """What the records say of the busy apps' slices."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        asked = {
            row[0] for row in db.execute("select subject from events where kind = 'job.asked_to_give_way'")
        }
        trials = db.execute(
            "select t.app_id, t.name, t.job_id, t.share, t.examples, t.ended, j.state, j.lost, j.result, a.name"
            " from app_trials t join jobs j on j.id = t.job_id join apps a on a.id = t.app_id order by t.seq"
        ).fetchall()
    mine = [row for row in trials if row[9] in BUSY]
    lost = [row for row in mine if row[5] and (row[6] != "finished" or row[7])]
    reached: dict[tuple[str, str, int], float] = {}
    back, gave = [], 0
    for app, name, job, share, examples, ended, _, _, result, _ in mine:
        if not ended or result is None:
            continue
        told = json.loads(result)
        # one that was begun on the first part of a feed is another trial than that of the whole feed
        trial = (app, name, examples)
        if reached.get(trial, 0.0) > share:
            back.append({"job": job, "candidate": name, "from": reached[trial], "to": share})
        if job in asked and told.get("stopped") == "gave way":
            gave += 1
        reached[trial] = share
    resumed = sum(1 for row in mine if row[8] and json.loads(row[8]).get("resumed_epochs", 0) > 0)
    return {
        "slices of the busy apps": len(mine),
        "asked to give way": len(asked),
        "stopped at a checkpoint for it": gave,
        "gone on from a checkpoint": resumed,
        "lost, killed or failed": len(lost),
        "went back": len(back),
        "which": back,
    }


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--tries", type=int, default=20)
    arguments.add_argument("--rows", type=int, default=12_000)
    arguments.add_argument("--json", type=Path)
    options = arguments.parse_args()
    waits: list[float] = []
    with (
        tempfile.TemporaryDirectory() as home,
        running(Path(home), warm_trials="true", worker_vcpu="2") as server,
    ):
        root = server.client()
        root.projects.create("bench")
        client = root.in_project("bench")
        time.sleep(10)  # the libraries of trials are imported ahead
        for number, name in enumerate(BUSY):
            feed(client, name, options.rows, 16, 4, number)
        for name in BUSY:
            wait_for_model(client, name, 600.0)
        for number in range(options.tries):
            wait_until_busy(client)
            feed(client, f"new{number}", 1000, 8, 2, 100 + number)
            waits.append(wait_for_model(client, f"new{number}", 120.0))
            print(f"try {number}: {waits[-1]:.1f} s, load {os.getloadavg()[0]:.1f}", flush=True)
            client.apps.delete(f"new{number}")
        found = books(Path(home) / "home" / "easel.sqlite")
    within = sum(wait <= LIMIT_S for wait in waits)
    found |= {
        "first models within 10 s": f"{within} of {len(waits)}",
        "median, s": round(float(np.median(waits)), 2),
        "longest, s": round(max(waits), 2),
        "waits, s": [round(wait, 2) for wait in waits],
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(found, indent=1))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
