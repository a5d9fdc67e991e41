"""`easel studies`: create, run, look, resume; results in and out as CSV."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.cli.plain import lasting, money
from easel.cli.terms import BudgetAmount, Deadline, Pause, Until, Weight, asked, tell
from easel.declare.counted import counted
from easel.errors import Conflict, InvalidInput, NotFound

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.wire import study as wire

app = typer.Typer(no_args_is_help=True, help="The best configuration of a job under a budget.")


def studies_in(currency: str) -> Columns[wire.Study]:
    """The columns of studies; budgets of money are in a currency."""
    units = {"cost": currency, "time": "seconds", "count": "points"}
    return [
        ("study", lambda s: s.name),
        ("state", lambda s: s.state),
        ("strategy", lambda s: s.strategy),
        ("points", lambda s: sum(s.points.values())),
        ("running", lambda s: s.points.get("running", 0)),
        ("spent", lambda s: f"{s.budget.spent:.4g} of {s.budget.amount:g} {units[s.budget.kind]}"),
        ("best", lambda s: None if s.best is None else _measures(s.best, currency)),
        ("created", lambda s: s.created_at),
    ]


POINTS: Columns[wire.StudyPoint] = [
    ("#", lambda p: p.number),
    ("state", lambda p: p.state),
    ("point", lambda p: _settings(p.point)),
    ("measured", lambda p: measured(p.values)),
    ("meets", lambda p: p.feasible),
    ("spent", lambda p: None if p.spent is None else f"{p.spent:.4g}"),
    ("job", lambda p: p.job_id),
    ("reason", lambda p: p.reason),
]
IMPORTANCES: Columns[wire.DimensionShare] = [
    ("dimension", lambda one: one.dimension),
    ("share", lambda one: f"{one.share:.0%}"),
    ("", lambda one: "█" * round(20 * one.share)),
]
UNLIKELY = 0.5
"""A point that meets the constraints with a smaller probability is not expected to."""
File = Annotated[Path, typer.Argument(help="A YAML file with name, job, space and goal")]
Budget = Annotated[
    str | None, typer.Option(help="Another total: cost=5, time=3600 (seconds) or count=60 (points)")
]


EXAMPLE = """\
# A study: easel studies run study.yaml
name: tune                  # what it is called here
job:                        # any job; {rate} and {epochs} stand for the values of a point
  command: python train.py --rate {rate} --epochs {epochs}
  code: .                   # this folder goes along
  resources: {vcpu: 1, memory_mb: 1024}
space:
  - {name: rate, type: float, low: 0.0001, high: 1, log: true}
  - {name: epochs, type: ordinal, values: [4, 16, 64]}
  # - {name: optimiser, type: categorical, values: [sgd, adam]}
goal:
  maximise: accuracy        # the script logs it: easel.log_metric("accuracy", 0.9), or prints
                            # [EASEL_METRIC] accuracy=0.9
  constraints: [time <= 600]    # of what was measured; time in seconds and cost are always known
  budget: {count: 20}       # points; or {time: 3600}, {cost: 5}
workers: 2                  # points that may run at once
"""


@app.command("example")
def example() -> None:
    """Print a study file to begin with: `easel studies example > study.yaml`."""
    print(EXAMPLE, end="")


@app.command("create")
def create(file: File, project: InProject = None, as_json: AsJson = False) -> None:
    """Declare a study without starting it."""
    with connect(project) as client:
        made = client.studies.create_from(_text(file), start=False)
        if as_json:
            show_one(made, as_json)
        else:
            say(f"Study {made.name} is declared. Start it with: easel studies run {made.name}")


@app.command("set")
def set_terms(
    name: str,
    weight: Weight = None,
    deadline: Deadline = None,
    budget: BudgetAmount = None,
    until: Until = None,
    pause: Pause = None,
    project: InProject = None,
) -> None:
    """Say how much a study matters, until when, for how much money, and what is enough."""
    with connect(project) as client:
        tell(name, client.studies.set(name, **asked(weight, deadline, budget, until, pause)), client)


@app.command("run")
def run(
    study: Annotated[str, typer.Argument(help="A study's name, or a YAML file that declares one")],
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait for the end")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Run a study to its end, telling of each point. Running it again follows it, or goes on where it stopped."""
    with connect(project) as client:
        name = _declared(client, study)
        if client.studies.get(name).state != "finished":
            client.studies.start(name)
        _follow(client, name, detach, as_json)


@app.command("resume")
def resume(
    study: str,
    budget: Budget = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait for the end")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a study that was stopped or, with a larger budget, has ended."""
    with connect(project) as client:
        client.studies.start(study, budget=_budget(budget))
        _follow(client, study, detach, as_json)


@app.command("stop")
def stop(study: str, project: InProject = None, as_json: AsJson = False) -> None:
    """Stop a study: no new points, running ones are ended. `resume` goes on."""
    with connect(project) as client:
        _show_all(client, [client.studies.stop(study)], as_json)


@app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """The project's studies, newest first."""
    with connect(project) as client:
        _show_all(client, list(client.studies.list()), as_json)


@app.command("show")
def show(study: str, project: InProject = None, as_json: AsJson = False) -> None:
    """One study and its points."""
    with connect(project) as client:
        found = client.studies.get(study)
        if as_json:
            show_one(found, as_json)
            return
        _show_all(client, [found], as_json)
        if found.reason:
            say(found.reason)
        show_list(client.studies.points(study), POINTS, as_json, "No points yet.")


@app.command("best")
def best(study: str, project: InProject = None, as_json: AsJson = False) -> None:
    """What to deploy now: the best measured point with its job and output, and beside it what is predicted to be
    better, if anything is."""
    with connect(project) as client:
        found = client.studies.get(study)
        if found.measured is None:
            if found.state != "finished":
                raise NotFound(f"study {study} has nothing to recommend yet")
            raise NotFound(
                f"study {study} ended with nothing to recommend: did its runs print what the goal asks for, as"
                " [EASEL_METRIC] name=value? `easel studies show` lists what each of them measured"
            )
        if as_json:
            shown = {"measured": found.measured, "recommended": found.best}
            print(json.dumps({k: v and v.model_dump(mode="json") for k, v in shown.items()}, indent=2))
        else:
            _tell_best(client, found)
        if found.measured.missed:
            raise typer.Exit(1)


@app.command("front")
def front(study: str, project: InProject = None, as_json: AsJson = False) -> None:
    """List the measured points that no other beats in all objectives, with their jobs."""
    with connect(project) as client:
        show_list(client.studies.front(study), POINTS, as_json, "No point measured all objectives yet.")


@app.command("verify")
def verify(
    study: str,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait for the end")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Run the recommended point, so that what is predicted becomes measured."""
    with connect(project) as client:
        started = client.studies.verify(study)
        say(f"#{started.number} runs as {started.job_id}: {_settings(started.point)}")
        if not detach:
            _follow(client, study, detach, as_json)


@app.command("importances")
def importances(
    study: str,
    quantity: Annotated[str | None, typer.Option(help="Another quantity than the objective")] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Which dimensions matter: how much of what the models predict stays when all others are held."""
    with connect(project) as client:
        show_list(client.studies.importances(study, quantity), IMPORTANCES, as_json, "No dimensions.")


@app.command("rm")
def rm(study: str, project: InProject = None) -> None:
    """Forget a study; its jobs and file sets stay."""
    with connect(project) as client:
        client.studies.delete(study)


@app.command("export")
def export(
    study: str,
    file: Annotated[Path | None, typer.Argument(help="Without it, standard output")] = None,
    project: InProject = None,
) -> None:
    """Every measured point as CSV."""
    with connect(project) as client:
        text = client.studies.export_csv(study)
    if file is None:
        sys.stdout.write(text)
    else:
        file.write_text(text, encoding="utf-8", newline="")


@app.command("import")
def import_(study: str, file: Path, project: InProject = None) -> None:
    """Take in points measured elsewhere, as `export` writes them."""
    with connect(project) as client:
        new = client.studies.import_csv(study, _text(file))
    say(counted(new, "new point"))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no file {file}: `easel studies example > {file}` writes one to begin with"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {file}: {error}") from error


def _declared(client: Client, study: str) -> str:
    """The study's name, declared now if it is a file whose study does not exist yet."""
    if not study.endswith((".yaml", ".yml")):
        return study
    text = _text(Path(study))
    from easel.wire.study import study_fields

    asked = study_fields(text)
    try:
        known = client.studies.get(asked.name)
    except NotFound:
        return client.studies.create_from(text, start=False).name
    bare = asked.job.model_copy(update={"code": None})  # which may be a folder here
    spec = asked.model_copy(update={"job": bare}).spec().to_dict()
    changed = [part for part in ("space", "goal") if not _same(spec[part], getattr(known, part))]
    if changed:
        raise Conflict(
            f"there is a study {asked.name!r} whose {' and '.join(changed)} differ from {study}: give the file "
            f"another name (with `earlier: [{asked.name}]` it starts from what is known), or undo the change"
        )
    return asked.name


def _same(mine: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """The server adds today's prices where the file has none, and `resume` may have raised the budget."""
    own = {k: v for k, v in mine.items() if k != "budget" and (k != "rates" or v is not None)}
    return all(theirs.get(k) == v for k, v in own.items()) and set(theirs) - {"budget", "rates"} <= set(mine)


def _budget(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    kind, _, amount = text.partition("=")
    try:
        return {kind: float(amount)}
    except ValueError:
        raise InvalidInput(f"a budget reads cost=5, time=3600 or count=60, not {text!r}") from None


def _show_all(client: Client, found: list[wire.Study], as_json: bool) -> None:
    paid = not as_json and any(each.budget.kind == "cost" for each in found)
    columns = studies_in(client.currency() if paid else "")
    show_list(found, columns, as_json, "No studies yet: easel studies run study.yaml")


def _follow(client: Client, name: str, detach: bool, as_json: bool) -> None:
    if detach:
        _show_all(client, [client.studies.get(name)], as_json)
        return
    say(f"Study {name} runs. Ctrl-C stops following, not the study.")
    kind, currency = client.studies.get(name).budget.kind, client.currency()
    found = client.studies.wait(name, told=lambda point: _tell(point, kind, currency))
    if as_json:
        show_one(found, as_json)
    else:
        say(f"{name} {found.state}: {found.reason}")
        _tell_best(client, found)
    if found.measured is None or found.measured.missed:
        raise typer.Exit(1)


def _tell_best(client: Client, found: wire.Study) -> None:
    """The best measured point with its job and output; the predicted one beside it, where that is another."""
    best = found.measured
    if best is None:
        say("nothing was found: no point measured what the goal asks for")
        for text in _failures(found):
            say(text)
        return
    currency = client.currency()
    if best.missed:
        say(f"nothing feasible: no point meets {', '.join(best.missed)} with the rest. What came nearest:")
    else:
        say("best measured:")
    say(f"  #{best.number} {_settings(best.point)}  →  {measured(best.values, currency)}")
    if best.job_id is not None:
        made = f", output {best.output_set}" if best.output_set else ""
        say(f"  job {best.job_id}{made}")
    if found.goal.get("and"):
        say(f"  the middle of the front; all of it: easel studies front {found.name}")
    if found.best is not None and found.best.observed is None:
        _recommend(found.best, currency)
        say(f"  it was never run: easel studies verify {found.name} runs it")


def _failures(found: wire.Study) -> list[str]:
    return [
        f"{counted(count, 'point')} {state}"
        for state, count in found.points.items()
        if count and state != "running"
    ]


def _tell(point: wire.StudyPoint, kind: str, currency: str) -> None:
    spent = "" if point.spent is None else f"; {_spent(point.spent, kind, currency)} spent"
    mark = "" if point.feasible is None or point.state != "completed" else " ✓" if point.feasible else " ✗"
    say(
        f"#{point.number} {point.state}{mark}  {_settings(point.point)}  →  {measured(point.values, currency)}{spent}"
    )


def _recommend(best: wire.Recommendation, currency: str) -> None:
    hopeless = best.probability is not None and best.probability < UNLIKELY
    what = "predicted to come nearest" if hopeless else "predicted to be better"
    say(f"{what}: {_settings(best.point)}")
    for name, e in best.predicted.items():
        median, low, high = (_quantity(name, value, currency) for value in (e.median, e.low, e.high))
        say(f"  {name}: {median} expected, {low} to {high} with 90 %")
    if best.observed is not None:
        say(f"  measured there: {measured(best.observed, currency)}")
    if best.probability is not None:
        say(f"  {_chance(best.probability)}")


def _chance(probability: float) -> str:
    """Returns what is to be expected of the constraints, in percent."""
    told = f"{100 * probability:.3g} %" if probability >= 0.001 else "less than 0.1 %"
    if probability < UNLIKELY:
        return f"it is not expected to meet the constraints: {told} probable"
    return f"meets the constraints with {told} probability"


def _measures(best: wire.Recommendation, currency: str) -> str:
    return measured(best.observed or {name: e.median for name, e in best.predicted.items()}, currency)


def measured(values: Mapping[str, float | None], currency: str = "") -> str:
    """Returns what was measured, times and sums as people write them."""
    known = {name: value for name, value in values.items() if value is not None}
    return ", ".join(f"{name} {_quantity(name, value, currency)}" for name, value in known.items())


def _quantity(name: str, value: float, currency: str) -> str:
    if name == "time":
        return lasting(value) or ""
    return money(value, currency).strip() if name == "cost" else f"{value:.4g}"


def _spent(amount: float, kind: str, currency: str = "") -> str:
    if kind == "count":
        return counted(round(amount), "point")
    return _quantity(kind, amount, currency)


def _settings(values: Mapping[str, Any]) -> str:
    return " ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items())
