"""How soon an app that is fed 60,000 pictures of 28 × 28 has a useful model, on a real server with two cores.

    python -m benchmarks.pictures [--count 60000] [--limit 300] [--json PATH]

The pictures are those of `train_sets/mnist_5k.csv.gz` under EASEL_DATA, four fifths of them shifted by up to two pixels and
made a little lighter or darker until there are enough; the rest is kept aside. The time counts from the end of the feed
(and, told beside, from its beginning) until the first model that gives the right answer for nine in ten of 500 pictures kept aside.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from easel.sdk.client import Client
from easel.testing.server import running

PROGRAM = "{input: {[Tensor[28, 28, 1]], []}, output: {[Tensor[10]], []}}"
USEFUL, ASKED = 0.9, 500


def data_folder() -> Path | None:
    """Where the training sets lie; None where they are not here."""
    here = Path(os.environ.get("EASEL_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data"))
    return here / "train_sets" if (here / "train_sets").is_dir() else None


def pictures(table: np.ndarray, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`count` pictures made from those of the table: shifted, lighter or darker; `(count, 28, 28, 1)` and labels."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(table), size=count)
    plain = table[rows, 1:].reshape(-1, 28, 28)
    shifts = rng.integers(-2, 3, size=(count, 2))
    light = rng.uniform(0.7, 1.0, size=count)
    made = np.stack([np.roll(one, tuple(by), (0, 1)) for one, by in zip(plain, shifts, strict=True)])
    return (made * light[:, None, None]).astype(np.uint8)[..., None], table[rows, 0].astype(int)


def accuracy(client: Client, name: str, x: np.ndarray, y: np.ndarray) -> float:
    """The share of right answers; a label is a number from 0 to 9, or text that reads so."""
    answers = client.apps.infer(name, [one.tolist() for one in x]).answers
    return float(np.mean([str(one["label"]) == str(label) for one, label in zip(answers, y, strict=True)]))


def trials(database: Path) -> list[str]:
    """What ran, in the order of the starts: how far, on how many examples, from when to when, and to what end."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        rows = db.execute(
            "select t.name, t.decision, t.examples, j.submitted_at, j.started_at, j.ended_at, j.state, t.quality, j.result"
            " from app_trials t join jobs j on j.id = t.job_id order by t.seq"
        ).fetchall()
    found = []
    first = min((row[3] for row in rows), default=0)
    for name, decision, examples, *times, state, quality, result in rows:
        part = json.loads(decision).get("slice") or {"share": 1.0}
        cost = json.loads(decision)["reasons"]["cost"]
        at = [f"{(one - first) / 1e6:.1f}" if one else "-" for one in times]
        inside = json.loads(result or "{}").get("seconds")
        found.append(
            f"{name} to {part['share']:.3f} of {examples}: predicted {cost:.1f} s, submitted, started, ended"
            f" {' '.join(at)}, fitting {inside or 0.0:.1f} s, {state} {quality}"
        )
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--count", type=int, default=60_000)
    arguments.add_argument("--limit", type=float, default=300.0, help="Seconds to wait for a useful model")
    arguments.add_argument("--json", type=Path)
    options = arguments.parse_args()
    folder = data_folder()
    if folder is None or not (folder / "mnist_5k.csv.gz").exists():
        sys.exit("SKIPPED: train_sets/mnist_5k.csv.gz is not here; set EASEL_DATA")
    with gzip.open(folder / "mnist_5k.csv.gz", "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", skiprows=1, dtype=np.uint8)
    table = table[np.random.default_rng(42).permutation(len(table))]
    aside, rest = table[:ASKED], table[len(table) // 5 :]
    x, y = pictures(rest, options.count)
    test_x, test_y = aside[:, 1:].reshape(-1, 28, 28, 1), aside[:, 0].astype(int)
    found: dict[str, Any] = {"pictures": options.count}
    with (
        tempfile.TemporaryDirectory() as home,
        running(Path(home), warm_trials="true", worker_vcpu="2") as server,
    ):
        root = server.client()
        root.projects.create("bench")
        client = root.in_project("bench")
        source = Path(home) / "pictures"
        source.mkdir()
        np.save(source / "x.npy", x)
        np.save(source / "y.npy", y)
        time.sleep(10)  # the libraries of trials are imported ahead
        client.apps.declare("digits", PROGRAM)
        began = time.perf_counter()
        client.apps.feed_path("digits", source)
        fed = time.perf_counter()
        found["feed, s"] = round(fed - began, 1)
        asked: str | None = None
        steps: list[dict[str, Any]] = []
        while time.perf_counter() - fed < options.limit:
            serving = client.apps.get("digits").serving
            if serving is not None and serving.model != asked:
                asked, now = serving.model, time.perf_counter()
                right = accuracy(client, "digits", test_x, test_y)
                steps.append({"after the feed, s": round(now - fed, 1), "right": round(right, 3)})
                print(steps[-1], flush=True)
                if right >= USEFUL:
                    found["useful after the feed, s"] = round(now - fed, 1)
                    found["useful after the first byte, s"] = round(now - began, 1)
                    break
            time.sleep(0.2)
        found["trials"] = trials(Path(home) / "home" / "easel.sqlite")
    found |= {"models": steps, "wanted, s": 60, "load": round(os.getloadavg()[0], 1)}
    print(json.dumps(found, indent=1))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
