"""Studies of the thesis's experiments, many at once on many cores, and their pages from what was collected.

`OMP_NUM_THREADS=1 python -m benchmarks.papers.side_by_side --jobs 16 --out FOLDER [--seconds 540]` runs what FOLDER
does not have yet, one line of JSON for each study as soon as it ends, so that nothing is lost when time is up and the
same command goes on. `python -m benchmarks.papers.side_by_side --merge FOLDER …` writes the pages.
Needs NumPy, SciPy and pydantic; the pages need matplotlib.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from benchmarks.papers import fabulinus_search, fabulinus_two_fidelities, nephele_search

Row = dict[str, object]
EXPERIMENTS: dict[str, Callable[[str, int], Row]] = {
    "nephele": nephele_search.one,
    "fabulinus": fabulinus_search.one,
    "two_fidelities": fabulinus_two_fidelities.one,
}
# In the order in which they are worth having, with the number of seeds of each.
PLAN: tuple[tuple[str, str, int], ...] = (
    ("fabulinus", "ei-c", 20),
    ("fabulinus", "ei", 20),
    ("fabulinus", "fabulinus", 20),
    ("fabulinus", "auto", 20),
    ("nephele", "nephele", 100),
    ("nephele", "lynceus", 100),
    ("nephele", "cherrypick", 100),
    ("nephele", "random", 100),
    ("fabulinus", "fabolas", 10),
    ("two_fidelities", "hyperband", 60),
    ("two_fidelities", "bohb", 60),
    ("two_fidelities", "random", 20),
    ("two_fidelities", "auto", 60),
    ("nephele", "nephele-drop", 100),
    ("fabulinus", "fabulinus-paper-kernel", 10),
    ("nephele", "nephele-h1", 100),
    ("nephele", "nephele-h2", 100),
)


def perform(experiment: str, name: str, seed: int) -> Row:
    return {"experiment": experiment, "name": name, "seed": seed, **EXPERIMENTS[experiment](name, seed)}


def tasks(known: set[tuple[str, str, int]], only: str | None, most: int) -> Iterator[tuple[str, str, int]]:
    for experiment, name, seeds in PLAN:
        if only is None or only == experiment:
            for seed in range(min(seeds, most)):
                if (experiment, name, seed) not in known:
                    yield experiment, name, seed


def read(folder: Path) -> list[Row]:
    rows: dict[tuple[object, object, object], Row] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off when time was up
            rows[row["experiment"], row["name"], row["seed"]] = row
    return list(rows.values())


def collect(folder: Path, jobs: int, seconds: float, only: str | None, most: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    known = {(str(r["experiment"]), str(r["name"]), int(str(r["seed"]))) for r in read(folder)}
    began = time.monotonic()
    waiting = tasks(known, only, most)
    running: set[Future[Row]] = set()
    with (folder / "studies.jsonl").open("a", encoding="utf-8") as file, ProcessPoolExecutor(jobs) as pool:
        while True:
            while len(running) < 2 * jobs and time.monotonic() - began < seconds:
                task = next(waiting, None)
                if task is None:
                    break
                running.add(pool.submit(perform, *task))
            if not running:
                return
            left = seconds - (time.monotonic() - began)
            done, running = wait(running, timeout=max(left, 0.0), return_when=FIRST_COMPLETED)
            for future in done:
                row = future.result()
                file.write(json.dumps(row) + "\n")
                file.flush()
                print(
                    row["experiment"],
                    row["name"],
                    row["seed"],
                    f"{time.monotonic() - began:.0f} s",
                    flush=True,
                )
            if not done and left <= 0:
                print(f"time is up with {len(running)} studies under way", flush=True)
                for worker in multiprocessing.active_children():
                    worker.kill()  # what runs is begun anew by the next call
                os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, help="collect here")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this long")
    parser.add_argument("--only", choices=sorted(EXPERIMENTS))
    parser.add_argument("--seeds", type=int, default=1000, help="at most so many of each")
    parser.add_argument(
        "--merge", type=Path, nargs="*", default=[], help="write the pages from these folders"
    )
    chosen = parser.parse_args()
    if chosen.out is not None:
        collect(chosen.out, chosen.jobs, chosen.seconds, chosen.only, chosen.seeds)
    rows = [row for folder in chosen.merge for row in read(folder)]
    if rows:
        nephele_search.write([r for r in rows if r["experiment"] == "nephele"])
        fabulinus_search.write([r for r in rows if r["experiment"] == "fabulinus"])
        fabulinus_two_fidelities.write([r for r in rows if r["experiment"] == "two_fidelities"])


if __name__ == "__main__":
    main()
