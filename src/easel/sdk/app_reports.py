"""What is asked of a model after its first score."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from easel.errors import Conflict, InvalidInput, NotFound
from easel.sdk.connection import ask
from easel.sdk.transfer import Progress, no_progress
from easel.wire import app as app_wire
from easel.wire import app_report as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.sdk.jobs import JobHandle

MOST_MODELS = 5
"""So many models may take over from each other while a report is waited for."""


class AppReports:
    """The part of `client.apps` that looks at a model."""

    _client: Client

    def report(self, name: str) -> app_wire.Report:
        """Confusion matrix or residuals, and training curves, of the model that answers."""
        return self._client.connection.get(f"{self._path}/{name}/report", app_wire.Report)

    @property
    def _path(self) -> str:
        return f"{self._client.root}/apps"

    def score(
        self, name: str, source: str | os.PathLike[str], *, progress: Progress = no_progress
    ) -> wire.Scoring:
        """Start a job that answers every object of a local file or folder (it is uploaded), of a path of the lake, or
        of a file set `rows:3`. All answers are by one model version.
        """
        path, reference = Path(source), str(source)
        if path.exists():
            reference = f"/apps/{name}/to-score/{path.resolve().name}{'/' if path.is_dir() else ''}"
            self._client.lake.upload(path, reference, progress=progress)
        elif not reference.startswith("/") and (path.suffix or "/" in reference):
            raise InvalidInput(f"there is no file or folder {source}; a file set is written rows:3")
        body = ask(wire.ScoreFiles, reference=reference)
        return self._client.connection.post(f"{self._path}/{name}/score", body, wire.Scoring)

    def ask_report(self, name: str) -> JobHandle:
        """Start the job whose findings become part of `report(name)`; the one that did or does, if there is one."""
        found = self._client.connection.post(f"{self._path}/{name}/report", {}, wire.StartedJob)
        return self._client.jobs.get(found.job)

    def make_report(self, name: str) -> app_wire.Report:
        """Wait for the findings about the model that answers; of a better one, if it took over meanwhile."""
        for _ in range(MOST_MODELS):
            job = self.ask_report(name).wait()
            found = self.report(name)
            if found.job == job.id:
                return found
        raise Conflict(f"better models of {name} came faster than reports: try again, or pause it first")

    def ask_checks(self, name: str) -> JobHandle:
        """Start the job that checks the examples that are switched on; the one that did or does, if there is one."""
        found = self._client.connection.post(f"{self._path}/{name}/checks", {}, wire.StartedJob)
        return self._client.jobs.get(found.job)

    def checks(self, name: str) -> wire.Checks:
        """What was found about the examples, once that was asked for."""
        return self._client.connection.get(f"{self._path}/{name}/checks", wire.Checks)

    def card(self, name: str, form: Literal["md", "html"] = "md") -> str:
        """The model card as Markdown or as an HTML page; with what a report found, if one was made."""
        path = f"{self._path}/{name}/card"
        return self._client.connection.request("GET", path, params={"form": form}).content.decode()

    def save_predictions(self, job: JobHandle, target: str | os.PathLike[str]) -> list[Path]:
        """Download what a finished scoring job answered; where it went."""
        return self._client.lake.download(predictions_of(job.wait()), target)


def predictions_of(job: JobHandle) -> str:
    """The reference of what a finished scoring job answered."""
    kept, written = job.about.output_set, (job.about.result or {}).get("predictions")
    if kept is None or not written:
        raise NotFound(f"job {job.id} left no predictions")
    return f"/{kept.partition(':')[0]}/{written}@{kept}"
