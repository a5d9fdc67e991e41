"""`easel gc`, `easel storage` and `easel grants`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.cli.plain import size
from easel.declare.counted import counted
from easel.errors import InvalidInput
from easel.sdk.operate import What

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.wire.lake import Grant, Group
    from easel.wire.operate import RetentionRule, StorageHolder

gc_app = typer.Typer()
storage_app = typer.Typer()
grants_app = typer.Typer(no_args_is_help=True, help="Who may read and write which paths and file sets.")

GRANTS: Columns[Grant] = [
    ("pattern", lambda g: g.pattern),
    ("who", lambda g: g.principal),
    ("read", lambda g: g.read),
    ("write", lambda g: g.write),
]
RULES: Columns[RetentionRule] = [
    ("id", lambda r: r.id),
    ("what", lambda r: r.what),
    ("older than", lambda r: counted(r.older_than_days, "day")),
    ("tag", lambda r: r.tag or None),
    ("applied", lambda r: r.applied_at),
]
HOLDERS: Columns[StorageHolder] = [
    ("project", lambda h: h.project),
    ("user", lambda h: h.user),
    ("files", lambda h: h.files),
    ("bytes", lambda h: size(h.bytes)),
    ("logs", lambda h: size(h.log_bytes)),
]
GROUPS: Columns[Group] = [("name", lambda g: g.name), ("members", lambda g: ", ".join(g.members))]

Whom = Annotated[str, typer.Argument(help="user:<name>, group:<name> or everyone")]
Pattern = Annotated[str, typer.Argument(help="/secret/ · /data/x.json · Hotpot*")]


@gc_app.command("gc")
def gc(
    unused: Annotated[
        bool, typer.Option("--unused", help="Files that no job used and no file set holds (project admins)")
    ] = False,
    old: Annotated[
        str | None,
        typer.Option("--old", help="logs, events or outputs of jobs that ended long ago (project admins)"),
    ] = None,
    prefix: Annotated[str, typer.Option(help="With --unused: only below this folder")] = "/",
    older_than: Annotated[
        float, typer.Option(min=0, help="With --unused and --old: at least so many days old")
    ] = 30.0,
    tag: Annotated[
        str, typer.Option(help="With --old: only of jobs with this tag, as key or key=value")
    ] = "",
    yes: Annotated[
        bool, typer.Option("--yes", help="With --unused and --old: do it, rather than tell")
    ] = False,
    daily: Annotated[
        bool, typer.Option("--daily", help="With --old: every day from now on, as a rule")
    ] = False,
    rules: Annotated[bool, typer.Option("--rules", help="What is given up every day")] = False,
    remove_rule: Annotated[str | None, typer.Option(help="End a rule, by its id")] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Remove what nobody needs: abandoned uploads and unnamed bytes (platform admins), unused files, or what is old.

    Without --yes it is only told what would go.
    """
    with connect(project) as client:
        if rules:
            show_list(client.storage.rules(), RULES, as_json, "Nothing is given up by itself.")
        elif remove_rule is not None:
            client.storage.remove_rule(remove_rule)
            say(f"The rule {remove_rule} is gone; what it gave up stays so")
        elif old is not None:
            _old(client, _what(old), older_than, tag, yes=yes, daily=daily, as_json=as_json)
        elif not unused:
            show_one(client.lake.gc(), as_json)
        else:
            show_one(client.lake.unused(prefix, older_than, really=yes), as_json)
            if not yes:
                say("Nothing was given up: --yes gives them up, and their bytes go with the next `easel gc`.")


def _what(text: str) -> What:
    if text not in get_args(What):
        raise InvalidInput(f"{text!r} cannot be given up: --old logs, --old events or --old outputs")
    return cast(What, text)


def _old(client: Client, what: What, days: float, tag: str, *, yes: bool, daily: bool, as_json: bool) -> None:
    if daily:
        if not yes:
            show_one(client.storage.give_up(what, days, tag), as_json)
            say("That would go today, and as much as gets so old every day: --daily --yes sets the rule.")
            return
        show_one(client.storage.add_rule(what, days, tag), as_json)
        return
    show_one(client.storage.give_up(what, days, tag, really=yes), as_json)
    if not yes:
        say("Nothing was given up: --yes gives it up.")


@storage_app.command("storage")
def storage(
    everywhere: Annotated[bool, typer.Option("--all", help="Over all projects (platform admins)")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Who holds how many bytes, the largest first."""
    with connect(project) as client:
        found = client.operations.storage() if everywhere else client.storage.report()
    if as_json:
        show_one(found, True)
        return
    show_list(found.holders, HOLDERS, False, "Nobody holds anything yet.")
    say(
        f"The blob store has {size(found.stored_bytes)} in {counted(found.objects, 'object')}; "
        "equal bytes lie there once."
    )


@grants_app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """All grants; what no pattern covers is open to every member."""
    with connect(project) as client:
        show_list(client.lake.grants(), GRANTS, as_json, "Everything is open to every member.")


@grants_app.command("set")
def set_grant(
    whom: Whom,
    pattern: Pattern,
    read: Annotated[bool, typer.Option("--read/--no-read")] = True,
    write: Annotated[bool, typer.Option("--write/--no-write")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Let somebody read or write; others then may not, unless granted too."""
    with connect(project) as client:
        show_one(client.lake.grant(whom, pattern, read=read, write=write), as_json)


@grants_app.command("rm")
def rm(whom: Whom, pattern: Pattern, project: InProject = None) -> None:
    """Take a grant back."""
    with connect(project) as client:
        client.lake.revoke(whom, pattern)
    say(f"{whom} has no grant of its own on {pattern} any more")


@grants_app.command("group")
def group(
    name: Annotated[str | None, typer.Argument(help="Without a name: all groups")] = None,
    members: Annotated[
        list[str] | None, typer.Argument(help="The names of its members; none removes it")
    ] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Show groups, or say who is in one."""
    with connect(project) as client:
        if name is None:
            show_list(client.lake.groups(), GROUPS, as_json, "There are no groups.")
        else:
            show_one(client.lake.set_group(name, members or []), as_json)
