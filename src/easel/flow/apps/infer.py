"""infer: objects through the best model so far, with the model's name, version and score."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from easel.declare.parse import parse_program
from easel.declare.styles import read_styles
from easel.errors import Conflict, NotFound
from easel.flow.apps.best import serving
from easel.flow.apps.files import AppFiles
from easel.flow.apps.ready import lacking, metric_of
from easel.flow.lake.checkout import checkout
from easel.flow.lake.upload import Lake
from easel.match.answer import answer, read_question
from easel.match.candidate import Candidate
from easel.match.model import Model, load_model
from easel.records.app import App, AppTrial
from easel.records.identity import Caller
from easel.store import app_examples, app_trials, apps
from easel.store.engine import Tx


@dataclass(frozen=True, slots=True)
class Answers:
    """One answer for each object, and which model gave them."""

    answers: Sequence[dict[str, Any]]
    candidate: str
    model: str
    quality: float
    pinned: bool
    notes: Sequence[str] = ()
    """What was missing, new or wrong in the objects, and how it was taken."""


class Models:
    """Loaded models by file-set version, the last few. A version never changes, so none is ever stale."""

    def __init__(self, folder: Path, most: int = 8) -> None:
        self._folder, self._most = folder, most
        self._loaded: dict[str, Model] = {}
        self._lock = threading.Lock()

    def get(self, lake: Lake, caller: Caller, reference: str) -> Model:
        key = f"{caller.project_id}/{reference}"
        found = self._loaded.get(key)
        if found is not None:
            return found
        folder = self.folder(lake, caller, reference)
        with self._lock:
            if key not in self._loaded:
                described = next(folder.rglob("model.json"))
                while len(self._loaded) >= self._most:
                    self._loaded.pop(next(iter(self._loaded)))
                self._loaded[key] = load_model(described.parent)
            return self._loaded[key]

    def folder(self, lake: Lake, caller: Caller, reference: str) -> Path:
        """The files of a model set on this machine."""
        target = self._folder / caller.project_id / reference.replace(":", "-")
        with self._lock:
            # It appears whole or not at all.
            if not target.exists():
                checkout(lake, caller, reference, target)
        return target

    def json(self, lake: Lake, caller: Caller, reference: str, name: str) -> Any:
        """A JSON file that the trial left beside its model; None where it left none."""
        found = next(self.folder(lake, caller, reference).rglob(name), None)
        return None if found is None else json.loads(found.read_text(encoding="utf-8"))


def served(lake: Lake, caller: Caller, name: str, version: str | None = None) -> tuple[App, AppTrial]:
    """The app and the trial whose model answers now, or which found the model of this `version`."""
    with lake.store.read() as tx:
        app = apps.find(tx, caller.project_id, name)
        if version is not None:
            return app, _of_version(tx, app, version)
        best = serving(tx, app)
        needs = lacking(app, app_examples.counts(tx, [app.id])[app.id]) if best is None else None
    if needs is not None:
        raise Conflict(f"{name} has no model yet: feed examples, it needs {needs}")
    if best is None or best.model_set is None or best.quality is None:
        raise Conflict(f"{name} has no model yet: look again in a moment")
    return app, best


def _of_version(tx: Tx, app: App, version: str) -> AppTrial:
    for trial in app_trials.trials(tx, app.id):
        if trial.model_set is not None and trial.model_set.rpartition(":")[2] == version:
            return trial
    raise NotFound(
        f"{app.name} has no model of version {version[:20]!r}: `easel apps trials {app.name}` lists them"
    )


def infer(
    lake: Lake, models: Models, caller: Caller, name: str, objects: Sequence[Any], *, skip_bad: bool = False
) -> Answers:
    """The model is chosen once for the whole batch, so a better one never answers half of it.

    A missing or new value is answered with a note. An object that does not fit refuses the call, unless `skip_bad`
    answers it with its error.
    """
    app, best = served(lake, caller, name)
    assert best.model_set is not None
    model = models.get(lake, caller, best.model_set)
    program = parse_program(app.program)
    files, styles = AppFiles(lake, caller, app), read_styles(app.styles)
    question = read_question(program, objects, files, skip_bad=skip_bad, styles=styles)
    [(answers, notes)] = answer(model, [question], metric_of(app))
    candidate = Candidate.from_json(dict(best.candidate)).name
    pinned = app.pinned is not None and app.pinned == best.model_set
    return Answers(answers, candidate, best.model_set, best.quality or 0.0, pinned, tuple(notes))
