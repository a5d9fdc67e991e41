"""infer: objects through the best model so far, with the model's name, version and score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from easel.declare.parse import parse_program
from easel.errors import Conflict
from easel.flow.apps.next_trial import best_trial
from easel.flow.lake.checkout import checkout
from easel.flow.lake.upload import Lake
from easel.match.candidate import Candidate
from easel.match.model import Model, load_model, present
from easel.match.read import read_object
from easel.records.identity import Caller
from easel.store import apps


@dataclass(frozen=True, slots=True)
class Answers:
    """One answer for each object, and which model gave them."""

    answers: Sequence[dict[str, Any]]
    candidate: str
    model: str
    quality: float


class Models:
    """Loaded models by file-set version, the last few. A version never changes, so none is ever stale."""

    def __init__(self, folder: Path, most: int = 8) -> None:
        self._folder, self._most = folder, most
        self._loaded: dict[str, Model] = {}

    def get(self, lake: Lake, caller: Caller, reference: str) -> Model:
        key = f"{caller.project_id}/{reference}"
        if key not in self._loaded:
            target = self._folder / caller.project_id / reference.replace(":", "-")
            if not (target / "ready").exists():
                checkout(lake, caller, reference, target)
                (target / "ready").touch()
            described = next(target.rglob("model.json"))
            if len(self._loaded) >= self._most:
                self._loaded.pop(next(iter(self._loaded)))
            self._loaded[key] = load_model(described.parent)
        return self._loaded[key]


def infer(lake: Lake, models: Models, caller: Caller, name: str, objects: Sequence[Any]) -> Answers:
    """The model is chosen once for the whole batch, so a better one never answers half of it."""
    with lake.store.read() as tx:
        app = apps.find(tx, caller.project_id, name)
        best = best_trial(apps.trials(tx, app.id))
    if best is None or best.model_set is None or best.quality is None:
        raise Conflict(f"{name} has no model yet: feed examples, and look again in a moment")
    program = parse_program(app.program)
    inputs = [read_object(program.input, one, f"object {k}") for k, one in enumerate(objects, start=1)]
    model = models.get(lake, caller, best.model_set)
    answers = present(model, model.predict(inputs)) if inputs else []
    candidate = Candidate.from_json(dict(best.candidate)).name
    return Answers(answers, candidate, best.model_set, best.quality)
