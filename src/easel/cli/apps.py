"""`easel apps`: declaring what to learn, and how far everybody's models are."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.app_words import AppName, about_template, facts_of, score_of, sentence_of
from easel.cli.connect import connect
from easel.cli.output import (
    AsJson,
    Columns,
    InProject,
    is_wide,
    say,
    show_list,
    show_one,
)
from easel.cli.plain import Ago, Lasting
from easel.cli.terms import BudgetAmount, Deadline, Pause, Until, Weight, asked, tell
from easel.declare.counted import counted
from easel.errors import InvalidInput
from easel.sdk.examples import read_declared

if TYPE_CHECKING:
    from easel.wire import app as wire

app = typer.Typer(no_args_is_help=True, help="Declare what to learn; see how far everybody's models are.")


class RateGrid(StrEnum):
    CANDIDATES = "candidates"
    TRIAL = "trial"


MOST_PROSPECTS = 20
"""So many candidates fit a window; of the others less is expected."""


SHORT: Columns[wire.App] = [
    ("app", lambda a: a.name),
    ("examples", lambda a: a.examples - a.switched_off),
    ("best", lambda a: None if a.best is None else score_of(a.best)),
    ("model", lambda a: None if a.best is None else a.best.candidate),
    ("improved", lambda a: Ago(a.last_improvement_at)),
    ("trials", lambda a: a.trials),
]
COLUMNS: Columns[wire.App] = [
    *SHORT,
    ("template", lambda a: a.template),
    ("next", lambda a: None if a.next is None else a.next.candidate),
    ("what it does", lambda a: a.waiting),
]
TRIALS: Columns[wire.TrialView] = [
    ("candidate", lambda t: t.candidate),
    ("state", lambda t: t.state),
    ("score", lambda t: None if t.quality is None else f"{t.quality:.4f}"),
    ("took", lambda t: Lasting(t.seconds)),
    ("expected", lambda t: Lasting(t.cost_s)),
    ("model", lambda t: t.model),
]
PROSPECTS: Columns[wire.Prospect] = [
    ("candidate", lambda p: p.candidate),
    ("state", lambda p: p.state),
    ("expected", lambda p: f"{p.mean:.3f} ({p.low:.2f} to {p.high:.2f})"),
    ("takes", lambda p: Lasting(p.cost_s)),
    ("score", lambda p: None if p.quality is None else f"{p.quality:.4f}"),
]


@app.command("declare")
def declare(
    name: str,
    program: Annotated[str, typer.Argument(help="The program, or a file that holds it")],
    metric: Annotated[str | None, typer.Option(help="Without it the task's usual one")] = None,
    rates: Annotated[
        RateGrid, typer.Option(help="Learning rates as candidates of their own, or a grid inside each trial")
    ] = RateGrid.CANDIDATES,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Say what goes in and what comes out."""
    short = len(program) < 256
    if short and Path(program).suffix in (".yaml", ".yml", ".json", ".txt") and not Path(program).exists():
        raise InvalidInput(f"there is no file {program}")
    text = Path(program).read_text(encoding="utf-8") if short and Path(program).is_file() else program
    with connect(project) as client:
        made = client.apps.declare(name, str(read_declared(text)), metric=metric, rates=rates.value)
        if as_json:
            show_one(made, as_json)
        else:
            say(f"{made.name}: {made.template}, measured by {made.metric}. Now: easel feed {made.name} DATA")
            if warning := about_template(made.template):
                say(warning)


@app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """Every app: best score, last improvement, what runs, what comes next and why."""
    with connect(project) as client:
        found = list(client.apps.list())
        columns = COLUMNS if is_wide() else SHORT
        show_list(found, columns, as_json, "No app yet: easel apps declare NAME PROGRAM")
        for one in [] if as_json or is_wide() else found:
            say(sentence_of(one))


@app.command("show")
def show(name: AppName, project: InProject = None, as_json: AsJson = False) -> None:
    """One app."""
    with connect(project) as client:
        show_one(client.apps.get(name), as_json, facts_of)


@app.command("rm")
def rm(
    name: AppName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")] = False,
    project: InProject = None,
) -> None:
    """Delete an app; its trials are ended, its examples and models stay in the lake's history."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete the app {name} and end its trials?", abort=True)
    with connect(project) as client:
        client.apps.delete(name)
        say(f"{name} is deleted")


@app.command("trials")
def trials(
    name: AppName,
    details: Annotated[
        bool, typer.Option("--details", help="Show why each was chosen, and the numbers")
    ] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Candidates tried: score against cost; with --details why each was chosen."""
    with connect(project) as client:
        found = client.apps.trials(name)
        show_list(found, TRIALS, as_json, "Nothing was tried yet.")
        for one in found if details and not as_json else []:
            say(f"{one.candidate}: {one.why}\n  {one.details}")


@app.command("next")
def next_trial(
    name: AppName,
    details: Annotated[bool, typer.Option("--details", help="The numbers that were weighed, too")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Every candidate")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """What comes next and why; what is believed of every candidate."""
    with connect(project) as client:
        found = client.apps.next(name)
        if not as_json:
            if found.next is None:
                say(f"{name} {client.apps.get(name).waiting}")
            else:
                say(f"Next for {name}: {found.next.candidate}\n{found.next.why}")
                if details:
                    say(found.next.details)
        shown = found.items if everything or as_json else found.items[:MOST_PROSPECTS]
        show_list(shown, PROSPECTS, as_json, "Nothing to choose from yet: feed examples.")
        if len(shown) < len(found.items):
            say(f"Less is expected of {counted(len(found.items) - len(shown), 'more candidate')}: --all")


@app.command("set")
def set_terms(
    name: AppName,
    weight: Weight = None,
    deadline: Deadline = None,
    budget: BudgetAmount = None,
    until: Until = None,
    pause: Pause = None,
    project: InProject = None,
) -> None:
    """Say how much an app matters, until when, for how much money, and what is enough."""
    with connect(project) as client:
        tell(name, client.apps.set(name, **asked(weight, deadline, budget, until, pause)), client)


@app.command("metric")
def metric(name: AppName, metric: str, project: InProject = None) -> None:
    """Measure by another metric: roc_auc, f1, mae, …; the model goes on answering."""
    with connect(project) as client:
        say(f"{name} is measured by {client.apps.set_metric(name, metric).metric}")


@app.command("program")
def change_program(
    name: AppName,
    program: Annotated[str, typer.Argument(help="The wider program, or a file that holds it")],
    project: InProject = None,
) -> None:
    """Let values be missing or add classes, without another app: Number becomes Number?."""
    text = (
        Path(program).read_text(encoding="utf-8")
        if len(program) < 256 and Path(program).is_file()
        else program
    )
    with connect(project) as client:
        say(f"{name}: {client.apps.set_program(name, str(read_declared(text))).program}")


@app.command("vectors")
def vectors(
    name: AppName,
    file: Annotated[str, typer.Argument(help="A GloVe file here, or /path or /@set of one in the lake")],
    project: InProject = None,
) -> None:
    """Give an app that reads text word vectors to start from."""
    with connect(project) as client:
        size = client.apps.give_vectors(name, file).vector_size
        say(f"{name} may start from your word vectors of {size} numbers")


@app.command("wait")
def wait(
    name: AppName,
    seconds: Annotated[float, typer.Option(help="Give up after so long")] = 120.0,
    project: InProject = None,
) -> None:
    """Wait until there is a first model."""
    with connect(project) as client:
        ends = time.monotonic() + seconds
        while (found := client.apps.get(name)).serving is None:
            if found.lacks:
                raise InvalidInput(f"{name} cannot learn yet: it needs {found.lacks}")
            if time.monotonic() > ends:
                raise InvalidInput(f"{name} has no model after {seconds:g} s: it {found.waiting}")
            time.sleep(0.2)
