"""A month's charges by project and person, as CSV and PDF."""

from __future__ import annotations

import csv
import io
from typing import Any

from easel.declare.job import Command, JobSpec
from easel.declare.resources import Resources
from easel.flow.price.chargeback import ChargeLine, as_csv, as_pdf, chargeback, totals_of
from easel.ids import JobId
from easel.store.billing import add_lines
from easel.store.engine import Store
from easel.store.identity import add_project, add_user
from easel.store.jobs import NewJob, add


def test_each_person_is_charged_for_each_project(store: Store) -> None:
    with store.write() as tx:
        project = add_project(tx, "astro", "")
        ana, ben = (add_user(tx, name, home=project.id) for name in ("ana", "ben"))
        for number, (user, gpus) in enumerate(((ana, 2.0), (ana, 1.0), (ben, 0.0))):
            name = f"job_{number}"
            spec = JobSpec(name, Command(("true",)), resources=Resources(1, 256, gpus))
            add(tx, [NewJob(JobId(name), project.id, user.id, spec)])
            line: dict[str, Any] = {"job_id": name, "attempt": 1, "line": 0, "project_id": project.id}
            line |= {"user_id": user.id, "app": "", "month": "2026-03", "start": tx.now, "seconds": 3600.0}
            add_lines(tx, [line | {"per_hour": 2.0, "micros": 2_000_000, "currency": "EUR", "book": "lab"}])
        found = chargeback(tx, "2026-03")
        assert chargeback(tx, "2026-04") == []
    assert found == [
        ChargeLine("astro", "ana", 2, 2.0, 3.0, 4.0, "EUR"),
        ChargeLine("astro", "ben", 1, 1.0, 0.0, 2.0, "EUR"),
    ]
    assert totals_of(found) == {"EUR": 6.0}


LINES = [
    ChargeLine("astro", "=cmd()", 1, 1.0, 0.5, 1234.5, "EUR"),
    ChargeLine("bio", "王", 1, 1.0, 0.0, 1.0, "USD"),
]


def test_csv_is_read_back_and_no_name_is_a_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(LINES))))
    assert [(row["person"], row["amount"], row["currency"]) for row in rows] == [
        ("'=cmd()", "1234.500000", "EUR"),
        ("王", "1.000000", "USD"),
    ]


def test_the_pdf_is_one_page_whatever_people_are_called() -> None:
    made = as_pdf(LINES, "2026-03")
    assert made.startswith(b"%PDF-")
    assert made.count(b"/Type /Page\n") == 1
