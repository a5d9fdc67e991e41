"""`easel backup` and `easel restore`: they work on the home folder and the database, not through the API."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, errors, say, show_list, show_one
from easel.declare.counted import counted
from easel.declare.moment import parse_duration
from easel.errors import InvalidInput

if TYPE_CHECKING:
    from easel.serve.settings import Settings
    from easel.wire.operate import BackupRun

backup_app = typer.Typer()
restore_app = typer.Typer()

RUNS: Columns[BackupRun] = [
    ("started", lambda r: r.started_at),
    ("name", lambda r: r.name),
    ("state", lambda r: "failed" if r.error else "made" if r.ended_at else "being made"),
    ("rows", lambda r: r.rows),
    ("new blobs", lambda r: r.blobs),
    ("reason", lambda r: r.error or (f"{r.damaged} damaged blobs left out" if r.damaged else None)),
]
Target = Annotated[
    str | None, typer.Argument(help="A folder or s3://bucket/prefix; a second backup there is quick")
]


@backup_app.command()
def backup(
    target: Target = None,
    to: Annotated[
        str | None, typer.Option("--to", help="The same, for a plan: s3://bucket/prefix or a folder")
    ] = None,
    every: Annotated[
        str | None, typer.Option(help="Have the controller make one every hour, day, week, or 12h")
    ] = None,
    keep: Annotated[int | None, typer.Option(min=1, help="Remove all but the newest so many")] = None,
    status: Annotated[
        bool, typer.Option("--status", help="The plan and the last backups (platform admins)")
    ] = False,
    now: Annotated[
        bool, typer.Option("--now", help="Have one made now, by the plan (platform admins)")
    ] = False,
    stop: Annotated[
        bool, typer.Option("--stop", help="Make no more by the plan; those that are there stay")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Copy database and blobs while Easel runs: now, or by a plan (--to s3://… --every day --keep 14)."""
    if status or now:
        _ask_server(ask=now, as_json=as_json)
        return
    where = to or target
    if stop:
        _stop_plan()
    elif where is None:
        raise InvalidInput(
            "say where to: `easel backup FOLDER`, or `easel backup --to s3://… --every day --keep 14`"
        )
    elif every is not None:
        _plan(where, every, keep or 14, as_json)
    else:
        _back_up(where, keep, as_json)


def _ask_server(*, ask: bool, as_json: bool) -> None:
    with connect() as client:
        if ask:
            client.operations.back_up()
        found = client.operations.backups()
    if as_json:
        show_one(found, True)
        return
    if found.plan is None:
        say("No backups are planned: on the server's machine `easel backup --to … --every day --keep 14`")
    else:
        often = timedelta(seconds=found.plan.every_s)
        say(f"to {found.plan.target}, every {often}, {found.plan.keep} are kept")
    if ask:
        say("One begins within half a minute: `easel backup --status`")
    show_list(found.runs, RUNS, False, "None has been made yet.")


def _stop_plan() -> None:
    from easel.store import backups
    from easel.store.engine import Store

    with closing(Store(_settings_here().database)) as store, store.write() as tx:
        there = backups.remove_plan(tx)
    say("No more backups are made" if there else "There was no plan")


def _plan(where: str, every: str, keep: int, as_json: bool) -> None:
    from easel.flow.operate.backups import EVERY, set_plan
    from easel.serve.housekeeping import place_of
    from easel.store.engine import Store

    settings = _settings_here()
    often = EVERY.get(every) or timedelta(seconds=parse_duration(every))
    where = where if where.startswith("s3:") else str(Path(where).expanduser().resolve())
    with closing(Store(settings.database)) as store, store.write() as tx:
        made = set_plan(tx, where, often, keep, lambda target: place_of(settings, target))
    if as_json:
        print(json.dumps({"target": made.target, "every_s": often.total_seconds(), "keep": made.keep}))
    else:
        say(f"The controller makes a backup every {often} to {made.target} and keeps {made.keep}")
        say(
            "`easel backup --status` tells how it goes, `easel restore --rehearse` whether one can be restored"
        )


def _back_up(where: str, keep: int | None, as_json: bool) -> None:
    from easel.flow import backup as flow
    from easel.run.secret_store import KEY_FILE
    from easel.serve.housekeeping import place_of
    from easel.serve.lake import open_blobs
    from easel.store.engine import Store

    settings = _settings_here()
    place = place_of(settings, where)
    with closing(Store(settings.database)) as store, _bar() as bar:
        made = flow.backup(store, open_blobs(settings), place, _Counter(bar), settings.folder / "secrets")
        gone = flow.prune(place, keep) if keep is not None else []
    if as_json:
        print(
            json.dumps({"name": made.name, "rows": made.rows, "blobs": made.blobs, "damaged": made.damaged})
        )
    else:
        say(f"Backed up to {where} as {made.name}" + (f"; {len(gone)} older ones removed" if gone else ""))
    if made.damaged:
        errors().print(
            f"{made.damaged} damaged blobs were left out: `easel doctor --deep` tells which files those are"
        )
    if (settings.folder / KEY_FILE).is_file():
        say(
            f"Secrets are in it, encrypted: keep {settings.folder / KEY_FILE} elsewhere, without it they stay closed"
        )


@restore_app.command()
def restore(
    source: Annotated[
        str, typer.Argument(help="Where `easel backup` wrote to: a folder or s3://bucket/prefix")
    ],
    at: Annotated[
        str | None, typer.Option("--at", help="Which one, by its name; without it the newest")
    ] = None,
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse", help="Restore into a place that is thrown away, and tell whether all is there"
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fill an empty Easel (a new EASEL_HOME or database) from a backup. Stop the server first."""
    from easel.flow import backup as flow
    from easel.flow.operate.rehearse import rehearse_restore
    from easel.serve.housekeeping import place_of
    from easel.serve.lake import open_blobs
    from easel.serve.settings import prepare_home
    from easel.store.engine import Store

    settings = _settings()
    place = place_of(settings, source)
    if rehearse:
        found = rehearse_restore(place, at)
        if as_json:
            print(
                json.dumps(
                    {"name": found.name, "rows": found.rows, "blobs": found.blobs, "missing": found.missing}
                )
            )
        else:
            say(
                f"{found.name}: {counted(found.rows, 'row')} and {counted(found.blobs, 'blob')}; "
                f"blobs that are missing: {found.missing}"
            )
        if found.missing:
            raise typer.Exit(1)
        return
    prepare_home(settings)
    with closing(Store(settings.database)) as store, _bar() as bar:
        name = flow.restore(
            place, store, open_blobs(settings), _Counter(bar), settings.folder / "secrets", at
        )
    if as_json:
        print(json.dumps({"name": name}))
    else:
        say(f"Restored from {source}: start with `easel up`")
        say("No backups are planned for it: `easel backup --to … --every day --keep 14`")


def _settings() -> Settings:
    from easel.serve.settings import load

    return load()


def _settings_here() -> Settings:
    """Returns the settings of the Easel of this machine; refuses where there is none."""
    found = _settings()
    file = found.database.removeprefix("sqlite:///")
    if file != found.database and not Path(file).exists():
        raise InvalidInput(
            f"there is no Easel in {found.folder}: run this on the server's machine, with its EASEL_HOME"
        )
    return found


def _bar() -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=errors(), transient=True)


class _Counter:
    """Advances the bar of what was copied; called by the flow as it goes."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._tasks = {what: bar.add_task(what, total=None) for what in ("rows", "blobs", "secrets")}

    def __call__(self, what: str, number: int) -> None:
        self._bar.advance(self._tasks[what], number)
