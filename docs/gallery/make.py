"""Makes the data of the gallery: `python docs/gallery/make.py cells FOLDER`; see NAMES. Small, and the same each time.

Needs NumPy; `cells` and `leaves` also Pillow.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL import Image

TOPICS = {
    "astronomy": [
        "star",
        "galaxy",
        "telescope",
        "orbit",
        "planet",
        "light",
        "dust",
        "spectrum",
        "mass",
        "distance",
    ],
    "cooking": ["butter", "oven", "salt", "dough", "onion", "minute", "stir", "pan", "sauce", "taste"],
    "medicine": [
        "patient",
        "dose",
        "blood",
        "pressure",
        "doctor",
        "treatment",
        "fever",
        "trial",
        "nurse",
        "ward",
    ],
}
FILLERS = [
    "the",
    "a",
    "of",
    "with",
    "and",
    "in",
    "on",
    "for",
    "was",
    "were",
    "is",
    "near",
    "after",
    "before",
    "some",
    "many",
]


def cells(folder: Path, count: int = 60) -> Path:
    """Pictures of 32 × 32 under a microscope: cells that divide, and cells that do not."""
    from PIL import Image

    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:32, 0:32]
    for kind, nuclei in (("resting", 1), ("dividing", 2)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            cx, cy = rng.uniform(13, 19, 2)
            body = np.exp(-((((x - cx) / 11) ** 2 + ((y - cy) / rng.uniform(8, 11)) ** 2) ** 3))
            picture = 40 + 90 * body + rng.normal(0, 8, body.shape)
            angle, apart = rng.uniform(0, np.pi), rng.uniform(3.5, 5) if nuclei == 2 else 0.0
            for sign in (-1, 1)[:nuclei]:
                nx, ny = cx + sign * apart * np.cos(angle), cy + sign * apart * np.sin(angle)
                picture += 100 * np.exp(-(((x - nx) ** 2 + (y - ny) ** 2) / 7))
            shade = np.clip(picture, 0, 255).astype(np.uint8)
            Image.fromarray(shade).save(folder / kind / f"{number:03}.png")
    return folder


def sensors(folder: Path, count: int = 150) -> Path:
    """Vibration of pumps, 64 steps each: sound ones, worn bearings, loose mounts."""
    rng = np.random.default_rng(1)
    t = np.arange(64)
    rows = []
    for number in range(count):
        state = ("sound", "worn", "loose")[number % 3]
        wave = np.sin(t / 3 + rng.uniform(0, 6)) + rng.normal(0, 0.3, 64)
        if state == "worn":
            wave += 0.8 * np.sin(t * 1.9 + rng.uniform(0, 6))
        if state == "loose":
            wave += 1.5 * (rng.random(64) < 0.06) * rng.choice([-1, 1], 64)
        rows.append([*(f"{value:.4f}" for value in wave), state])
    return _table(folder / "pumps.csv", [*(f"t{i}" for i in range(64)), "state"], rows)


def patients(folder: Path, count: int = 400) -> Path:
    """A table of patients with gaps and dates: who comes back within a month. Nobody in it exists."""
    rng = np.random.default_rng(2)
    rows = []
    for number in range(count):
        age = int(rng.integers(18, 95))
        pressure = rng.normal(120 + 0.4 * (age - 50), 12)
        ward = str(rng.choice(["heart", "lung", "surgery"], p=[0.4, 0.3, 0.3]))
        days = max(1, int(rng.poisson(4 + (ward == "surgery") * 3)))
        chance = 1 / (1 + np.exp(-(-3.2 + 0.03 * (age - 50) + 0.25 * (days - 4) + (ward == "heart") * 0.8)))
        month, day = int(rng.integers(1, 13)), int(rng.integers(1, 29))
        shown = "" if rng.random() < 0.1 else f"{pressure:.0f}"
        again = "yes" if rng.random() < chance else "no"
        rows.append([f"P{number:05}", age, shown, ward, f"2026-{month:02}-{day:02}", days, again])
    return _table(
        folder / "patients.csv", ["id", "age", "pressure", "ward", "admitted", "days", "comes_back"], rows
    )


def texts(folder: Path, count: int = 240) -> Path:
    """Short notes about three topics."""
    rng = np.random.default_rng(3)
    rows = []
    for number in range(count):
        topic = list(TOPICS)[number % 3]
        words = [str(w) for w in rng.choice(TOPICS[topic], 6)] + [str(w) for w in rng.choice(FILLERS, 9)]
        rng.shuffle(words)
        rows.append([" ".join(words), topic])
    return _table(folder / "notes.csv", ["note", "topic"], rows)


def tuning(folder: Path) -> Path:
    """A training script and a study that tunes it: see tuning.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    return folder


SCRIPT = """import argparse
import math

given = argparse.ArgumentParser()
given.add_argument("--rate", type=float, default=0.1)
given.add_argument("--width", type=int, default=32)
given.add_argument("--epochs", type=int, default=10)
chosen = given.parse_args()

# stands for a network: too small a rate learns slowly, too large a one never settles
accuracy = 0.0
for epoch in range(1, chosen.epochs + 1):
    ceiling = 0.97 - 0.3 / math.sqrt(chosen.width) - 0.05 * abs(math.log10(chosen.rate / 0.03))
    accuracy = ceiling * (1 - math.exp(-epoch * min(chosen.rate * 10, 1)))
    print(f"[EASEL_METRIC] accuracy={accuracy:.4f} step={epoch}")
    print(f"[EASEL_PROGRESS] {epoch / chosen.epochs:.2f}")
"""
STUDY = """name: tuning
job:
  command: python train.py --rate {rate} --width {width} --epochs {epochs}
  code: tuning
space:
  - {name: rate, type: float, low: 1e-3, high: 1, log: true}
  - {name: width, type: ordinal, values: [8, 32, 128]}
  - {name: epochs, type: ordinal, values: [5, 20]}
goal:
  maximise: accuracy
  budget: {count: 12}
"""


def _leaf(rng: np.random.Generator, *, spots: int, side: int = 64) -> Image.Image:
    """Returns a leaf on paper; a sick one has brown spots."""
    from PIL import Image, ImageDraw, ImageFilter

    size = 4 * side
    paper = int(rng.integers(215, 245))
    picture = Image.new("RGB", (size, size), (paper, paper, paper - 8))
    layer = Image.new("RGBA", (size, size), (0, 0, 0, 0))
    draw = ImageDraw.Draw(layer)
    green = (int(rng.integers(40, 90)), int(rng.integers(110, 160)), int(rng.integers(40, 80)), 255)
    half = int(rng.uniform(0.16, 0.26) * size)
    centre, top, bottom = size // 2, int(0.1 * size), int(0.88 * size)
    draw.ellipse((centre - half, top, centre + half, bottom), fill=green)
    vein = tuple(max(0, part - 30) for part in green[:3])
    draw.line((centre, top, centre, bottom + 20), fill=vein, width=5)
    for y in range(top + 40, bottom - 20, 30):
        draw.line((centre, y, centre + half - 12, y - 25), fill=vein, width=3)
        draw.line((centre, y, centre - half + 12, y - 25), fill=vein, width=3)
    for _ in range(spots):
        angle, reach = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.75)
        x = centre + reach * half * np.cos(angle)
        y = (top + bottom) / 2 + reach * (bottom - top) / 2 * np.sin(angle)
        r = rng.uniform(6, 18)
        brown = (int(rng.integers(90, 140)), int(rng.integers(60, 85)), 35, 255)
        draw.ellipse((x - r, y - r, x + r, y + r), fill=brown)
    turned = layer.rotate(float(rng.uniform(-70, 70)), resample=Image.Resampling.BICUBIC)
    picture.paste(turned, (0, 0), turned)
    return picture.filter(ImageFilter.GaussianBlur(1.5)).resize((side, side))


def leaves(folder: Path, count: int = 120) -> Path:
    """Healthy and sick leaves, a very sick one in the wrong folder, and a new leaf beside them."""
    rng = np.random.default_rng(7)
    for kind in ("healthy", "sick"):
        (folder / "my-leaves" / kind).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            spots = int(rng.integers(3, 9)) if kind == "sick" else 12 if number == 17 else 0
            _leaf(rng, spots=spots).save(folder / "my-leaves" / kind / f"{number:03d}.jpg", quality=92)
    _leaf(rng, spots=6).save(folder / "new-leaf.jpg", quality=92)
    return folder


def _table(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return path


NAMES: dict[str, Callable[[Path], Path]] = {
    "cells": cells,
    "leaves": leaves,
    "sensors": sensors,
    "patients": patients,
    "texts": texts,
    "tuning": tuning,
}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in NAMES:
        sys.exit(f"usage: make.py {'|'.join(NAMES)} FOLDER")
    print(NAMES[sys.argv[1]](Path(sys.argv[2])))
