"""`easel reproduce JOB [FOLDER]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from easel.cli.connect import connect
from easel.cli.jobs import JobArgument
from easel.cli.output import InProject, say

reproduce_app = typer.Typer()


@reproduce_app.command("reproduce")
def reproduce(
    job: JobArgument,
    folder: Annotated[Path | None, typer.Argument(help="A new folder; else one named after the job")] = None,
    project: InProject = None,
) -> None:
    """Lay out the very code and input that a job ran on, and a script that runs its command."""
    from easel.sdk.reproduce import reproduce as lay_out

    with connect(project) as client:
        about = client.jobs.get(job).about
        script = lay_out(client, about, folder or Path(about.id))
    say(f"Code, input and command of {about.id} are in {script.parent}: run sh {script}")
    if about.spec.get("environment", {}).get("secrets"):
        say("It used secrets: set the variables that the script names.")
