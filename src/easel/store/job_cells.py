"""Queries on the cells of notebooks that run as jobs: each as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import select

from easel.store.engine import Tx
from easel.store.schema.jobs import job_cells
from easel.store.upsert import insert_or


@dataclass(frozen=True, slots=True)
class CellRow:
    """`number` is the entry of the journal that said so; `data` is JSON, compressed."""

    job_id: str
    attempt: int
    cell: int
    state: str
    number: int
    at: datetime
    data: bytes


def put(tx: Tx, cells: Sequence[CellRow]) -> None:
    """Write what is newest of each cell."""
    newest = {(cell.job_id, cell.attempt, cell.cell): cell for cell in cells}
    if not newest:
        return
    statement = insert_or(tx, job_cells)
    changed = {name: statement.excluded[name] for name in ("state", "number", "at", "data")}
    key = [job_cells.c.job_id, job_cells.c.attempt, job_cells.c.cell]
    tx.execute(
        statement.on_conflict_do_update(index_elements=key, set_=changed),
        [asdict(cell) for cell in newest.values()],
    )


def of_job(tx: Tx, job_id: str, attempt: int, since: int = -1) -> list[CellRow]:
    """Returns those that changed after the journal's entry `since`, in the order of the notebook."""
    query = select(job_cells).where(
        job_cells.c.job_id == job_id, job_cells.c.attempt == attempt, job_cells.c.number > since
    )
    return [CellRow(**row._mapping) for row in tx.execute(query.order_by(job_cells.c.cell))]
