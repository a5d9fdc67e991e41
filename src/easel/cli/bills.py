"""`easel bills`: what jobs cost, by whom and when; budgets and prices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.cli.plain import money
from easel.errors import InvalidInput

if TYPE_CHECKING:
    from easel.wire import price as wire

app = typer.Typer(no_args_is_help=True, help="What jobs cost; budgets and prices.")

MonthOption = Annotated[str | None, typer.Option(help="Only one month, as 2026-03")]
TOTALS: Columns[wire.BillTotal] = [
    ("", lambda t: t.group or "(none)"),
    ("jobs", lambda t: t.jobs),
    ("hours", lambda t: f"{t.hours:.2f}"),
    ("amount", lambda t: money(t.amount, t.currency)),
]
CHARGES: Columns[wire.ChargeLine] = [
    ("project", lambda line: line.project),
    ("user", lambda line: line.user),
    ("jobs", lambda line: line.jobs),
    ("hours", lambda line: f"{line.hours:.2f}"),
    ("GPU-hours", lambda line: f"{line.gpu_hours:.2f}"),
    ("amount", lambda line: f"{line.amount:.2f} {line.currency}"),
]
IDLE_CHARGES: Columns[wire.ChargeLine] = [
    ("project", lambda line: line.project),
    ("user", lambda line: line.user),
    ("jobs", lambda line: f"{line.jobs} ({line.running_jobs} running)" if line.running_jobs else line.jobs),
    ("GPU-hours held", lambda line: f"{line.held_gpu_hours or 0.0:.2f}"),
    ("idle", lambda line: f"{line.gpu_hours:.2f}"),
    ("amount of that", lambda line: f"{line.amount:.2f} {line.currency}"),
]
IDLE_JOBS: Columns[wire.IdleJob] = [
    ("job", lambda one: one.job),
    ("name", lambda one: one.name),
    ("project", lambda one: one.project),
    ("user", lambda one: one.user),
    ("device", lambda one: one.device),
    ("GPUs", lambda one: f"{one.gpus:g}"),
    ("since", lambda one: one.since),
    ("GPU-hours held", lambda one: f"{one.held_gpu_hours:.2f}"),
    ("idle", lambda one: f"{one.idle_gpu_hours:.2f}"),
    ("amount of that", lambda one: f"{one.amount:.2f} {one.currency}"),
]
LINES: Columns[wire.BillLine] = [
    ("from", lambda line: line.start),
    ("seconds", lambda line: f"{line.seconds:.2f}"),
    ("per hour", lambda line: f"{line.per_hour:.6f}"),
    ("amount", lambda line: money(line.amount, line.currency)),
    ("book", lambda line: line.book),
]


@app.command("report")
def report(
    by: Annotated[str, typer.Option(help="user, month, day, app, job; project over all projects")] = "user",
    month: MonthOption = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Over all projects (platform admins)")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """What the project's jobs came to."""
    if by not in ("user", "month", "day", "app", "job", "project"):
        raise InvalidInput(f"there is no report by {by!r}: use user, month, day, app, job or project")
    with connect(project) as client:
        if everywhere or by == "project":
            whole = cast(Literal["project", "user", "month", "day", "app"], by)
            found = client.bills.everywhere(whole, month)
        else:
            found = client.bills.report(cast(Literal["user", "month", "day", "app", "job"], by), month)
    show_list(found.items, TOTALS, as_json, "Nothing has been billed yet.")


@app.command("job")
def job(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="The job's id")],
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """One job's bill, line by line, beside what was promised."""
    with connect(project) as client:
        found = client.bills.of(job_id)
    if as_json:
        show_one(found, True)
        return
    show_list(found.lines, LINES, False, "Nothing yet: jobs are billed when they end.")
    if found.promised_cost is not None:
        took = f"{found.seconds:.1f} s" if found.seconds is not None else "not known yet"
        say(
            f"Promised {found.promised_seconds:.1f} s and {money(found.promised_cost, found.currency)}; took {took}"
        )


@app.command("budget")
def budget(
    limit: Annotated[float | None, typer.Option("--set", help="The new limit (project admins)")] = None,
    period: Annotated[str | None, typer.Option(help="month or total")] = None,
    soft: Annotated[
        bool | None,
        typer.Option("--soft/--hard", help="Only warn, or stop jobs at the limit", show_default=False),
    ] = None,
    warn_at: Annotated[
        list[float] | None, typer.Option(help="Warn at this share of the limit, as 0.8; repeat for more")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="No limit any more")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """The project's budget: show, set, remove. What you do not name stays as it is."""
    named = {"period": period, "hard_stop": None if soft is None else not soft, "warn_at": warn_at or None}
    changes = {name: value for name, value in named.items() if value is not None}
    if remove and (limit is not None or changes):
        raise InvalidInput("--remove goes alone: what is removed has neither a limit nor a period")
    with connect(project) as client:
        if remove:
            client.bills.remove_budget()
        if limit is None and changes:
            limit = client.bills.budget().limit
            if limit is None:
                raise InvalidInput("there is no budget to change: name its limit with --set")
        if limit is not None:
            client.bills.set_budget(limit, **changes)
        show_one(client.bills.budget(), as_json)


@app.command("prices")
def prices(
    book: Annotated[str | None, typer.Option("--set", help="A shipped book, or a TOML file")] = None,
    as_json: AsJson = False,
) -> None:
    """The prices in force and their history; platform admins set them."""
    with connect() as client:
        if book is not None and Path(book).is_file():
            client.bills.set_prices(toml=Path(book).read_text())
        elif book is not None:
            client.bills.set_prices(name=book)
        found = client.bills.prices()
    columns: Columns[wire.PriceChange] = [
        ("since", lambda c: c.since),
        ("book", lambda c: c.book["name"]),
        ("note", lambda c: c.book["note"]),
    ]
    show_list(found.items, columns, as_json, "No prices.")
    if not as_json:
        say(f"Books that come with Easel: {', '.join(found.shipped)}")


@app.command("chargeback")
def chargeback(
    month: Annotated[str, typer.Option(help="As 2026-03")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write charges.csv or charges.pdf, by the name's ending"),
    ] = None,
    idle_gpus: Annotated[
        bool,
        typer.Option(
            "--idle-gpus", help="What GPUs came to while they were held idle, running jobs included"
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """What to charge whom for a month, over all projects (platform admins)."""
    with connect() as client:
        if output is None:
            found = client.bills.chargeback(month, idle_gpus=idle_gpus)
            columns, none = (
                (IDLE_CHARGES, "No idle GPUs.") if idle_gpus else (CHARGES, "Nothing was billed then.")
            )
            show_list(found.items, columns, as_json, none)
            return
        form = output.suffix.lower().removeprefix(".")
        if form not in ("csv", "pdf"):
            raise InvalidInput(f"{output.name} ends neither in .csv nor in .pdf")
        made = client.bills.chargeback_file(month, cast(Literal["csv", "pdf"], form), idle_gpus=idle_gpus)
    output.write_bytes(made)
    say(f"Wrote {output}")


@app.command("idle-gpus")
def idle_gpus(as_json: AsJson = False) -> None:
    """Jobs that hold GPUs now and have hardly used them: who, for how long, at what cost (platform admins)."""
    with connect() as client:
        show_list(client.bills.idle_gpus(), IDLE_JOBS, as_json, "No job holds a GPU for nothing.")
