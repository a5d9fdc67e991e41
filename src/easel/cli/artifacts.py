"""`easel tag | find | trace`."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, console, show_list, show_one
from easel.errors import EaselError, InvalidInput, NotFound

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.sdk.lake import KindName
    from easel.wire.lake import Artifact, Graph

_MAYBE_JOB = re.compile(r"(job_)?[0-9a-hjkmnp-tv-z]{4,26}")
"""A job's id or the end of one; a file set may be called so, too."""
tag_app, find_app, trace_app = typer.Typer(), typer.Typer(), typer.Typer()

Kind = Annotated[str, typer.Argument(help="file, fileset or job")]
KINDS: dict[str, KindName] = {
    "file": "file",
    "files": "file",
    "fileset": "fileset",
    "filesets": "fileset",
    "job": "job",
    "jobs": "job",
}
FOUND: Columns[Artifact] = [
    ("name", lambda a: a.name if a.kind == "job" else f"{a.name}:{a.version}"),
    ("by", lambda a: a.creator),
    ("at", lambda a: a.created_at),
    ("job", lambda a: None if a.kind == "job" else a.job),
    ("called", lambda a: a.job_name),
    ("tags", lambda a: ", ".join(f"{k}={_plain(v)}" for k, v in a.tags.items())),
]


@tag_app.command("tag")
def tag(
    kind: Kind,
    ref: Annotated[str, typer.Argument(help="/data/x.json:2 · HotpotQA:1 · a job's id")],
    tags: Annotated[list[str] | None, typer.Argument(help="key=value; 0.5 and 2026-11-16 are typed")] = None,
    text: Annotated[
        list[str] | None, typer.Option(help="key=value that is text, whatever it looks like")
    ] = None,
    remove: Annotated[list[str] | None, typer.Option(help="A key to remove")] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Set, remove and show the tags of a file version, a file-set version or a job."""
    values: dict[str, Any] = {key: _typed(value) for key, value in map(_pair, tags or [])}
    values |= dict(map(_pair, text or []))
    with connect(project) as client:
        show_one(client.lake.tag(_kind(kind), ref, values, remove=remove or []), as_json)


@find_app.command("find")
def find(
    kind: Kind,
    query: Annotated[str, typer.Argument(help="e.g. 'model = BERT and precision > 0.5'")] = "",
    sort: Annotated[str, typer.Option(help="A key, or -key for the largest first")] = "",
    limit: Annotated[int, typer.Option(min=1)] = 50,
    max_: Annotated[str | None, typer.Option("--max", help="Only the one with the largest value")] = None,
    min_: Annotated[str | None, typer.Option("--min", help="Only the one with the smallest value")] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Find files, file sets or jobs by their metadata: `easel find filesets 'job.creator = john'`."""
    if max_ or min_:
        sort, limit = (f"-{max_}" if max_ else str(min_)), 1
    with connect(project) as client:
        show_list(client.lake.find(_kind(kind), query, sort=sort, limit=limit), FOUND, as_json, "Nothing.")


@trace_app.command("trace")
def trace(
    ref: Annotated[
        str | None, typer.Argument(help="A file set or a job; without one, the whole project")
    ] = None,
    forward: Annotated[bool, typer.Option("--forward", help="What was made of it")] = False,
    one_step: Annotated[bool, typer.Option("--one-step", help="Only what is next to it")] = False,
    export: Annotated[str | None, typer.Option(help="prov or openlineage")] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """What a file set, or the output of a job, was made from, or what was made of it."""
    with connect(project) as client:
        start = _set_named(client, ref) if ref else None
        if export:
            print(json.dumps(client.lake.export_lineage(start, export), indent=2))
            return
        graph = client.lake.trace(start, forward=forward, one_step=one_step) if start else client.lake.graph()
    if as_json:
        print(json.dumps(graph.model_dump(mode="json"), indent=2))
    elif start:
        _draw(graph, start, forward)
    else:
        for edge in graph.edges:
            print(f"{edge.source} → {edge.target}  ({edge.job_name or edge.job or 'create'})")


def _set_named(client: Client, ref: str) -> str:
    """Returns the version of a file set that is meant; of a job it is what the job left."""
    try:
        found = client.lake.file_set(ref)
    except NotFound:
        if not _MAYBE_JOB.fullmatch(ref):
            raise
        return _output_of(client, ref)
    return f"{found.name}:{found.version}"


def _output_of(client: Client, ref: str) -> str:
    try:
        job = client.jobs.get(ref).about
    except EaselError:
        raise NotFound(
            f"there is no file set and no job {ref!r}: `easel filesets ls`, `easel jobs ls`"
        ) from None
    if job.output_set is None:
        read = f". It read {job.input_set}: easel trace {job.input_set}" if job.input_set else ""
        raise NotFound(f"job {job.id} is {job.state} and left no output{read}")
    return job.output_set


def _draw(graph: Graph, start: str, forward: bool) -> None:
    """A tree; a set that was drawn already is only named, so that a graph of diamonds stays short."""
    near, far = ("source", "target") if forward else ("target", "source")
    beside: dict[str, list[tuple[str, str]]] = {}
    for edge in graph.edges:
        found = (getattr(edge, far), edge.job_name or edge.job or "create")
        beside.setdefault(getattr(edge, near), []).append(found)
    from rich.tree import Tree

    tree, drawn = Tree(start), {start}
    waiting = [(start, tree)]
    while waiting:
        name, branch = waiting.pop(0)
        for other, action in beside.get(name, []):
            arrow = "→" if forward else "←"
            child = branch.add(f"{arrow} {other}  ({action})")
            if other not in drawn:
                drawn.add(other)
                waiting.append((other, child))
    console().print(tree, markup=False)


def _kind(text: str) -> KindName:
    if text not in KINDS:
        raise InvalidInput(f"{text!r} is no kind: use file, fileset or job")
    return KINDS[text]


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"{text!r} is not of the form key=value")
    return key, value


def _typed(text: str) -> str | float | datetime:
    """A number or a time where it looks like one, as in the search language."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _plain(value: Any) -> str:
    return (
        str(value["time"])
        if isinstance(value, dict)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
