"""`easel put | get | ls | cat | rm | mv`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, errors, say, show_list, show_one
from easel.cli.plain import Size, size
from easel.declare.counted import counted
from easel.errors import NotFound
from easel.lake.folder import scan
from easel.lake.ignore import IgnoreRules

if TYPE_CHECKING:
    from easel.sdk import transfer
    from easel.sdk.client import Client
    from easel.wire.lake import FileItem, FileVersion

put_app, get_app, ls_app = typer.Typer(), typer.Typer(), typer.Typer()
cat_app, rm_app, mv_app = typer.Typer(), typer.Typer(), typer.Typer()

Ref = Annotated[str, typer.Argument(help="/data/ · /data/train.json:2 · /data/@HotpotQA:1")]

ITEMS: Columns[FileItem] = [
    ("path", lambda f: f.path),
    ("version", lambda f: f.version),
    ("size", lambda f: None if f.size is None else Size(f.size)),
]
VERSIONS: Columns[FileVersion] = [
    ("version", lambda f: f.version),
    ("size", lambda f: Size(f.size)),
    ("by", lambda f: f.creator),
    ("at", lambda f: f.created_at),
    ("bytes given up", lambda f: f.dropped_at),
]


@put_app.command("put")
def put(
    source: Annotated[Path, typer.Argument(help="A file or a folder")],
    target: Annotated[str, typer.Argument(help="Where in the lake; a folder ends in /")] = "/",
    resume: Annotated[str | None, typer.Option(help="The id of an upload that broke off")] = None,
    ignore: Annotated[
        bool,
        typer.Option(help="Leave out what .gitignore and .easelignore in the folder name, .git and .env"),
    ] = True,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Upload a file or a folder; all of it becomes visible at once."""
    left_out: list[str] = []
    files = scan(source, target, ignore=IgnoreRules() if ignore else None, left_out=left_out)
    total = sum(file.size for file in files)
    with connect(project) as client, bar("Uploading", total) as progress:
        done = client.lake.upload(source, target, resume=resume, ignore=ignore, progress=progress)
    if left_out:
        say(
            f"Left out {_some(left_out)}: --no-ignore sends what .gitignore, .easelignore and habit leave out"
        )
    if as_json:
        show_one(done, as_json)
    else:
        say(f"Uploaded {counted(done.files, 'file')}, {size(done.bytes)} ({done.id})")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(sorted(names)[:3]) + more


@get_app.command("get")
def get(
    ref: Ref,
    target: Annotated[Path, typer.Argument(help="Where on this machine")] = Path(),
    project: InProject = None,
) -> None:
    """Download a file, a folder or a file set; every byte is checked."""
    with connect(project) as client, bar("Downloading", None) as progress:
        whole = ref if ref.startswith("/") else f"/@{ref}"  # a set, `photos:3`, as jobs name their outputs
        written = client.lake.download(whole, target, progress=progress)
    say(f"Downloaded {counted(len(written), 'file')}")


@ls_app.command("ls")
def ls(
    ref: Ref = "/",
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="Also below folders")] = False,
    versions: Annotated[bool, typer.Option("--versions", help="All versions of one file")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """What is in a folder of the lake or of a file set."""
    with connect(project) as client:
        if versions:
            show_list(client.lake.versions(ref), VERSIONS, as_json, "There is no such file.")
        else:
            show_list(_listed(client, ref, recursive), ITEMS, as_json, "There is nothing here.")


def _listed(client: Client, ref: str, recursive: bool) -> list[FileItem]:
    """A folder may be named without its slash, as everywhere else."""
    try:
        return list(client.lake.ls(ref, recursive=recursive))
    except NotFound:
        found = [] if ref.endswith("/") else list(client.lake.ls(f"{ref}/", recursive=recursive))
        if not found:
            raise
        return found


@cat_app.command("cat")
def cat(ref: Ref, project: InProject = None) -> None:
    """Write a file to standard output."""
    with connect(project) as client:
        sys.stdout.buffer.write(client.lake.cat(ref))


@rm_app.command("rm")
def rm(ref: Ref, project: InProject = None) -> None:
    """Mark a file, or all below a folder, deleted; versions stay readable by number."""
    with connect(project) as client:
        say(f"Deleted {counted(client.lake.rm(ref), 'file')}")


@mv_app.command("mv")
def mv(source: Ref, target: Ref, project: InProject = None) -> None:
    """Move a file or a folder; no byte is sent."""
    with connect(project) as client:
        say(f"Moved {counted(client.lake.mv(source, target), 'file')}")


@contextmanager
def bar(what: str, total: int | None) -> Iterator[transfer.Progress]:
    """A progress bar on stderr, where that is a terminal."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=errors(), disable=not errors().is_terminal, transient=True) as shown:
        task = shown.add_task(what, total=total)
        yield lambda count: shown.advance(task, count)
