"""One round: an installation, load on it, kills, and then the accounts."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.kills.account import (
    JournalKeeper,
    Tally,
    account_bills,
    account_jobs,
    account_leftovers,
    account_rest,
    clean,
    settle,
    sweep,
)
from benchmarks.kills.forms import client_of, installed
from benchmarks.kills.load import FEEDS, PROJECT, Load
from benchmarks.kills.parts import KINDS, Installation


def run_round(
    form: str,
    seconds: float,
    seed: int,
    *,
    points: int = 20,
    trials: bool = False,
    patience_s: float = 240.0,
    keep: Path | None = None,
) -> Tally:
    """Load and kills for so long, then everything is waited for and counted. The folder is kept where told."""
    folder = keep or Path(tempfile.mkdtemp(prefix="easel-kills-"))
    tally = Tally(seed)
    began = time.monotonic()
    with installed(form, folder, trials=trials) as installation:
        keeper = JournalKeeper(installation, folder / "journals")
        keeper.start()
        load = Load(
            lambda number: client_of(installation, number, attempts=1 if number else 20),
            seed,
            points=points,
            trials=trials,
        )
        load.start()
        tally.kills = dict(kill_for(installation, seconds, random.Random(seed)))
        load.stop()
        with client_of(installation) as root:
            client = root.in_project(PROJECT)
            settle(client, load.done, tally, patience_s)
            account_jobs(client, load.done, tally)
            account_rest(client, root.in_project(FEEDS), load.done, tally)
            sweep(client, installation, tally, patience_s)
        keeper.stop()
        account_bills(installation, keeper, tally)
        tally.counts["requests that failed and were made again"] = load.done.refused
    account_leftovers(installation, tally)
    tally.seconds = time.monotonic() - began
    if keep is None and not tally.faults:
        clean(folder)
    elif tally.faults:
        print(f"kept for a look: {folder}")
    return tally


def kill_for(installation: Installation, seconds: float, rng: random.Random) -> Counter[str]:
    """`kill -9` of one process after another, of a kind that is there, chosen by chance."""
    killed: Counter[str] = Counter()
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        time.sleep(rng.uniform(0.05, 0.4))
        for kind in drawn(rng):
            there = sorted(installation.victims(kind))
            if there:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rng.choice(there), signal.SIGKILL)
                    killed[kind] += 1
                break
    return killed


def drawn(rng: random.Random) -> list[str]:
    """Every kind once, in an order by chance and weight: the first that is there is killed, and only it is looked for."""
    return sorted(KINDS, key=lambda kind: rng.expovariate(KINDS[kind]))
