"""`easel apps`, `easel feed`, `easel refine`, `easel infer`, `easel generate`."""

from __future__ import annotations

import json
import sys
import time
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from easel.cli.complete import COMPLETERS
from easel.cli.connect import connect
from easel.cli.output import (
    AsJson,
    Columns,
    InProject,
    ago,
    counted,
    is_wide,
    say,
    show_list,
    show_one,
)
from easel.cli.terms import BudgetAmount, Deadline, Pause, Until, Weight, asked, tell
from easel.declare.answers import write_answers, write_pictures
from easel.errors import InvalidInput
from easel.sdk.examples import json_pairs, json_values, pictures_in, read_declared, rows_in

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.wire import app as wire

app = typer.Typer(no_args_is_help=True, help="Declare what to learn; see how far everybody's models are.")
feed_app = typer.Typer()
refine_app = typer.Typer()
infer_app = typer.Typer()
generate_app = typer.Typer()


class PictureFit(StrEnum):
    STRETCH = "stretch"
    PAD = "pad"
    CROP = "crop"


class RateGrid(StrEnum):
    CANDIDATES = "candidates"
    TRIAL = "trial"


class ModelFormat(StrEnum):
    ONNX = "onnx"
    NATIVE = "native"


BITS = "Programs that do better: one kind of answer (classes, or numbers) from a table, pictures, a text or a series."


def score_of(best: wire.BestModel) -> str:
    """`0.672 (0.631 to 0.713)`: the score without the luck of the choice, and its 90 % interval by sampling."""
    if best.low is None or best.high is None or best.low == best.high:
        return f"{best.shown:.4f}"
    return f"{best.shown:.3f} ({best.low:.3f} to {best.high:.3f})"


def against_baseline(best: wire.BestModel) -> str | None:
    """Whether the model is any better than always giving the same answer; nothing where that is not known."""
    if best.baseline is None:
        return None
    if best.shown - best.baseline > 1.645 * (best.error or 0.0):
        return f"always giving the same answer scores {best.baseline:.3f}"
    return f"no better than always giving the same answer, which scores {best.baseline:.3f}"


AppName = Annotated[
    str, typer.Argument(metavar="APP", help="The app's name", autocompletion=COMPLETERS["app"])
]

SHORT: Columns[wire.App] = [
    ("app", lambda a: a.name),
    ("examples", lambda a: a.examples - a.switched_off),
    ("best", lambda a: None if a.best is None else score_of(a.best)),
    ("model", lambda a: None if a.best is None else a.best.candidate),
    ("improved", lambda a: ago(a.last_improvement_at)),
    ("trials", lambda a: a.trials),
]
COLUMNS: Columns[wire.App] = [
    *SHORT,
    ("template", lambda a: a.template),
    ("next", lambda a: None if a.next is None else a.next.candidate),
    ("what it does", lambda a: a.waiting),
]
EXAMPLES: Columns[wire.FedExample] = [
    ("example", lambda e: e.digest),
    ("class", lambda e: e.answer if e.answer is not None else e.stratum),
    ("on", lambda e: e.on),
    ("fed", lambda e: e.fed_at),
    ("input", lambda e: e.preview),
]
SUSPECTS: Columns[wire.Suspicion] = [
    ("example", lambda s: s.example.digest),
    ("loss", lambda s: f"{s.loss:.3f}"),
    ("class", lambda s: s.example.answer),
    ("input", lambda s: s.example.preview),
]
TRIALS: Columns[wire.TrialView] = [
    ("candidate", lambda t: t.candidate),
    ("state", lambda t: t.state),
    ("score", lambda t: None if t.quality is None else f"{t.quality:.4f}"),
    ("seconds", lambda t: None if t.seconds is None else f"{t.seconds:.1f}"),
    ("expected s", lambda t: f"{t.cost_s:.1f}"),
    ("model", lambda t: t.model),
]
PROSPECTS: Columns[wire.Prospect] = [
    ("candidate", lambda p: p.candidate),
    ("state", lambda p: p.state),
    ("expected", lambda p: f"{p.mean:.3f} ({p.low:.2f} to {p.high:.2f})"),
    ("seconds", lambda p: f"{p.cost_s:.1f}"),
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
            if made.template.startswith("general"):
                say(
                    "No template fits this program, so it is learned bit by bit, which seldom becomes good. "
                    + BITS
                )


@app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """Every app: best score, last improvement, what runs, what comes next and why."""
    with connect(project) as client:
        found = list(client.apps.list())
        columns = COLUMNS if is_wide() else SHORT
        show_list(found, columns, as_json, "No app yet: easel apps declare NAME PROGRAM")
        for one in [] if as_json or is_wide() else found:
            say(_prospects(one))


def _prospects(one: wire.App) -> str:
    """Returns in a sentence what a narrow window has no columns for."""
    known = None if one.best is None else against_baseline(one.best)
    beside = f" ({known})" if known else ""
    following = f". Next: {one.next.why}" if one.next else ""
    return f"{one.name} ({one.template}){beside} {one.waiting}{following}"


@app.command("show")
def show(name: AppName, project: InProject = None, as_json: AsJson = False) -> None:
    """One app."""
    with connect(project) as client:
        show_one(client.apps.get(name), as_json)


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
        show_list(found.items, PROSPECTS, as_json, "Nothing to choose from yet: feed examples.")


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


@app.command("pin")
def pin(name: AppName, model: str, project: InProject = None) -> None:
    """Let this model (NAME-model:3) answer, whatever is found."""
    with connect(project) as client:
        client.apps.pin(name, model)
        say(f"{model} answers from now on")


@app.command("unpin")
def unpin(name: AppName, project: InProject = None) -> None:
    """Let the best model so far answer again."""
    with connect(project) as client:
        found = client.apps.unpin(name).serving
        say("the best model answers again" + (f": {found.candidate}" if found else ""))


@app.command("rollback")
def rollback(
    name: AppName,
    forward: Annotated[
        bool, typer.Option("--forward", help="To the model after the present one again")
    ] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Let the model answer that answered before the present one; --forward goes the other way."""
    with connect(project) as client:
        found = client.apps.rollback(name, forward=forward)
        if as_json:
            show_one(found, as_json)
        elif found.serving is not None:
            kept = "" if found.pinned else ", and every better one after it"
            say(f"{found.serving.model} ({found.serving.candidate}) answers from now on{kept}")


@app.command("export")
def export(
    name: AppName,
    form: Annotated[
        ModelFormat, typer.Option(help="onnx, or native: safetensors or skops")
    ] = ModelFormat.ONNX,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The zip file to write")] = None,
    project: InProject = None,
) -> None:
    """The model that answers, as a zip archive with a runnable example."""
    with connect(project) as client:
        target = output or Path(f"{name}-{form.value}.zip")
        packed = client.apps.export(name, form.value)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(packed)
        say(f"{target}: unpack it and run  python run.py")


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


@feed_app.command()
def feed(
    name: AppName,
    data: Annotated[
        str,
        typer.Argument(
            help="A CSV, JSON-lines, Parquet or npz file, a folder of pictures (one folder for each class) or "
            "with x.npy and y.npy; /path/ or /@set for what lies in the lake; - for JSON lines from a pipe"
        ),
    ],
    fit: Annotated[
        PictureFit, typer.Option(help="What to do with pictures of another size")
    ] = PictureFit.STRETCH,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out examples that do not fit, rather than refuse all")
    ] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Add pairs of examples. Feeding the same again adds nothing."""
    with connect(project) as client:
        if data == "-":
            fed = client.apps.feed(name, json_pairs(sys.stdin), skip_bad=skip_bad)
        elif data.startswith("/") and not Path(data).exists():
            fed = client.apps.feed_reference(name, data, fit=fit.value, skip_bad=skip_bad)
        else:
            fed = client.apps.feed_path(name, data, fit=fit.value, skip_bad=skip_bad)
        if as_json:
            show_one(fed, as_json)
            return
        for one in fed.refused[:10]:
            say(f"left out: {'' if one.file else f'pair {one.pair}: '}{one.why}")
        say(f"{fed.new} new, {fed.known} known already, {fed.total} in all")
        for note in fed.notes:
            say(f"note: {note}")
        lacks = client.apps.get(name).lacks
        if lacks:
            say(f"before it can learn it needs {lacks}")


@refine_app.command()
def refine(
    name: AppName,
    digests: Annotated[
        list[str] | None, typer.Argument(help="Examples to switch; without any they are listed")
    ] = None,
    on: Annotated[bool | None, typer.Option("--on/--off", help="Switch on or off")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Only those, e.g. class:eq:cat, on:eq:false, preview:contains:blurred"),
    ] = None,
    suspects: Annotated[
        bool,
        typer.Option("--suspects", help="Most likely mislabelled first; with --off N worst are switched"),
    ] = False,
    judge: Annotated[bool, typer.Option("--judge", help="Judge every example first (starts a job)")] = False,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="At most so many; without it 20 suspects, or all that --where finds"),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(
            help="Those that a check found: outliers, labels, near-duplicates, contradictions, missing"
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take back the newest switch")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Browse all examples ever fed; switch them off and on, singly, by query or by suspicion."""
    with connect(project) as client:
        if undo:
            say(f"{counted(len(client.apps.undo(name)), 'example')} switched back")
            return
        if check is not None:
            digests = found_by(client, name, check)[:limit]
            if on is None or not digests:
                wanted = set(digests)
                listed = (one for one in client.apps.examples(name) if one.digest in wanted)
                show_list(listed, EXAMPLES, as_json, f"The check found no examples: easel checks {name}")
                return
        if judge:
            client.jobs.get(client.apps.judge(name)).wait()
        if suspects or judge:
            found = client.apps.suspects(name, limit or 20).items
            if on is None:
                show_list(found, SUSPECTS, as_json, "Nothing was judged yet: wait for a model, or --judge.")
                return
            digests = [one.example.digest for one in found]
        filters = where or []
        matching = client.apps.examples(name, *filters)
        if filters and limit and on is not None and not digests:
            digests, filters = [one.digest for one in islice(matching, limit)], []
        if digests or (where and on is not None):
            changed = client.apps.refine(name, digests or [], filters=filters, on=bool(on))
            say(f"{counted(len(changed), 'example')} switched {'on' if on else 'off'}")
            return
        if on is not None:
            raise InvalidInput("which examples? Name some, or use --where or --suspects")
        show_list(islice(matching, limit), EXAMPLES, as_json, "There are no such examples.")


def found_by(client: Client, name: str, kind: str) -> list[str]:
    """The examples that a check of this kind found; the checks are made first, if they were not."""
    client.apps.ask_checks(name).wait()
    found = client.apps.checks(name).checks
    return list(dict.fromkeys(digest for one in found if one.kind == kind for digest in one.digests))


@infer_app.command()
def infer(
    name: AppName,
    objects: Annotated[
        str,
        typer.Argument(
            help="One object as JSON, a CSV or JSON-lines file, a picture, a folder of pictures, - for a pipe"
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A CSV file for the answers, or a folder for answered pictures"),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Answer objects that do not fit with their error")
    ] = False,
    project: InProject = None,
) -> None:
    """Ask the best model so far; one JSON line for each object, with its name where it is a file of a folder."""
    names: list[str] = []
    rows: list[dict[str, Any]] = []
    with connect(project) as client:
        if objects == "-":
            found = client.apps.infer(name, list(json_values(sys.stdin)), skip_bad=skip_bad)
        elif len(objects) < 4096 and Path(objects).is_dir():
            names = [str(path.relative_to(objects)) for path in pictures_in(Path(objects))]
            found = client.apps.infer_path(name, objects, skip_bad=skip_bad)
        elif len(objects) < 4096 and Path(objects).exists():
            names = [Path(objects).name] if output is not None and output.suffix != ".csv" else []
            rows = rows_in(Path(objects)) if output is not None else []
            found = client.apps.infer_path(name, objects, skip_bad=skip_bad)
        else:
            try:
                found = client.apps.infer(name, [json.loads(objects)], skip_bad=skip_bad)
            except json.JSONDecodeError as error:
                raise InvalidInput(f"there is no file {objects[:60]}, and as JSON: {error}") from None
        say(f"{found.candidate} ({found.model}), validation score {found.quality:.4f}")
        for note in found.notes[:20]:
            say(f"note: {note}")
        if output is not None:
            outputs = read_declared(client.apps.get(name).program).output.field_names
            if output.suffix.lower() == ".csv":
                beside = rows or [{"file": one} for one in names]
                write_answers(output, beside, found.answers, outputs)
            else:
                write_pictures(output, names, found.answers)
            say(f"{output}: {counted(len(found.answers), 'answer')}")
            return
        for number, answer in enumerate(found.answers):
            print(json.dumps({"file": names[number], **answer} if names else answer))


@generate_app.command()
def generate(
    name: AppName,
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where to write the programs")] = Path(),
    project: InProject = None,
) -> None:
    """Write stand-alone programs feed, refine, infer and a typed module; the token stays outside."""
    with connect(project) as client:
        sources = client.apps.sources(name)
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in sources.items():
        (folder / file).write_text(text, encoding="utf-8")
        say(str(folder / file))
