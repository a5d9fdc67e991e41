"""The model that answers now as an archive: ONNX, or the form it is stored in, with a runnable example."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Literal

from easel.declare.page import PageRequest
from easel.declare.parse import parse_program
from easel.errors import InvalidInput
from easel.flow.apps.files import AppFiles, read_pair
from easel.flow.apps.infer import Models, served
from easel.flow.lake.upload import Lake
from easel.match.candidate import Candidate
from easel.match.examples import Object
from easel.match.raw import open_value
from easel.match.read import read_object
from easel.records.app import App
from easel.records.identity import Caller
from easel.store import app_examples

Form = Literal["auto", "onnx", "native"]
TRIED = 3

_RUN = '''"""Ask the exported model: python run.py object.json   (needs `pip install easel-ml[apps]`)

object.json holds one input or a list of them; without it the examples beside this file are asked.
"""

import json
import sys
from pathlib import Path

from easel.declare.parse import parse_program
from easel.match.model import load_model, present
from easel.match.raw import open_value
from easel.match.read import read_object

here = Path(__file__).parent
model = load_model(here / "model")
asked = json.loads(Path(sys.argv[1] if len(sys.argv) > 1 else here / "examples.json").read_text())
objects = asked if isinstance(asked, list) else [asked]
files = lambda path: (here / path.lstrip("/")).read_bytes()
inputs = [read_object(model.program.input, open_value(one, files), "input") for one in objects]
for answer in present(model, model.predict(inputs)):
    print(json.dumps(answer))
'''


def export_model(lake: Lake, models: Models, caller: Caller, name: str, form: Form) -> tuple[str, bytes]:
    """Returns a file name and the bytes of a zip archive; `auto` is ONNX where that can hold the model, else native."""
    if form == "auto":
        try:
            return export_model(lake, models, caller, name, "onnx")
        except InvalidInput:
            form = "native"
    app, best = served(lake, caller, name)
    assert best.model_set is not None
    raw = _some_inputs(lake, caller, app)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if form == "onnx":
            # Only here: it brings scikit-learn, which a server that exports nothing need not load.
            from easel.match.export import export_onnx

            model = models.get(lake, caller, best.model_set)
            files = AppFiles(lake, caller, app)
            inputs: list[Object] = [
                read_object(parse_program(app.program).input, open_value(one, files), "input") for one in raw
            ]
            export_onnx(model, inputs, folder)
        else:
            stored = next(models.folder(lake, caller, best.model_set).rglob("model.json")).parent
            shutil.copytree(stored, folder / "model")
            _write_examples(lake, caller, app, raw, folder)
            (folder / "run.py").write_text(_RUN, encoding="utf-8")
        card = {
            "app": app.name,
            "model": best.model_set,
            "candidate": Candidate.from_json(dict(best.candidate)).name,
            "quality": best.quality,
            "program": app.program,
        }
        (folder / "card.json").write_text(json.dumps(card, indent=1), encoding="utf-8")
        return f"{best.model_set.replace(':', '-')}-{form}.zip", _zipped(folder)


def _some_inputs(lake: Lake, caller: Caller, app: App) -> list[Any]:
    with lake.store.read() as tx:
        some = app_examples.page(tx, app.id, PageRequest(limit=TRIED)).items
    return [read_pair(lake, caller, example)[0] for example in some]


def _write_examples(lake: Lake, caller: Caller, app: App, raw: list[Any], folder: Path) -> None:
    """The inputs, and beside them the files that they name."""
    (folder / "examples.json").write_text(json.dumps(raw), encoding="utf-8")
    files = AppFiles(lake, caller, app)
    for one in raw:
        if isinstance(one, dict) and "$file" in one:
            target = folder / str(one["$file"]).lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(files(str(one["$file"])))


def _zipped(folder: Path) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())
    return out.getvalue()
