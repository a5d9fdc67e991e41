"""`easel score APP FILES -o predictions.csv`: a whole file through a model, as a job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from easel.cli.app_words import AppName
from easel.cli.connect import connect
from easel.cli.output import AsJson, InProject, say, show_one
from easel.declare.counted import counted
from easel.sdk.app_reports import predictions_of

score_app = typer.Typer()


@score_app.command()
def score(
    name: AppName,
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILES",
            help="A file set such as rows:3, a path of the lake, or a file or folder here, which is uploaded: "
            "CSV, xlsx, Parquet, JSON lines, npy, pictures",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write the answers; a folder for answered pictures"),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is done")] = True,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Answer every row of a file or file set, as a job, all by one version of the model.

    Example: easel score shop rows:3 -o predictions.csv
    """
    with connect(project) as client:
        started = client.apps.score(name, source)
        job = client.jobs.get(started.job)
        if not wait and output is None:
            if as_json:
                show_one(started, as_json)
            else:
                say(f"{job.id} scores {source} by {started.model} ({started.candidate})")
            return
        done = job.wait()
        written = client.apps.save_predictions(done, output) if output is not None else []
        if as_json:
            show_one(done.about, as_json)
            return
        result = done.about.result or {}
        say(f"{counted(int(result['objects']), 'object')} answered by {started.model} ({started.candidate})")
        for words in result["first_errors"][:10]:
            say(f"not answered: {words}")
        if result["errors"]:
            say(f"{result['errors']} of {result['objects']} could not be read: the column error says why")
        for note in result["notes"][:10]:
            say(f"note: {note}")
        if output is None:
            say(f"the answers: easel get {predictions_of(done)} .")
        elif written:
            say(f"{output}: kept as {done.about.output_set}, traced by  easel trace {done.about.output_set}")
