"""Apps on a real server: time to the first model, feeding pictures, answering.

    python benchmarks/apps_live.py [--quick] [--json PATH]

Starts `easel up` on an empty folder and measures as a client does, over HTTP: (1) seconds from the end of a feed of
1,000 rows to a usable model on an idle pool; (2) feeding 10,000 small PNG files beside uploading the like of them to the
lake; (3) the median time of an answer for one row and one 28 × 28 picture, model warm, and requests per second of
eight clients at once.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from easel.sdk.client import Client
from easel.testing.server import ServerProcess, running


def wait_for_model(client: Client, name: str, limit: float = 300.0) -> float:
    began = time.perf_counter()
    while client.apps.get(name).serving is None:
        if time.perf_counter() - began > limit:
            raise SystemExit(f"{name} has no model after {limit} s")
        time.sleep(0.05)
    return time.perf_counter() - began


def first_model(client: Client) -> float:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 8))
    y = np.where(x[:, 0] * x[:, 1] + x[:, 2] > 0, "yes", "no")
    fields = ", ".join(f"f{k}: number" for k in range(8))
    client.apps.declare("rows", f"input: {{{fields}}}\noutput: [no, yes]")
    client.apps.feed(
        "rows",
        [
            ({f"f{k}": float(v) for k, v in enumerate(row)}, str(label))
            for row, label in zip(x, y, strict=True)
        ],
    )
    return wait_for_model(client, "rows")


def write_pictures(folder: Path, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for number in range(count):
        place = folder / ("a" if number % 2 else "b")
        place.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, size=(16, 16), dtype=np.uint8)
        Image.fromarray(pixels).save(place / f"{number:05d}.png")


def feed_rate(client: Client, count: int) -> tuple[float, float]:
    """Files per second: into the lake, and as examples."""
    with tempfile.TemporaryDirectory() as made:
        plain, fed = Path(made) / "plain", Path(made) / "fed"
        write_pictures(plain, count, 1)
        write_pictures(fed, count, 2)
        began = time.perf_counter()
        client.lake.upload(plain, "/plain/")
        lake = time.perf_counter() - began
        client.apps.declare("pictures", "input: image 16 x 16\noutput: [a, b]")
        began = time.perf_counter()
        found = client.apps.feed_path("pictures", fed)
        took = time.perf_counter() - began
    assert found.new == count, found
    client.apps.delete("pictures")
    return count / lake, count / took


def answering(client: Client, name: str, one: Any, count: int) -> tuple[float, float]:
    """Median milliseconds of an answer, one after the other."""
    client.apps.infer(name, [one])
    times = []
    for _ in range(count):
        began = time.perf_counter()
        client.apps.infer(name, [one])
        times.append(time.perf_counter() - began)
    return float(np.median(times) * 1e3), float(np.quantile(times, 0.95) * 1e3)


def rate(server: ServerProcess, project: str, name: str, one: Any, seconds: float, batch: int) -> float:
    """Requests per second of eight clients at once, each asking about `batch` objects."""
    counts = [0] * 8
    ends = time.perf_counter() + seconds

    def ask(k: int) -> None:
        client = Client(server.address, server.admin_token, project)
        while time.perf_counter() < ends:
            client.apps.infer(name, [one] * batch)
            counts[k] += 1
        client.close()

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - began)


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--json", type=Path)
    options = arguments.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as home, running(Path(home), warm_trials="true") as server:
        root = server.client()
        root.projects.create("bench")
        client = root.in_project("bench")
        time.sleep(3 if options.quick else 15)  # idle: the libraries of trials are imported ahead
        found["first model, s"] = first_model(client)
        rng = np.random.default_rng(0)
        pictures = [
            (rng.integers(0, 100, size=(28, 28, 1)).astype(np.float32) + 100 * (k % 2), "ab"[k % 2])
            for k in range(120)
        ]
        client.apps.declare("photos", "input: image 28 x 28\noutput: [a, b]")
        client.apps.feed("photos", pictures)
        wait_for_model(client, "photos")
        count = 100 if options.quick else 400
        row = {f"f{k}": 0.3 for k in range(8)}
        for name in ("rows", "photos"):
            trial = client.apps.get(name).serving
            assert trial is not None
            # Answering alone is measured: what learns on the side shares the same cores.
            client.apps.pin(name, trial.model)
            client.apps.refine(name, filters=["digest:ne:x"], on=False)
        while any(app.running for app in client.apps.list()):
            time.sleep(0.2)
        for name, one in (("rows", row), ("photos", pictures[0][0])):
            middle, high = answering(client, name, one, count)
            about = client.apps.infer(name, [one])
            found[f"{name}: model"] = about.candidate
            found[f"{name}: p50, ms"] = middle
            found[f"{name}: p95, ms"] = high
            seconds = 2.0 if options.quick else 6.0
            found[f"{name}: requests/s, one object each"] = rate(server, "bench", name, one, seconds, 1)
            found[f"{name}: objects/s in batches of 50"] = 50 * rate(server, "bench", name, one, seconds, 50)
        lake, fed = feed_rate(client, 500 if options.quick else 10_000)
        found["lake, files/s"] = lake
        found["feed, files/s"] = fed
        found["feed / lake"] = fed / lake
    for key, value in found.items():
        print(f"| {key} | {value if isinstance(value, str) else round(value, 2)} |")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
