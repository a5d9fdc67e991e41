"""A server that dies between slices: trials go on from what they left, and the books say so."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from easel.testing.engine import until
from easel.testing.server import running

PROGRAM = f"input: {{{', '.join(f'f{k}: number' for k in range(8))}}}\noutput: [no, yes]"


def rows(count: int) -> list[tuple[Any, Any]]:
    x = np.random.default_rng(0).normal(size=(count, 8))
    labels = np.where(x[:, 0] * x[:, 1] + x[:, 2] > 0, "yes", "no")
    return [
        ({f"f{k}": round(float(v), 4) for k, v in enumerate(row)}, str(label))
        for row, label in zip(x, labels, strict=True)
    ]


def slices(database: Path) -> list[tuple[str, float, str, int, dict[str, Any]]]:
    """Candidate, how far, the job's state, how often it was lost, and what it told, of slices that were settled."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        found = db.execute(
            "select t.name, t.share, j.state, j.lost, j.result from app_trials t join jobs j on j.id = t.job_id"
            " where t.ended order by t.seq"
        ).fetchall()
    return [(name, share, state, lost, json.loads(told or "{}")) for name, share, state, lost, told in found]


@pytest.mark.slow
def test_a_server_killed_between_slices_goes_on_with_them(tmp_path: Path) -> None:
    with running(tmp_path, warm_trials="true", worker_vcpu="2") as server:
        server.client().projects.create("astro")
        client = server.client(project="astro")
        client.apps.declare("flowers", PROGRAM)
        client.apps.feed("flowers", rows(3_000))
        database = tmp_path / "home" / "easel.sqlite"
        until(lambda: any(share < 1.0 for _, share, *_ in slices(database)), 240)
        before = len(slices(database))
        server.kill()
        server.start()
        until(lambda: len(slices(database)) >= before + 6, 240)
        found = slices(database)
        assert client.apps.get("flowers").serving is not None
    reached: dict[str, float] = {}
    for name, share, state, _, told in found:
        assert state == "finished", (name, told)
        assert share == pytest.approx(told.get("reached", 1.0)), "the books have what the slice told"
        assert share > reached.get(name, 0.0), "it went on from there"
        reached[name] = share
