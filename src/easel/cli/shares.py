"""`easel shares`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one

if TYPE_CHECKING:
    from easel.wire import pool as wire

app = typer.Typer(
    no_args_is_help=True,
    help="Who used how much of the pool; weights, priorities, and what apps keep (admins).",
)
COLUMNS: Columns[wire.Share] = [
    ("who", lambda s: s.user or "(the project)"),
    ("core hours", lambda s: f"{s.core_hours:.2f}"),
    ("weight", lambda s: f"{s.weight:g}"),
    ("priority", lambda s: s.priority),
]


@app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """What the project and its users have used lately; the past fades by half every half-life."""
    with connect(project) as client:
        show_list(client.queues.shares(), COLUMNS, as_json, "Nobody has used anything yet.")


@app.command("set")
def set_share(
    user: Annotated[
        str | None, typer.Option("--user", "-u", help="Whose share; without it the project's among all")
    ] = None,
    weight: Annotated[float, typer.Option(help="2 may use twice as much as 1")] = 1.0,
    priority: Annotated[int, typer.Option(help="-10 to 10: higher goes first, whatever was used")] = 0,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Weigh a user within the project, or the project among all (platform admins)."""
    with connect(project) as client:
        show_list(client.queues.set_share(user, weight=weight, priority=priority), COLUMNS, as_json, "")


@app.command("apps")
def keep_for_apps(
    share: Annotated[
        float | None, typer.Argument(help="From 0 (nothing is kept) to 1; without it the share is shown")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Keep a least share of the pool's cores for trials of apps; jobs use it while no app wants it."""
    with connect() as client:
        kept = client.queues.kept_for_apps() if share is None else client.queues.keep_for_apps(share)
    if as_json:
        from easel.wire.pool import PoolShares

        show_one(PoolShares(apps=kept), True)
    else:
        say(
            f"Apps get at least {kept:.0%} of the cores while they want them"
            if kept
            else "Nothing is kept for apps"
        )
