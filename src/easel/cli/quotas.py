"""`easel quotas`: what a project and the people in it may hold and use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, show_list
from easel.cli.plain import size
from easel.errors import InvalidInput

if TYPE_CHECKING:
    from easel.wire.operate import Quota

app = typer.Typer(no_args_is_help=True, help="What a project and the people in it may hold and use.")

_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
QUOTAS: Columns[Quota] = [
    ("who", lambda q: q.user or "(project)"),
    ("bytes", lambda q: size(q.used_bytes) + ("" if q.bytes is None else f" of {size(q.bytes)}")),
    (
        "GPU-hours this month",
        lambda q: f"{q.used_gpu_hours:.1f}" + ("" if q.gpu_hours is None else f" of {q.gpu_hours:g}"),
    ),
    ("jobs", lambda q: f"{q.used_jobs}" + ("" if q.jobs is None else f" of {q.jobs}")),
]


@app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """The limits, and what is used of them."""
    with connect(project) as client:
        show_list(client.storage.quotas(), QUOTAS, as_json, "No quotas.")


@app.command("set")
def set_quota(
    user: Annotated[
        str | None, typer.Option(help="A member; without it the project itself (platform admins)")
    ] = None,
    size_limit: Annotated[str | None, typer.Option("--bytes", help="500M, 20G, 1.5T")] = None,
    gpu_hours: Annotated[float | None, typer.Option(min=0, help="In a calendar month")] = None,
    jobs: Annotated[int | None, typer.Option(min=0, help="That wait or run at one time")] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Set a quota; what is left out has no limit, so without options it is removed."""
    limit = None if size_limit is None else parse_size(size_limit)
    with connect(project) as client:
        found = client.storage.set_quota(user, bytes=limit, gpu_hours=gpu_hours, jobs=jobs)
    show_list(found, QUOTAS, as_json, "No quotas.")


def parse_size(text: str) -> int:
    """Bytes of a size as people write it: 20G, 1.5 TiB, 500M, 1000."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if found is None:
        raise InvalidInput(f"{text!r} is no size: write it as 500M, 20G or 1.5T")
    return round(float(found[1]) * _UNITS[found[2]])
