"""Folders as MLflow's file store writes them."""

from __future__ import annotations

from pathlib import Path


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def a_run(folder: Path, run_id: str = "0123abcd", status: int = 3, **more: str) -> Path:
    """A run of the experiment `old`; returns its folder."""
    run = folder / "5" / run_id
    write(run.parent / "meta.yaml", "experiment_id: '5'\nlifecycle_stage: active\nname: old\n")
    fields = {
        "run_id": run_id,
        "run_name": "ancient",
        "user_id": "ann",
        "status": str(status),
        "start_time": "1000",
        "end_time": "2000" if status > 2 else "null",
        "lifecycle_stage": "active",
        "artifact_uri": "x",
        **more,
    }
    write(run / "meta.yaml", "".join(f"{name}: {value}\n" for name, value in fields.items()))
    return run


def a_version(folder: Path, model: str, number: int, **fields: str) -> None:
    """A version of a registered model."""
    home = folder / "models" / model
    write(home / "meta.yaml", f"name: {model}\ndescription: old\n")
    told = {"version": str(number), "current_stage": "None", **fields}
    write(
        home / f"version-{number}" / "meta.yaml",
        "".join(f"{name}: {value}\n" for name, value in told.items()),
    )


def a_logged_model(folder: Path) -> None:
    """As MLflow 3 writes it: a deleted run read data, made a model and measured it; a version was registered."""
    run = a_run(folder, lifecycle_stage="deleted")
    model = folder / "5" / "models" / "m-77"
    write(run / "metrics" / "loss", "1000 0.5 3\n")
    write(run / "inputs" / "d1" / "meta.yaml", "source_id: d1\ntags: {mlflow.data.context: train}\n")
    write(
        folder / "5" / "datasets" / "d1" / "meta.yaml",
        "name: iris\ndigest: abc\nsource: '{}'\nsource_type: local\n",
    )
    write(run / "outputs" / "m-77" / "meta.yaml", "step: 3\n")
    write(
        model / "meta.yaml",
        "model_id: m-77\nname: forest\nexperiment_id: '5'\nstatus: 2\nmodel_type: tree\nsource_run_id: 0123abcd\n"
        "lifecycle_stage: active\n",
    )
    write(model / "params" / "depth", "4")
    write(model / "tags" / "author", "ann")
    write(model / "metrics" / "loss", "1000 0.5 3 0123abcd iris abc\n")
    write(model / "artifacts" / "MLmodel", "flavors: {}\n")
    write(model / "artifacts" / "data" / "weights.bin", "bytes")
    a_version(folder, "flora", 1, source=f"{model}/artifacts", run_id="0123abcd", model_id="m-77")
