"""`easel filesets …`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.files import bar
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.cli.plain import Ago, Size, size
from easel.declare.counted import counted

if TYPE_CHECKING:
    from easel.wire.lake import Difference, FileSet

app = typer.Typer(no_args_is_help=True, help="Named, versioned lists of file versions.")

SetRef = Annotated[str, typer.Argument(help="name or name:version")]

COLUMNS: Columns[FileSet] = [
    ("name", lambda s: f"{s.name}:{s.version}"),
    ("files", lambda s: s.files),
    ("size", lambda s: Size(s.bytes)),
    ("by", lambda s: s.creator),
    ("made", lambda s: Ago(s.created_at)),
]
CHANGES: Columns[Difference] = [
    ("path", lambda d: d.path),
    ("before", lambda d: d.before),
    ("after", lambda d: d.after),
]


@app.command("create")
def create(
    name: str,
    sources: Annotated[
        list[str], typer.Argument(help="/data/ · /data/x.json:2 · /@HotpotQA · /val/@HotpotQA")
    ],
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """The next version of a set, from files, folders and other sets."""
    with connect(project) as client:
        made = client.lake.create_file_set(name, sources)
    if as_json:
        show_one(made, as_json)
    else:
        say(f"Created {made.name}:{made.version} of {counted(made.files, 'file')}, {size(made.bytes)}")


@app.command("ls")
def ls(
    name: Annotated[str | None, typer.Argument(help="All versions of this set")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also outputs of jobs that nobody named")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Sets, or the versions of one."""
    with connect(project) as client:
        if name:
            found, hides = client.lake.file_set_versions(name), False
        else:
            found = list(client.lake.file_sets(automatic=everything))
            hides = not everything and next(client.lake.file_sets("job_"), None) is not None
    show_list(found, COLUMNS, as_json, "There are no file sets yet.")
    if hides:
        say("Outputs of jobs that nobody named are not listed: --all shows them")


@app.command("show")
def show(ref: SetRef, project: InProject = None, as_json: AsJson = False) -> None:
    """One version of a set: what it was made from, how large it is."""
    with connect(project) as client:
        show_one(client.lake.file_set(ref), as_json)


@app.command("diff")
def diff(before: SetRef, after: SetRef, project: InProject = None, as_json: AsJson = False) -> None:
    """What changed from one set to another."""
    with connect(project) as client:
        show_list(client.lake.diff(before, after), CHANGES, as_json, "They hold the same file versions.")


@app.command("get")
def get(ref: SetRef, target: Path, project: InProject = None) -> None:
    """Download a whole set."""
    with connect(project) as client, bar("Downloading", None) as progress:
        say(f"Downloaded {counted(client.lake.checkout(ref, target, progress=progress), 'file')}")


@app.command("rm")
def rm(name: str, project: InProject = None) -> None:
    """Hide a set; its versions stay readable by number."""
    with connect(project) as client:
        client.lake.delete_file_set(name)
    say(f"Deleted {name}")


@app.command("drop")
def drop(
    ref: SetRef,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it, rather than show what bringing it back takes")
    ] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Give up the bytes of a set that a job made; `replay` brings them back."""
    with connect(project) as client:
        show_one(client.lake.drop(ref) if yes else client.lake.replay_plan(ref), as_json)
    if not yes:
        say("Nothing was dropped. This is what regenerating it takes; --yes drops it.")


@app.command("replay")
def replay(
    ref: SetRef,
    yes: Annotated[bool, typer.Option("--yes", help="Submit the jobs, rather than show the plan")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Regenerate a dropped set by running its jobs again, one after another."""
    with connect(project) as client:
        if not yes:
            show_one(client.lake.replay_plan(ref), as_json)
            say("Nothing was submitted: --yes submits these jobs.")
            return
        while (plan := client.lake.replay(ref)).submitted:
            say(f"Running {plan.submitted[0]}")
            client.jobs.get(plan.submitted[0]).wait()
        show_one(client.lake.file_set(ref), as_json)
