"""Short texts that lie on every machine: the first paragraphs of the docstrings of installed packages.

Foretold is the part of the package that a paragraph documents. Files are parsed and never imported.
"""

from __future__ import annotations

import ast
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

DOCUMENTED = ("python", "scipy", "sklearn", "torch", "matplotlib")
MOST_CLASSES, MOST_TEXTS = 8, 1_500
LEAST_WORDS, MOST_CHARACTERS = 4, 400


def documented() -> Iterator[tuple[str, Path]]:
    """The packages that are here, each with its folder; `python` is the standard library."""
    yield "python", Path(sysconfig.get_paths()["stdlib"])
    for name in DOCUMENTED[1:]:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            yield name, Path(spec.origin).parent


@dataclass(frozen=True)
class ReadDocstrings:
    """Reads one package: paragraphs of its largest parts, as many of each as there are, up to an equal share."""

    folder: Path

    def __call__(self) -> tuple[str, list[tuple[Any, Any]]]:
        found = sorted({(text, part) for part, text in _paragraphs(self.folder)})
        parts = [part for part, _ in Counter(part for _, part in found).most_common(MOST_CLASSES)]
        rng = np.random.default_rng(5)
        each = MOST_TEXTS // max(len(parts), 1)
        pairs: list[tuple[Any, Any]] = []
        for part in parts:
            texts = [text for text, other in found if other == part]
            pairs += [(texts[i], part) for i in rng.permutation(len(texts))[:each]]
        return "{input: {[Text], []}, output: {[Category], []}}", pairs


def _paragraphs(folder: Path) -> Iterator[tuple[str, str]]:
    """Each part's name (a folder below, or a file) and a paragraph."""
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder).parts
        if any(word.startswith(("test", "_vendor", "site-packages", "idlelib", "lib2to3")) for word in place):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                text = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
                if len(text.split()) >= LEAST_WORDS:
                    yield place[0].removesuffix(".py"), text[:MOST_CHARACTERS]
