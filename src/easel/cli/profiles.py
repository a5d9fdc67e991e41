"""`easel profiles start mnist 'python train.py --epoch {1,2,5}' --code mnist-code`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.cli.plain import Ago
from easel.declare.counted import counted
from easel.sdk.code import is_folder

if TYPE_CHECKING:
    from easel.wire import price as wire

app = typer.Typer(no_args_is_help=True, help="Learn what a command takes, from a few runs.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The profile's name")]

COLUMNS: Columns[wire.Profile] = [
    ("name", lambda p: f"{p.name}:{p.version}"),
    ("state", lambda p: f"running ({p.done}/{p.plan['runs']})" if p.state == "running" else p.state),
    ("model", lambda p: p.model),
    ("runs", lambda p: len(p.runs) or p.plan["runs"]),
    ("made", lambda p: Ago(p.created_at)),
    ("reason", lambda p: p.reason),
]


def runs_in(currency: str) -> Columns[wire.PlannedRun]:
    """The columns of planned runs, with what they cost at most in a currency."""
    return [
        ("command", lambda r: r.command),
        ("vCPU", lambda r: f"{r.vcpu:g}"),
        ("MB", lambda r: f"{r.memory_mb:g}"),
        ("GPUs", lambda r: f"{r.gpus:g}" if r.gpus else None),
        (f"at most ({currency})", lambda r: f"{r.most_cost:.4f}"),
    ]


@app.command("start")
def start(
    name: NameArgument,
    template: Annotated[
        str, typer.Argument(help="The command; {epochs:1,2,5} where a number varies over these values")
    ],
    code: Annotated[
        str | None, typer.Option(help="Folder (`.`), file set, or file of the lake, with the code")
    ] = None,
    inputs: Annotated[list[str] | None, typer.Option("--input", help="File set to read, repeatable")] = None,
    cpus: Annotated[str, typer.Option(help="vCPU sizes to try")] = "0.5,1,2",
    memory: Annotated[str, typer.Option(help="Memory sizes to try, in MB")] = "512,1024,2048",
    gpus: Annotated[str, typer.Option(help="Numbers of GPUs to try, such as 0,1")] = "0",
    design: Annotated[str, typer.Option(help="optimal (few runs) or full (the whole grid)")] = "optimal",
    size: Annotated[int | None, typer.Option(help="How many runs; without it enough")] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds after which a run is stopped")] = 600.0,
    budget: Annotated[float | None, typer.Option(help="What all runs may cost at most")] = None,
    python: Annotated[str | None, typer.Option(help="Interpreter or virtual environment there")] = None,
    network: Annotated[bool, typer.Option(help="Let the command use the network")] = False,
    dry_run: Annotated[bool, typer.Option("--plan", help="Only show the runs and their price")] = False,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait for the model")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Show the plan with its price, submit its runs, and wait for the model."""
    fields: dict[str, Any] = {
        "code": code,
        "inputs": inputs or [],
        "cpus": numbers(cpus),
        "memories_mb": [int(m) for m in numbers(memory)],
        "gpus": numbers(gpus),
        "design": design,
        "size": size,
        "time_limit_s": time_limit,
        "budget": budget,
        "environment": {"python": python, "network": network},
    }
    with connect(project) as client:
        if code is not None and is_folder(code):
            fields["code"] = client.jobs.send_code(code).reference
        planned = client.profiles.plan(name, template, **fields)
        currency = client.currency()
        if dry_run:
            if as_json:
                show_one(planned, True)
                return
            show_list(planned.runs, runs_in(currency), False, "No runs.")
        likely = f", likely {planned.likely_cost:.4f} {currency}" if planned.likely_cost is not None else ""
        say(
            f"{len(planned.runs)} of {counted(planned.grid, 'run')}, at most {planned.most_cost:.4f} {currency}{likely}"
        )
        if dry_run:
            return
        made = client.profiles.start(name, template, **fields)
        if not detach:
            say(f"Profile {made.name}:{made.version} runs. Ctrl-C stops waiting, not the profile.")
            made = client.profiles.wait(name)
    show_one(made, True) if as_json else show_list([made], COLUMNS, False, "")


@app.command("ls")
def ls(
    limit: Annotated[int, typer.Option(help="At most so many")] = 30,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Every version of the project's profiles, newest first."""
    with connect(project) as client:
        show_list(
            list(client.profiles.list(limit)), COLUMNS, as_json, "No profiles yet: easel profiles start"
        )


@app.command("show")
def show(
    name: NameArgument,
    version: Annotated[int | None, typer.Option(help="Without it the latest")] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """One profile with its runs and its model."""
    with connect(project) as client:
        found = client.profiles.get(name, version)
    if as_json:
        show_one(found, True)
        return
    show_list([found], COLUMNS, False, "")
    for candidate, error in sorted((found.left_out or {}).items(), key=lambda pair: pair[1]):
        mark = "*" if candidate == found.model else " "
        print(f"{mark} {candidate}: leave-one-out error {error:.3f}")


def numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no list of numbers such as 0.5,1,2") from error
