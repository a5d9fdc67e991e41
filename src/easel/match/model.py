"""A trained model: answers for objects, and a folder that holds it without being able to execute.

model.json            program, candidate, encoders, classes
weights-0.safetensors networks, one file for each member of the bag
estimator.skops       scikit-learn and LightGBM models; model.cbm those of CatBoost
member-0/             the members of an ensemble, each with its own files
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from easel.declare.parse import parse_program
from easel.declare.program import Program
from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.costs import by_number
from easel.match.encode.bits import BitEncoder
from easel.match.encode.images import PictureEncoder
from easel.match.encode.series import SeriesEncoder, TreeEncoder
from easel.match.encode.subtrees import SubtreeEncoder
from easel.match.encode.tables import TableEncoder
from easel.match.encode.texts import TextEncoder
from easel.match.examples import Object
from easel.match.judge import NONE, Calibration
from easel.match.registry import family_of
from easel.match.targets import Classes, Values

FORMAT = 1
_PARTS: dict[str, type[Any]] = {
    part.__name__: part
    for part in (
        PictureEncoder,
        SeriesEncoder,
        TreeEncoder,
        SubtreeEncoder,
        TableEncoder,
        TextEncoder,
        BitEncoder,
        Classes,
        Values,
    )
}


class Body(Protocol):
    """The part of a model that was learned."""

    @property
    def kind(self) -> str: ...

    def predict(self, inputs: Sequence[Object]) -> NDArray[Any]:
        """`(n, D)` probabilities, `(n, k)` values, `(n, c, h, w)` pictures, `(n, c + 1, l)` series, bits."""
        ...

    def save(self, folder: Path) -> None: ...


@dataclass(frozen=True)
class Model:
    """`source` and `target` are the fitted encoders; `body` is what was learned between them."""

    program: Program
    candidate: Candidate
    source: Any
    target: Any
    body: Body
    calibration: Calibration = NONE

    @cached_property
    def known_words(self) -> Mapping[str, frozenset[str]]:
        """Returns for each category column the words that the model, or any member of an ensemble, can tell apart."""
        found: dict[str, frozenset[str]] = {}
        for member in getattr(self.body, "members", ()):
            for name, words in member.known_words.items():
                found[name] = found.get(name, frozenset()) | words
        own = zip(self.program.input.field_names, getattr(self.source, "vocabularies", ()), strict=False)
        return found | {name: frozenset(words) for name, words in own if words}

    def predict(self, inputs: Sequence[Object]) -> NDArray[Any]:
        raw = self.body.predict(inputs)
        return self.calibration.apply(raw) if isinstance(self.target, Classes) else raw

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.body.save(folder)
        described = {
            "format": FORMAT,
            "kind": self.body.kind,
            "program": str(self.program),
            "candidate": self.candidate.to_json(),
            "source": _freeze(self.source),
            "target": _freeze(self.target),
            "calibration": TypeAdapter(Calibration).dump_python(self.calibration, mode="json"),
        }
        (folder / "model.json").write_text(json.dumps(described), encoding="utf-8")


def load_model(folder: Path, file: str = "model.json") -> Model:
    """A model saved by `Model.save`; networks import torch only when there are any."""
    described = json.loads((folder / file).read_text(encoding="utf-8"))
    if described["format"] != FORMAT:
        raise InvalidInput(f"model format {described['format']} is not known here; update Easel")
    program = parse_program(described["program"])
    candidate = Candidate.from_json(described["candidate"])
    own = family_of(candidate).own_encoder
    parts = _PARTS if own is None else {**_PARTS, own().__name__: own()}
    source, target = (_thaw(described[part], parts) for part in ("source", "target"))
    body: Body
    if described["kind"] == "network":
        from easel.match.network_body import load_networks

        body = load_networks(folder, candidate, source, target)
    elif described["kind"] == "ensemble":
        from easel.match.ensemble import load_ensemble

        body = load_ensemble(folder)
    else:
        from easel.match.estimator_body import load_estimator

        body = load_estimator(folder, candidate, source, target)
    calibration = TypeAdapter(Calibration).validate_python(described.get("calibration", {}))
    return Model(program, candidate, source, target, body, calibration)


def _freeze(part: Any) -> dict[str, Any] | None:
    if part is None:
        return None
    return {"kind": type(part).__name__, "state": TypeAdapter(type(part)).dump_python(part, mode="json")}


def _thaw(stored: dict[str, Any] | None, parts: Mapping[str, type]) -> Any:
    if stored is None:
        return None
    return TypeAdapter(parts[stored["kind"]]).validate_python(stored["state"])


def present(model: Model, raw: NDArray[Any], metric: str = "") -> list[dict[str, Any]]:
    """Predictions → answers that JSON can hold, one for each input; classes are chosen as `metric` wants them."""
    match model.target:
        case Classes(names, _, parts):
            chosen = model.calibration.chosen(raw, by_number(metric, names)).argmax(1)
            return [
                {
                    "label": names[int(best)],
                    "probabilities": {name: round(float(p), 6) for name, p in zip(names, row, strict=True)},
                    **(_several(model, parts, row, int(best)) if parts else {}),
                }
                for row, best in zip(raw, chosen, strict=True)
            ]
        case Values(width):
            return [_values(model, row, width) for row in raw]
        case PictureEncoder():
            return [{"tensor": row.transpose(1, 2, 0).tolist()} for row in raw]
        case SeriesEncoder():
            return [{"series": row[:-1, : max(1, int((row[-1] > 0.5).sum()))].T.tolist()} for row in raw]
        case BitEncoder():
            decoded = [model.target.decode(row) for row in raw]
            names = model.program.output.field_names
            return [
                {
                    n: v.tolist() if isinstance(v, np.ndarray) else v
                    for n, v in zip(names, one.values, strict=True)
                }
                for one in decoded
            ]
    raise AssertionError(f"no answer for {model.target}")


def _several(model: Model, parts: Sequence[Sequence[str]], row: NDArray[Any], best: int) -> dict[str, Any]:
    """Each of several answers by name, and how likely each of its values is."""
    fields = model.program.output.field_names
    shares: dict[str, dict[str, float]] = {name: {} for name in fields}
    for values, p in zip(parts, row, strict=True):
        for name, value in zip(fields, values, strict=True):
            shares[name][value] = shares[name].get(value, 0.0) + float(p)
    told = {name: {value: round(p, 6) for value, p in found.items()} for name, found in shares.items()}
    return {"outputs": dict(zip(fields, parts[best], strict=True)), "each": told}


def _values(model: Model, row: NDArray[Any], width: int) -> dict[str, Any]:
    """One number or several, by name where the program has a name for each, with intervals that cover nine of ten."""
    margins = model.calibration.margins
    if width == 1:
        value = float(row[0])
        return (
            {"value": value, "interval": [value - margins[0], value + margins[0]]}
            if margins
            else {"value": value}
        )
    found: dict[str, Any] = {"value": [float(v) for v in row]}
    if margins:
        found["interval"] = [[float(v) - m, float(v) + m] for v, m in zip(row, margins, strict=True)]
    if len(model.program.output.fields) == width:
        found["outputs"] = dict(zip(model.program.output.field_names, found["value"], strict=True))
    return found
