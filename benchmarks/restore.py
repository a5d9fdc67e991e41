"""How long a backup and its restore take: a server with 100,000 jobs and what they left.

    python -m benchmarks.restore [--quick] [--database sqlite|postgres] [--files 100000]

Seeded by `benchmarks.seed`: jobs, files, tags, history, bills, apps, trials; rows only, so the time of blobs, which is
that of copying them, comes on top. The target is a restore within five minutes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from benchmarks.seed import QUICK, Amounts, seed
from easel.flow.backup import backup, restore
from easel.lake.blobs.local import LocalBlobs
from easel.lake.place import FolderPlace
from easel.store.engine import Store
from easel.store.migrate import migrate
from easel.testing import postgres


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--database", choices=["sqlite", "postgres"], default="sqlite", help="to restore into"
    )
    parser.add_argument("--files", type=int, default=100_000)
    given = parser.parse_args()
    amounts = QUICK if given.quick else replace(Amounts(), files=given.files, points=100_000, sets=10_000)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        store = Store(f"sqlite:///{folder}/easel.sqlite")
        migrate(store, backup=lambda _revision: None)
        seed(store, amounts)
        place = FolderPlace(folder / "backup")
        start = time.monotonic()
        made = backup(store, LocalBlobs(folder / "blobs"), place)
        copied = time.monotonic()
        store.close()
        if given.database == "postgres":
            url = stack.enter_context(postgres.running()).create("restored")
        else:
            url = f"sqlite:///{folder}/restored.sqlite"
        fresh = Store(url)
        begun = time.monotonic()
        restore(place, fresh, LocalBlobs(folder / "blobs2"))
        ended = time.monotonic()
        fresh.close()
    print(f"{amounts.jobs} jobs, {made.rows} rows, load average {os.getloadavg()[0]:.1f}")
    print(
        f"backup {copied - start:.0f} s, restore into {given.database} {ended - begun:.0f} s (target: 300 s)"
    )


if __name__ == "__main__":
    main()
