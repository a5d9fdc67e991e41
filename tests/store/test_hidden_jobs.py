"""The database hides the same jobs as the rule that is asked of one job: no gap and no cursor tells of a hidden one."""

from __future__ import annotations

import itertools

from sqlalchemy import String, literal, select

from easel.flow.lake.visible import reads_name
from easel.lake.access import Rights, Rule
from easel.store.engine import Store
from easel.store.lake.hidden_jobs import unread

SETS = [
    (),
    (Rule("patients", True, False, False),),
    (Rule("patients-open", True, True, True), Rule("patients", False, False, False)),
    (Rule("open", False, True, True), Rule("", False, False, False)),
]
PATHS = [
    (),
    (Rule("/secret/", False, False, False),),
    (Rule("/secret/open.csv", True, True, False), Rule("/secret/", False, False, False)),
    (Rule("/data.csv", True, False, False),),
    (Rule("/", False, False, False),),
]
NAMES = [
    "patients",
    "patients:1",
    "patients-open:12",
    "patients-opened:12",
    "patient:1",
    "open:3",
    "/@patients:2",
    "/@open",
    "/secret/a.csv:1",
    "/secret/open.csv:7",
    "/secret/open.csv",
    "/secrets/a.csv",
    "/data.csv:1",
    "/data.csv",
    "/data.csv2:1",
    "/",
]


def test_the_database_reads_names_as_the_rule_does(store: Store) -> None:
    with store.read() as tx:
        for paths, sets in itertools.product(PATHS, SETS):
            rights = Rights(paths, sets)
            asked = [unread(literal(name, String), rights).label(f"n{n}") for n, name in enumerate(NAMES)]
            told = [bool(each) for each in tx.execute(select(*asked)).one()]
            assert told == [not reads_name(rights, name) for name in NAMES], rights
