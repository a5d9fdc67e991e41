"""Four people, four kinds of data, one pool: a live table of everybody's best model, then answers.

    python scripts/demo_apps.py ADDRESS PROJECT TOKEN_FOLDER [--seconds 120] [--small]

TOKEN_FOLDER holds one file with a token for each of ana, ben, chloe and dan. `--small` feeds a part of the data
and stops as soon as everybody has a model.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table
from sklearn import datasets

from easel import Client
from easel.wire.app import App, Fed

PATIENCE_S = 300.0


@dataclass(frozen=True)
class Part:
    """What one person brings: a program, examples, and a few objects to ask about with their true answers."""

    person: str
    app: str
    program: str
    feed: Callable[[Client, str], Fed]
    asked: list[Any]
    truth: list[str]


def digits(small: bool) -> Part:
    data = datasets.load_digits()
    images = data.images[..., None].astype(np.float32)
    count = 200 if small else 1700
    pairs = [(image, str(label)) for image, label in zip(images[:count], data.target[:count], strict=True)]
    return Part(
        "ana",
        "digits",
        "input: image 8 x 8\noutput: category",
        lambda client, name: client.apps.feed(name, pairs),
        list(images[-5:]),
        [str(label) for label in data.target[-5:]],
    )


def wine(folder: Path) -> Part:
    data = datasets.load_wine()
    names = [name.replace("/", " ") for name in data.feature_names]
    rows = [
        [*map(str, row), str(data.target_names[label])]
        for row, label in zip(data.data, data.target, strict=True)
    ]
    path = folder / "wine.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[*names, "grower"], *(row for k, row in enumerate(rows) if k % 36)])
    fields = ", ".join(f"{json.dumps(name)}: number" for name in names)
    return Part(
        "ben",
        "wine",
        f"input: {{{fields}}}\noutput: {{grower: category}}",
        lambda client, name: client.apps.feed_path(name, path),
        [dict(zip(names, row[:-1], strict=True)) for row in rows[::36]],
        [row[-1] for row in rows[::36]],
    )


def waves(small: bool) -> Part:
    rng = np.random.default_rng(0)

    def one(kind: str) -> np.ndarray:
        t = np.linspace(0, 6 * np.pi, 60) * rng.uniform(0.7, 1.3) + rng.uniform(0, 6)
        shape = {"sine": np.sin(t), "square": np.sign(np.sin(t)), "saw": (t / np.pi) % 2 - 1}[kind]
        return np.asarray((shape + rng.normal(0, 0.4, 60))[:, None], dtype=np.float32)

    kinds = [("sine", "square", "saw")[k % 3] for k in range(65 if small else 305)]
    series = [one(kind) for kind in kinds]
    return Part(
        "chloe",
        "waves",
        "input: series of tensor 1\noutput: [sine, square, saw]",
        lambda client, name: client.apps.feed(name, list(zip(series[:-5], kinds[:-5], strict=True))),
        series[-5:],
        kinds[-5:],
    )


def diabetes(small: bool) -> Part:
    data = datasets.load_diabetes()
    count = 100 if small else 437
    objects = [dict(zip(data.feature_names, map(float, row), strict=True)) for row in data.data]
    pairs = [(one, float(y)) for one, y in zip(objects[:count], data.target[:count], strict=True)]
    return Part(
        "dan",
        "diabetes",
        f"input: {{{', '.join(f'{name}: number' for name in data.feature_names)}}}\noutput: number",
        lambda client, name: client.apps.feed(name, pairs),
        objects[-5:],
        [f"{y:.0f}" for y in data.target[-5:]],
    )


def table_of(parts: list[Part], apps: dict[str, App], left: float) -> Table:
    table = Table(title=f"everybody's best model so far ({left:.0f} s to go)", title_justify="left", box=None)
    for column in ("who", "app", "best", "metric", "model", "tried", "next"):
        long = column in ("model", "next")
        table.add_column(column, overflow="ellipsis", no_wrap=True, max_width=16 if long else None)
    for part in parts:
        app = apps[part.app]
        best = app.best
        table.add_row(
            part.person,
            app.name,
            "–" if best is None else f"{best.quality:.4f}",
            app.metric,
            "–" if best is None else best.candidate,
            str(app.trials - len(app.running)),
            "–" if app.next is None else app.next.candidate,
        )
    return table


def watch(client: Client, parts: list[Part], seconds: float, until_first: bool, console: Console) -> None:
    ends = time.monotonic() + seconds
    with Live(console=console, refresh_per_second=2, transient=False) as live:
        while True:
            apps = {app.name: app for app in client.apps.list()}
            left = max(0.0, ends - time.monotonic())
            live.update(table_of(parts, apps, left))
            everybody = all(apps[part.app].best is not None for part in parts)
            if everybody and (until_first or left == 0.0):
                return
            if time.monotonic() > ends + PATIENCE_S:
                raise SystemExit("somebody is still without a model")
            time.sleep(0.5)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("address")
    arguments.add_argument("project")
    arguments.add_argument("tokens", type=Path)
    arguments.add_argument("--seconds", type=float, default=120.0)
    arguments.add_argument("--small", action="store_true")
    given = arguments.parse_args()
    console = Console(width=80)
    with tempfile.TemporaryDirectory() as folder:
        parts = [digits(given.small), wine(Path(folder)), waves(given.small), diabetes(given.small)]
        clients = {
            part.person: Client(
                given.address, (given.tokens / part.person).read_text().strip(), given.project
            )
            for part in parts
        }
        for part in parts:
            made = clients[part.person].apps.declare(part.app, part.program)
            fed = part.feed(clients[part.person], part.app)
            console.print(
                f"{part.person} declares {made.name} ({made.template}) and feeds {fed.new} examples"
            )
        watch(clients["ana"], parts, given.seconds, given.small, console)
    for part in parts:
        found = clients[part.person].apps.infer(part.app, part.asked)
        answers = [one["label"] if "label" in one else f"{one['value']:.0f}" for one in found.answers]
        console.print(
            f"{part.person} asks {part.app}: {', '.join(answers)}\n"
            f"    the truth: {', '.join(part.truth)}; by {found.candidate}, score {found.quality:.3f}"
        )
    for client in clients.values():
        client.close()


if __name__ == "__main__":
    main()
