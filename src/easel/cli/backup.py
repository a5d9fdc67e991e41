"""`easel backup` and `easel restore`: they work on the home folder and the database, not through the API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from easel.cli.output import errors, say

backup_app = typer.Typer()
restore_app = typer.Typer()


@backup_app.command()
def backup(target: Annotated[Path, typer.Argument(help="A folder; a second backup there is quick")]) -> None:
    """Copy database and blobs while Easel runs."""
    from easel.flow import backup as flow
    from easel.run.secret_store import KEY_FILE
    from easel.serve.settings import load
    from easel.store.engine import Store

    settings = load()
    store = Store(settings.database)
    with _bar() as bar:
        flow.backup(store, settings.folder / "blobs", target, _Counter(bar), settings.folder / "secrets")
    store.close()
    say(f"Backed up to {target}")
    if (settings.folder / KEY_FILE).is_file():
        say(
            f"Secrets are in it, encrypted: keep {settings.folder / KEY_FILE} elsewhere, without it they stay closed"
        )


@restore_app.command()
def restore(source: Annotated[Path, typer.Argument(help="A folder that `easel backup` made")]) -> None:
    """Fill an empty Easel (a new EASEL_HOME or database) from a backup. Stop the server first."""
    from easel.flow import backup as flow
    from easel.serve.settings import load, prepare_home
    from easel.store.engine import Store

    settings = load()
    prepare_home(settings)
    store = Store(settings.database)
    with _bar() as bar:
        flow.restore(source, store, settings.folder / "blobs", _Counter(bar), settings.folder / "secrets")
    store.close()
    say(f"Restored from {source}: start with `easel up`")


def _bar() -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=errors, transient=True)


class _Counter:
    """Advances the bar of what was copied; called by the flow as it goes."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._tasks = {what: bar.add_task(what, total=None) for what in ("rows", "blobs", "secrets")}

    def __call__(self, what: str, number: int) -> None:
        self._bar.advance(self._tasks[what], number)
