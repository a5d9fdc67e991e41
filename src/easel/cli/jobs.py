"""`easel jobs`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, ago, say, show_list, show_one
from easel.wire import job as wire

if TYPE_CHECKING:
    from easel.sdk.jobs import Job

app = typer.Typer(no_args_is_help=True, help="Jobs: list, show, follow, kill, rerun.")

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's id")]

COLUMNS: Columns[wire.Job] = [
    ("id", lambda j: j.id),
    ("name", lambda j: j.name),
    ("state", lambda j: f"{j.state} ({j.progress:.0%})" if j.progress and not j.over else j.state),
    ("submitted", lambda j: ago(j.submitted_at)),
    ("time", lambda j: f"{j.usage.wall_seconds:.1f} s" if j.usage else None),
    ("output", lambda j: j.output_set),
    ("reason", lambda j: j.reason),
]


@app.command("ls")
def ls(
    limit: Annotated[int, typer.Option(help="At most so many")] = 30,
    state: Annotated[str | None, typer.Option(help="Only jobs in this state")] = None,
    name: Annotated[str | None, typer.Option(help="Only names that begin so")] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """The project's jobs, newest first."""
    filters = [f"state:eq:{state}"] if state else []
    filters += [f"name:prefix:{name}"] if name else []
    with connect(project) as client:
        found = [job.about for job in client.jobs.list(limit, filter=filters or None)]
    show_list(found, COLUMNS, as_json, "No jobs yet: easel run -- echo hello")


@app.command("show")
def show(job: JobArgument, project: InProject = None, as_json: AsJson = False) -> None:
    """Everything about one job."""
    with connect(project) as client:
        show_one(client.jobs.get(job).about, as_json)


@app.command("logs")
def logs(
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job is over")] = False,
    search: Annotated[str | None, typer.Option(help="Only lines with these words")] = None,
    project: InProject = None,
) -> None:
    """What the job printed."""
    with connect(project) as client:
        found = client.jobs.get(job)
        for line in found.logs(follow=follow, search=search):
            _print(line)
        if follow:
            _tell_end(found)


@app.command("metrics")
def metrics(
    job: JobArgument,
    name: Annotated[str | None, typer.Argument(help="One series; without it their names")] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """What the job measured."""
    with connect(project) as client:
        found = client.jobs.get(job)
        if name is None:
            for each, count in found.metrics().items():
                print(f"{each}\t{count} points")
            return
        points = found.series(name)
    columns: Columns[wire.Point] = [
        ("step", lambda p: p.step),
        ("value", lambda p: p.value if p.text is None else p.text),
    ]
    show_list(points, columns, as_json, "No points.")


@app.command("kill")
def kill(
    job: JobArgument,
    reason: Annotated[str, typer.Option(help="Why, for the record")] = "",
    project: InProject = None,
) -> None:
    """End a job, with every process of it."""
    with connect(project) as client:
        killed = client.jobs.get(job).kill(reason)
    say(f"Job {killed.id} is {killed.state if killed.about.over else 'being stopped'}")


@app.command("rerun")
def rerun(
    job: JobArgument,
    input_set: Annotated[str | None, typer.Option("--input", help="Another input file set")] = None,
    project: InProject = None,
) -> None:
    """Run it again as a new job, on the same versions of code and input."""
    with connect(project) as client:
        print(client.jobs.get(job).rerun(input_set).id)


@app.command("wait")
def wait(job: JobArgument, project: InProject = None, as_json: AsJson = False) -> None:
    """Follow a job to its end; exits as the job does."""
    with connect(project) as client:
        raise typer.Exit(finish(client.jobs.get(job), as_json))


def finish(job: Job, as_json: bool) -> int:
    """Print the log to its end; returns the exit code for the shell."""
    for line in job.logs(follow=True):
        _print(line)
    job.wait(check=False)
    if as_json:
        print(json.dumps(job.about.model_dump(mode="json"), indent=2))
    _tell_end(job)
    if job.state == "finished":
        return 0
    code = job.about.exit_code
    return code if code is not None and 0 < code < 256 else 1


def _tell_end(job: Job) -> None:
    job.wait(check=False)
    if job.state == "finished":
        say(f"Finished. Output: {job.about.output_set}")
    else:
        say(f"{job.state.capitalize()}: {job.about.reason}")


def _print(line: wire.LogLine) -> None:
    print(line.text, file=sys.stderr if line.stream == "err" else sys.stdout, flush=True)
