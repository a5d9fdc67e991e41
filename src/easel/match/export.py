"""The best model as ONNX with a runnable example, beside the safetensors or skops form it is stored in."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from easel.errors import InvalidInput
from easel.match.estimator_body import EstimatorBody, predict_matrix
from easel.match.examples import Object
from easel.match.model import Model, present
from easel.match.registry import family_of

_RUN = '''"""Run the exported model: python run.py  (needs onnxruntime and numpy only)"""

import json
from pathlib import Path

import numpy as np
import onnxruntime

here = Path(__file__).parent
about = json.loads((here / "about.json").read_text())
session = onnxruntime.InferenceSession(here / "model.onnx", providers=["CPUExecutionProvider"])
example = np.load(here / "example.npz")
answers = session.run(None, {node.name: example[node.name] for node in session.get_inputs()})[0]
if about["classes"] and about["temperature"] != 1:
    answers = np.clip(answers, 1e-12, 1.0) ** (1 / about["temperature"])
    answers /= answers.sum(1, keepdims=True)
for answer in answers:
    if about["classes"]:
        print(about["classes"][int(answer.argmax())], answer.round(4).tolist())
    else:
        print(answer.tolist())
'''


def export_onnx(model: Model, inputs: Sequence[Object], folder: Path) -> Path:
    """`model.onnx`, encoded `example.npz`, `about.json` and `run.py`; `inputs` are a few objects to try.

    The graph starts after the encoder: its inputs are the arrays that `about.json` describes. It answers with
    probabilities or values; those of a network are in units of the target's deviation. Probabilities are as the model
    learned them: `run.py` brings them to the temperature that validation found honest.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arrays = _arrays(model, inputs)
    if isinstance(model.body, EstimatorBody):
        _export_estimator(model, arrays["x"], folder / "model.onnx")
    else:
        from easel.match.export_network import export_network

        export_network(model, arrays, folder / "model.onnx")
    np.savez(folder / "example.npz", **arrays)
    about = {
        "program": str(model.program),
        "candidate": model.candidate.name,
        "classes": list(getattr(model.target, "names", ())),
        "temperature": model.calibration.temperature,
        "inputs": {name: [str(array.dtype), list(array.shape[1:])] for name, array in arrays.items()},
        "answers": present(model, model.predict(inputs)),
    }
    (folder / "about.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    (folder / "run.py").write_text(_RUN, encoding="utf-8")
    return folder / "model.onnx"


def _arrays(model: Model, inputs: Sequence[Object]) -> dict[str, Any]:
    reason = family_of(model.candidate).no_onnx
    if reason is not None:
        raise InvalidInput(reason)
    encoded = model.source(inputs)
    if not isinstance(encoded, dict):
        return {"x": np.asarray(encoded, dtype=np.float32)}
    if isinstance(model.body, EstimatorBody):
        return {"x": encoded["x"].reshape(len(inputs), -1).astype(np.float32)}
    return dict(encoded)


def _export_estimator(model: Model, x: np.ndarray, path: Path) -> None:
    """Exports by skl2onnx; refuses a graph that cannot be made, or that answers otherwise than the model."""
    try:
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import FloatTensorType
    except ImportError:
        raise InvalidInput(
            "exporting this model as ONNX needs skl2onnx; its skops file (--form native) needs nothing"
        ) from None
    assert isinstance(model.body, EstimatorBody)
    estimator = model.body.estimator
    classify = hasattr(model.target, "names")
    refused = InvalidInput(
        f"{model.candidate.name} has no faithful form in ONNX: take its skops file (--form native)"
    )
    with warnings.catch_warnings():
        # The converter asks scikit-learn for attributes that are on their way out.
        warnings.simplefilter("ignore", FutureWarning)
        graph = _convert(to_onnx, FloatTensorType, estimator, x, classify, refused)
    outputs = list(graph.graph.output)
    del graph.graph.output[:]
    graph.graph.output.append(outputs[-1])
    path.write_bytes(graph.SerializeToString())
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    answered = np.asarray(session.run(None, {"x": x})[0])
    wanted = predict_matrix(estimator, x, model.target)
    if answered.size != wanted.size or not np.allclose(
        answered.reshape(wanted.shape), wanted, atol=1e-3, rtol=1e-3
    ):
        path.unlink()
        raise refused


def _convert(
    to_onnx: Any, kind: Any, estimator: Any, x: np.ndarray, classify: bool, refused: InvalidInput
) -> Any:
    plain = classify and hasattr(estimator, "predict_proba")
    try:
        return to_onnx(
            estimator,
            initial_types=[("x", kind([None, x.shape[1]]))],
            options={id(estimator): {"zipmap": False}} if plain else None,
        )
    except (RuntimeError, NameError, TypeError, ValueError) as error:
        raise refused from error
