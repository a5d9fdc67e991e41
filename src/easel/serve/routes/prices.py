"""Prices, bills and budgets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Path, Query, Response

from easel.errors import InvalidInput
from easel.flow import budgets, prices
from easel.flow.price import billing, chargeback
from easel.flow.price import idle_gpus as idle_gpus_flow
from easel.price.bill import MICROS
from easel.price.book import book_named, read_book, shipped_books
from easel.price.budget import Budget, Period
from easel.records.identity import Caller
from easel.serve.access import Member, PlatformAdmin, ProjectAdmin, SignedIn, State
from easel.serve.router import Router
from easel.serve.state import AppState
from easel.wire import price as wire
from easel.wire.model import Moment

router = Router(prefix="/api/v1", tags=["prices"])

JobId = Annotated[str, Path(max_length=60, examples=["job_01jc"])]
Month = Annotated[str | None, Query(pattern=r"^\d{4}-(0[1-9]|1[0-2])$", description="As 2026-03")]

OneMonth = Annotated[str, Query(pattern=r"^\d{4}-(0[1-9]|1[0-2])$", description="As 2026-03")]
IdleGpus = Annotated[
    bool, Query(description="Of GPUs only while they were held and in use for less than 5 % of the time")
]

Since = Annotated[Moment | None, Query(description="A moment with its zone, as 2026-03-01T00:00:00+01:00")]


@router.get("/prices", response_model=wire.PriceList)
def list_prices(state: State, caller: SignedIn) -> wire.PriceList:
    """The history of prices."""
    with state.store.read() as tx:
        history = prices.price_history(tx)
    items = [wire.PriceChange(since=c.since, book=c.book.model_dump(mode="json")) for c in history]
    return wire.PriceList(items=items, shipped=sorted(shipped_books()))


@router.put("/prices", response_model=wire.PriceList)
def set_prices(state: State, caller: PlatformAdmin, body: wire.SetPrices) -> wire.PriceList:
    """Let a price book hold from now, or from a moment to come. Bills that were made stay as they are."""
    if (body.name is None) == (body.toml is None):
        raise InvalidInput("give either the name of a shipped book or a book as TOML")
    book = book_named(body.name) if body.name is not None else read_book(body.toml or "")
    with state.store.write() as tx:
        prices.set_prices(tx, caller, book, body.since)
    return list_prices(state, caller)


@router.get("/projects/{project}/jobs/{job}/bill", response_model=wire.Bill)
def job_bill(state: State, caller: Member, job: JobId) -> wire.Bill:
    """What one job cost, line by line, beside what was promised."""
    with state.store.read() as tx:
        found, lines, promise = billing.bill_of(tx, caller, job)
        currency = lines[0].currency if lines else prices.book_now(tx).currency
    return wire.Bill(
        job_id=found.id,
        amount=sum(line.micros for line in lines) / MICROS,
        currency=currency,
        lines=[
            wire.BillLine(
                start=line.start,
                seconds=line.seconds,
                per_hour=line.per_hour,
                amount=line.micros / MICROS,
                currency=line.currency,
                book=line.book,
            )
            for line in lines
        ],
        promised_cost=promise.promised_micros / MICROS if promise else None,
        promised_seconds=promise.promised_seconds if promise else None,
        seconds=promise.seconds if promise else None,
    )


@router.get("/projects/{project}/bills", response_model=wire.BillReport)
def bill_report(
    state: State,
    caller: Member,
    by: Annotated[Literal["user", "month", "day", "app", "job"], Query()] = "user",
    month: Month = None,
) -> wire.BillReport:
    """What the project's jobs came to, by user, month, app (a tag) or job, the dearest first; or by day (in UTC)."""
    with state.store.read() as tx:
        found = billing.totals(tx, by, month, caller.project_id)
    return _report(by, month, found)


@router.get("/bills", response_model=wire.BillReport)
def whole_report(
    state: State,
    caller: PlatformAdmin,
    by: Annotated[Literal["project", "user", "month", "day", "app"], Query()] = "project",
    month: Month = None,
) -> wire.BillReport:
    """What everybody's jobs came to."""
    with state.store.read() as tx:
        found = billing.totals(tx, by, month)
    return _report(by, month, found)


@router.get("/bills/chargeback", response_model=wire.Chargeback)
def month_charges(
    state: State, caller: PlatformAdmin, month: OneMonth, idle_gpus: IdleGpus = False
) -> wire.Chargeback:
    """What to charge whom for a month; or what GPUs came to while they were held idle, running jobs included."""
    found = _charges(state, month, idle_gpus)
    return wire.Chargeback(month=month, items=[wire.ChargeLine.model_validate(line) for line in found])


@router.get("/bills/chargeback/{form}", response_class=Response)
def month_charges_file(
    state: State,
    caller: PlatformAdmin,
    form: Literal["csv", "pdf"],
    month: OneMonth,
    idle_gpus: IdleGpus = False,
) -> Response:
    """The same as a file."""
    found = _charges(state, month, idle_gpus)
    name = f'attachment; filename="{"idle-gpus" if idle_gpus else "charges"}-{month}.{form}"'
    if form == "csv":
        text = chargeback.as_csv(found, idle_gpus=idle_gpus)
        return Response(text, media_type="text/csv", headers={"Content-Disposition": name})
    made = chargeback.as_pdf(found, month, idle_gpus=idle_gpus)
    return Response(made, media_type="application/pdf", headers={"Content-Disposition": name})


@router.get("/bills/idle-gpus", response_model=wire.IdleJobs)
def jobs_with_idle_gpus(state: State, caller: PlatformAdmin) -> wire.IdleJobs:
    """Jobs that hold GPUs now and have hardly used them: for how long, and what that came to so far."""
    with state.store.read() as tx:
        found = idle_gpus_flow.idle_now(tx)
    return wire.IdleJobs(items=[wire.IdleJob.model_validate(one) for one in found])


def _charges(state: AppState, month: str, idle_gpus: bool) -> list[chargeback.ChargeLine]:
    with state.store.read() as tx:
        return idle_gpus_flow.idle_charges(tx, month) if idle_gpus else chargeback.chargeback(tx, month)


def _report(by: str, month: str | None, found: Sequence[billing.Total]) -> wire.BillReport:
    items = [
        wire.BillTotal(
            group=total.group,
            jobs=total.jobs,
            hours=total.seconds / 3600,
            amount=total.micros / MICROS,
            currency=total.currency,
        )
        for total in found
    ]
    return wire.BillReport(by=by, month=month, items=items)


@router.get("/projects/{project}/budget", response_model=wire.Budget)
def show_budget(state: State, caller: Member, since: Since = None) -> wire.Budget:
    """The project's budget and what is spent of it; with `since` also what was run up after that moment."""
    return _budget(state, caller, since)


@router.put("/projects/{project}/budget", response_model=wire.Budget)
def set_budget(state: State, caller: ProjectAdmin, body: wire.SetBudget) -> wire.Budget:
    """Set or change the budget."""
    budget = Budget(round(body.limit * MICROS), Period(body.period), tuple(body.warn_at), body.hard_stop)
    with state.store.write() as tx:
        budgets.set_budget(tx, caller, budget)
    return _budget(state, caller)


@router.delete("/projects/{project}/budget", status_code=204)
def remove_budget(state: State, caller: ProjectAdmin) -> None:
    """Remove the budget: no limit any more."""
    with state.store.write() as tx:
        budgets.set_budget(tx, caller, None)


def _budget(state: AppState, caller: Caller, since: datetime | None = None) -> wire.Budget:
    with state.store.read() as tx:
        budget = budgets.find_budget(tx, caller.project_id)
        period = budget.period if budget else Period.MONTH
        spending = budgets.spending_of(tx, caller.project_id, period)
        currency = prices.book_now(tx).currency
        after = None if since is None else budgets.spent_after(tx, caller.project_id, since)
    return wire.Budget(
        limit=budget.limit_micros / MICROS if budget else None,
        period=budget.period.value if budget else None,
        warn_at=list(budget.warn_at) if budget else [],
        hard_stop=budget.hard_stop if budget else False,
        spent=spending.so_far / MICROS,
        billed=spending.billed_micros / MICROS,
        committed=spending.committed / MICROS,
        spent_since=None if after is None else after / MICROS,
        currency=currency,
    )
