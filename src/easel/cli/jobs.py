"""`easel jobs`."""

from __future__ import annotations

import json
import re
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.job_words import facts_of
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one, show_table
from easel.cli.plain import Ago, Lasting, size
from easel.cli.top import bar, watch
from easel.declare.counted import counted
from easel.errors import Denied, EaselError, InvalidInput, NotFound

if TYPE_CHECKING:
    from easel.sdk.jobs import JobHandle
    from easel.wire import job as wire
    from easel.wire.lake import Artifact, Difference, FileSet

app = typer.Typer(no_args_is_help=True, help="Jobs: list, show, follow, kill, rerun.")

PROGRESS = "[EASEL_PROGRESS]"
WAITING_S = 3.0
"""How long a job may wait before the command line says why."""
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's id, or the end of it")]

SHOWN_ANYWAY = frozenset({"id", "name", "by", "submitted"})
"""Columns that every list of jobs by what they measured has."""

COLUMNS: Columns[wire.Job] = [
    ("id", lambda j: j.id),
    ("name", lambda j: j.name),
    ("state", lambda j: f"{j.state} ({j.progress:.0%})" if j.progress and not j.over else j.state),
    ("submitted", lambda j: Ago(j.submitted_at)),
    ("time", lambda j: Lasting(j.usage.wall_seconds) if j.usage else None),
    ("reason", lambda j: j.reason or j.waiting),
    ("output", lambda j: j.output_set if j.output_set and not j.output_set.startswith(j.id) else None),
]


@app.command("ls")
def ls(
    limit: Annotated[int, typer.Option(help="At most so many")] = 30,
    state: Annotated[str | None, typer.Option(help="Only jobs in this state")] = None,
    name: Annotated[str | None, typer.Option(help="Only names that begin so")] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Metrics and tags to show: lr,accuracy (also accuracy_max, accuracy_min)"),
    ] = None,
    sort: Annotated[
        str | None, typer.Option(help="A metric or tag; -accuracy puts the largest first")
    ] = None,
    where: Annotated[str, typer.Option(help="Only jobs for which this holds: accuracy > 0.9")] = "",
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """The project's jobs, newest first, or by what they measured."""
    if columns or sort or where:
        if state or name:
            raise InvalidInput("--state and --name do not go with --columns, --sort and --where")
        keys = [key.strip() for key in (columns or (sort or "").lstrip("-")).split(",") if key.strip()]
        with connect(project) as client:
            chosen = list(client.lake.find("job", where, sort=sort or "", limit=limit))
        show_list(chosen, by_tags(keys), as_json, "No jobs.")
        if sort and len(chosen) > 1 and not as_json:
            say(order_told(sort))
        return
    filters = [f"state:eq:{state}"] if state else []
    filters += [f"name:prefix:{name}"] if name else []
    with connect(project) as client:
        found = [job.about for job in client.jobs.list(limit, filter=filters or None)]
    show_list(found, COLUMNS, as_json, "No jobs yet: easel run -- echo hello")


def order_told(sort: str) -> str:
    """Returns which end of a sorted list comes first, and how to turn it round: what is best is for people to say."""
    key = sort.removeprefix("-")
    if sort.startswith("-"):
        return f"The largest {key} first; the least first: --sort {key}"
    return f"The least {key} first; the largest first: --sort -{key}"


def by_tags(keys: list[str]) -> Columns[Artifact]:
    chosen = [(key, partial(_tag, key)) for key in keys if key not in SHOWN_ANYWAY]
    return [
        ("id", lambda a: a.name),
        ("name", lambda a: a.job_name),
        ("by", lambda a: a.creator),
        *chosen,
        ("submitted", lambda a: Ago(a.created_at)),
    ]


def _tag(key: str, job: Artifact) -> object:
    value = job.tags.get(key)
    return f"{value:.6g}" if isinstance(value, float) else value


@app.command("compare")
def compare(one: JobArgument, two: JobArgument, project: InProject = None, as_json: AsJson = False) -> None:
    """What differs between two jobs: command, code, input, resources, tags and what they measured."""
    with connect(project) as client:
        first, second = client.jobs.compare(one, two)
        changed: list[tuple[str, str]] = []
        before, after = first.get("code"), second.get("code")
        if before and after and before != after and not (before + after).count("/"):
            changed = [(_change(file), file.path) for file in client.lake.diff(before, after)]
    rows = {key: (first.get(key), second.get(key)) for key in dict.fromkeys([*first, *second])}
    rows = {key: pair for key, pair in rows.items() if pair[0] != pair[1]}
    if as_json:
        paths = [path for _, path in changed]
        print(json.dumps({"differs": rows, "changed files": paths}, indent=2, default=str))
        return
    if rows:
        show_table(["", one, two], [[key, *pair] for key, pair in rows.items()])
    for what, path in changed:
        print(f"{what}: {path}")
    if not rows:
        say("They differ in nothing that is on record.")


def _change(file: Difference) -> str:
    """Returns what became of a file from the first job's code to the second's."""
    if file.before is None:
        return "added"
    return "removed" if file.after is None else "changed"


@app.command("show")
def show(job: JobArgument, project: InProject = None, as_json: AsJson = False) -> None:
    """Everything about one job."""
    with connect(project) as client:
        show_one(client.jobs.get(job).about, as_json, facts_of)


@app.command("top")
def top(
    every: Annotated[float, typer.Option(min=0.5, metavar="SECONDS", help="Draw it anew so often")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show it once and end")] = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many")] = 40,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """What runs and what waits now, with bars of progress, until Ctrl-C."""
    with connect(project) as client:
        watch(client, None if once or as_json else every, limit, as_json)


MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
ATTEMPTS: Columns[wire.JobAttempt] = [
    ("attempt", lambda a: str(a.attempt)),
    ("device", lambda a: a.device),
    ("seconds", lambda a: f"{a.seconds:.1f}"),
    ("then", lambda a: a.state),
    ("lines", lambda a: str(a.log_lines)),
    ("reason", lambda a: a.reason),
]


@app.command("environment")
def environment(job: JobArgument, project: InProject = None, as_json: AsJson = False) -> None:
    """The packages that it ran with, version by version, as a requirements file."""
    with connect(project) as client:
        found = client.jobs.get(job).environment()
    if as_json:
        show_one(found, as_json)
        return
    say(f"Python {found.python}, environment {found.name}")
    print("\n".join(found.packages))


@app.command("attempts")
def attempts(job: JobArgument, project: InProject = None, as_json: AsJson = False) -> None:
    """How often the job was tried, and how each attempt ended."""
    with connect(project) as client:
        found = client.jobs.get(job).attempts()
    show_list(found, ATTEMPTS, as_json, "No attempt is over yet.")


logs_app = typer.Typer()


@app.command("logs")
@logs_app.command("logs")
def logs(
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job is over")] = False,
    search: Annotated[str | None, typer.Option(help="Only lines with these words")] = None,
    attempt: Annotated[int | None, typer.Option(min=1, help="An earlier attempt, counted from 1")] = None,
    all_attempts: Annotated[bool, typer.Option("--all", help="All attempts, one after another")] = False,
    project: InProject = None,
) -> None:
    """What the job printed, in its latest attempt unless another is asked for."""
    with connect(project) as client:
        found = client.jobs.get(job)
        which = range(1, max(1, found.about.attempt) + 1) if all_attempts else [attempt]
        for each in which:
            if all_attempts:
                say(f"attempt {each}:")
            for line in found.logs(follow=follow and not all_attempts, search=search, attempt=each):
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
            _show_names(found.metrics(), as_json)
            return
        points = found.series(name)
    columns: Columns[wire.Point] = [
        ("step", lambda p: p.step),
        ("value", lambda p: p.value if p.text is None else p.text),
    ]
    show_list(points, columns, as_json, "No points.")


def _show_names(measured: dict[str, int], as_json: bool) -> None:
    if as_json:
        print(json.dumps(measured, indent=2))
        return
    show_table(["metric", "points"], list(measured.items()))
    if all(name.startswith("system/") for name in measured):
        say(
            'It has measured nothing of its own. In Python easel.log_metric("loss", 0.3, step=1) measures, as do '
            "MLflow's calls; anywhere else a printed line does: [EASEL_METRIC] loss=0.3 step=1"
        )


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


rerun_app = typer.Typer()


@app.command("rerun")
@rerun_app.command("rerun")
def rerun(
    job: JobArgument,
    input_set: Annotated[str | None, typer.Option("--input", help="Another input file set")] = None,
    from_cell: Annotated[
        int | None, typer.Option(min=1, help="Of a notebook: the code cell to begin with")
    ] = None,
    project: InProject = None,
) -> None:
    """Run it again as a new job, on the same versions of code and input."""
    with connect(project) as client:
        print(client.jobs.get(job).rerun(input_set, from_cell=from_cell).id)


@app.command("wait")
def wait(job: JobArgument, project: InProject = None, as_json: AsJson = False) -> None:
    """Follow a job to its end; exits as the job does."""
    with connect(project) as client:
        raise typer.Exit(finish(client.jobs.get(job), as_json))


def finish(job: JobHandle, as_json: bool) -> int:
    """Print the log to its end; returns the exit code for the shell."""
    over = threading.Event()
    threading.Thread(target=_tell_waiting, args=(job.copy(), over), daemon=True).start()
    for line in job.logs(follow=True):
        over.set()
        _print(line)
    over.set()
    job.wait(check=False)
    if as_json:
        print(json.dumps(job.about.model_dump(mode="json"), indent=2))
    _tell_end(job)
    if job.state == "finished":
        return 0
    code = job.about.exit_code
    return code if code is not None and 0 < code < 256 else 1


def _tell_waiting(job: JobHandle, over: threading.Event) -> None:
    """Say why a job has not begun, once it takes long, and again when the reason is another."""
    said = None
    while not over.wait(WAITING_S):
        try:
            about = job.refresh().about
        except EaselError:
            return
        if about.over or about.state not in ("queued", "launching"):
            return
        if about.waiting and about.waiting != said:
            said = about.waiting
            say(f"Waiting: {said}")


def _tell_end(job: JobHandle) -> None:
    job.wait(check=False)
    if job.state == "finished":
        say(f"Finished. {told_output(job.about.output_set, output_of(job))}")
    else:
        say(f"{job.state.capitalize()}: {job.about.reason}")
        if hint := packages_hint(job.about.reason or ""):
            say(hint)


def packages_hint(reason: str) -> str:
    """Returns how to name packages, for a job that ended because one was missing; nothing for any other."""
    missing = MISSING_MODULE.search(reason)
    if missing is None:
        return ""
    return (
        "A job has the packages that requirements.txt (or uv.lock, environment.yml) beside its code names: write the "
        f"one that has {missing[1].partition('.')[0]} there, or send a module of your own along with --code FOLDER"
    )


def output_of(job: JobHandle) -> FileSet | None:
    """What the job left; nothing where a grant hides it: the job has finished all the same."""
    try:
        return job.output()
    except (Denied, NotFound):
        return None


def told_output(name: str | None, made: FileSet | None) -> str:
    """Returns where the job's output is; whoever wrote it elsewhere learns where it should have been."""
    if made is not None and made.files == 0:
        return "Nothing was kept: only what lies in the folder output/ at the end is."
    return f"Output: {name}" + (
        "" if made is None else f", {counted(made.files, 'file')}, {size(made.bytes)}"
    )


def _print(line: wire.LogLine) -> None:
    if line.text.startswith(PROGRESS) and sys.stderr.isatty():
        _draw(line.text.removeprefix(PROGRESS).strip())
        return
    print(line.text, file=sys.stderr if line.stream == "err" else sys.stdout, flush=True)


def _draw(text: str) -> None:
    """Draw how much is done in place of the line that says so; the next line of the log is printed over it."""
    try:
        share = float(text.rstrip("% ")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        return
    print(f"{bar(share)}\r", end="\n" if share >= 1.0 else "", file=sys.stderr, flush=True)
