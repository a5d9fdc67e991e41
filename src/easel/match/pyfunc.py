"""A stored model as MLflow reads it: files that say who loads it, and the loader, which executes nothing of the model.

`mlflow.pyfunc.load_model` finds `MLmodel` in the folder and calls `_load_pyfunc` here; the weights are safetensors and
skops as everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from easel.match.model import Model, load_model, present
from easel.match.raw import open_value
from easel.match.read import read_asked
from easel.version import __version__

_DESCRIPTION = "MLmodel"


def describe_for_mlflow(folder: Path, python: str, metric: str = "") -> None:
    """Write `MLmodel` and what an environment for it needs beside a saved model. `metric` chooses among classes."""
    described = {
        "flavors": {
            "python_function": {
                "loader_module": __name__,
                "python_version": python,
                "env": {"virtualenv": "python_env.yaml"},
                "metric": metric,
            }
        },
        "mlflow_version": "3.1.0",
    }
    # JSON is YAML too.
    (folder / _DESCRIPTION).write_text(json.dumps(described, indent=1), encoding="utf-8")
    (folder / "requirements.txt").write_text(f"easel-ml[apps]=={__version__}\n", encoding="utf-8")
    environment = {"python": python, "dependencies": ["-r requirements.txt"]}
    (folder / "python_env.yaml").write_text(json.dumps(environment, indent=1), encoding="utf-8")


class AppModel:
    """What `mlflow.pyfunc` wraps: objects in, the answers of `easel infer` out."""

    def __init__(self, model: Model, metric: str) -> None:
        self._model, self._metric = model, metric

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """One answer for each row of a table, each element of a list, or the one object."""
        asked = self._model.program.input
        inputs = [
            read_asked(asked, open_value(raw), f"object {number}")[0]
            for number, raw in enumerate(objects_of(model_input, asked.field_names), start=1)
        ]
        return present(self._model, self._model.predict(inputs), self._metric) if inputs else []


def objects_of(given: Any, names: Sequence[str]) -> list[Any]:
    """The objects that MLflow passes on: a table of pandas, columns by name, an array, a list, or one object."""
    if hasattr(given, "columns") and hasattr(given, "to_dict"):
        rows = [{str(k): _plain(v) for k, v in row.items()} for row in given.to_dict(orient="records")]
        if set(map(str, given.columns)) & set(names):
            return rows
        return [next(iter(row.values())) if len(row) == 1 else list(row.values()) for row in rows]
    if isinstance(given, Mapping):
        columns = {str(k): _plain(v) for k, v in given.items()}
        lengths = {len(v) if isinstance(v, list) else -1 for v in columns.values()}
        if len(lengths) == 1 and (length := lengths.pop()) >= 0:
            return [{k: v[row] for k, v in columns.items()} for row in range(length)]
        return [columns]
    plain = _plain(given)
    return plain if isinstance(plain, list) else [plain]


def _plain(value: Any) -> Any:
    """Returns the value without types of NumPy; what is not a number is missing."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if isinstance(value, float) and value != value else value


def _load_pyfunc(path: str) -> AppModel:
    """The name is MLflow's."""
    folder = Path(path)
    described = json.loads((folder / _DESCRIPTION).read_text(encoding="utf-8"))
    metric = described["flavors"]["python_function"].get("metric", "")
    return AppModel(load_model(folder), metric)
