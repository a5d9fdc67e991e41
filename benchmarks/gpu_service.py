"""Apps of pictures on the live service with a GPU: what runs there, how many together, and what it takes.

    python benchmarks/gpu_service.py [--seconds 120] [--pictures 5000] [--kernels-first] [--json PATH]

Starts `easel up` on an empty folder, feeds two apps of drawn pictures (blurred blobs at a place that the class says) and
looks after that time at every trial: where it ran, with how many others in one process, how long, and how good it is.
With `--kernels-first` it waits until the machine's kernels for its small networks are built, which happens once in a
machine's life.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np

from easel.sdk.client import Client
from easel.testing.server import running

PROGRAM = "input: image 28 x 28 x 1\noutput: [{}]"
WAITED_FOR = "bn_alexnet 0.25"
"""The last of the narrow networks (`easel.match.build_kernels`)."""
CLASSES = [f"c{k}" for k in range(10)]


def pictures(count: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bytes `(count, 28, 28, 1)` and the class of each."""
    rng = np.random.default_rng(seed)
    y = rng.integers(10, size=count)
    x = rng.normal(0.35, noise, size=(count, 28, 28))
    rows, columns = 4 + 4 * (y // 2), 6 + 14 * (y % 2)
    for dr in range(4):
        for dc in range(4):
            x[np.arange(count), rows + dr, columns + dc] += 0.3
    return (255 * x.clip(0, 1)).astype(np.uint8)[..., None], y


def feed(client: Client, folder: Path, name: str, count: int, noise: float, seed: int) -> None:
    x, y = pictures(count, noise, seed)
    path = folder / f"{name}.npz"
    np.savez(path, x=x, y=np.array(CLASSES)[y])
    client.apps.declare(name, PROGRAM.format(", ".join(CLASSES)))
    client.apps.feed_path(name, path)


def row(client: Client, trial: Any) -> dict[str, Any]:
    about = client.jobs.get(trial.job).about
    run, told = about.spec["run"], about.result or {}
    pack = run.get("pack") or {}
    return {
        "candidate": trial.candidate,
        "state": trial.state,
        "gpus": about.spec["resources"]["gpus"],
        "meant_together": pack.get("size", 1),
        "together": told.get("together", 1),
        "seconds": trial.seconds,
        "expected_s": trial.expected_seconds if hasattr(trial, "expected_seconds") else None,
        "quality": trial.quality,
        "reason": about.reason,
    }


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    words.add_argument("--seconds", type=float, default=120.0)
    words.add_argument("--pictures", type=int, default=5000)
    words.add_argument("--kernels-first", action="store_true")
    words.add_argument("--json", type=Path)
    asked = words.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with running(folder / "home") as server:
            root = server.client()
            root.projects.create("lab")
            client = root.in_project("lab")
            began = time.monotonic()
            while asked.kernels_first and not (folder / "home/kernels/ready/networks" / WAITED_FOR).exists():
                time.sleep(0.5)
            waited = round(time.monotonic() - began, 1)
            for number, (name, noise) in enumerate((("plain", 0.3), ("noisy", 0.6))):
                feed(client, folder, name, asked.pictures, noise, number)
            began, first = time.monotonic(), {}
            while time.monotonic() - began < asked.seconds:
                for name in ("plain", "noisy"):
                    if name not in first and client.apps.get(name).serving is not None:
                        first[name] = round(time.monotonic() - began, 1)
                time.sleep(0.5)
            devices = [one.model_dump(mode="json") for one in client.queues.devices()]
            rows = {
                name: [row(client, one) for one in client.apps.trials(name)] for name in ("plain", "noisy")
            }
            if not any(one["gpus"] for some in rows.values() for one in some):
                print("nothing ran on a GPU; the end of the server's log:", server.log[-4000:], sep="\n")
            found = {"kernels_s": waited, "first_model_s": first, "devices": devices, "trials": rows}
    print(f"waited {found['kernels_s']} s for kernels")
    for name, some in found["trials"].items():
        print(f"{name}: first model after {found['first_model_s'].get(name)} s, {len(some)} trials")
        for one in some:
            print(
                f"  {one['candidate']:60} {one['state']:9} gpu {one['gpus']:<7} together {one['together']} of"
                f" {one['meant_together']} {one['seconds'] or 0:7.1f} s  {one['quality']}  {one['reason'] or ''}"
            )
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=1, default=str))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
