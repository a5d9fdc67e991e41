"""What a job says about itself in its log: tags, progress and metrics. Pure: a line in, facts out.

`[EASEL_TAG] job model:BERT`, `[EASEL_TAG_NUM] fileset precision:0.7` (the paper's `ACAI_` names too),
`[EASEL_PROGRESS] 0.4`, `[EASEL_METRIC] loss=0.1 step=3`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

MARKS = (b"[EASEL_", b"[ACAI_")
_LINE = re.compile(r"\[(?:EASEL|ACAI)_(TAG_NUM|TAG|PROGRESS|METRIC)\]\s+(.*\S)\s*$")
_TAG = re.compile(r"(\S+)\s+([^:\s][^:]*?)\s*:\s*(.+)")
_PAIR = re.compile(r"([A-Za-z_][\w./-]{0,99})\s*=\s*([-+.\w]+)")
MAX_KEY, MAX_VALUE = 100, 1000


@dataclass(frozen=True, slots=True)
class TagLine:
    """`of` is `job`, or a file set: `fileset` means the job's own output."""

    of: str
    key: str
    value: str | float


@dataclass(frozen=True, slots=True)
class ProgressLine:
    fraction: float


@dataclass(frozen=True, slots=True)
class Metric:
    """`step` is None when the line names none: then it is the next one of its name."""

    name: str
    value: float
    step: int | None


Fact = TagLine | ProgressLine | Metric


def has_directive(chunk: bytes) -> bool:
    """Whether it is worth looking at the lines of this chunk: nearly none is."""
    return any(mark in chunk for mark in MARKS)


def parse(line: str) -> list[Fact]:
    """The facts in one line; a line that means to say something and says it wrongly says nothing."""
    found = _LINE.search(line)
    if not found:
        return []
    kind, text = found.groups()
    kinds: dict[str, Literal["text", "number"]] = {"TAG": "text", "TAG_NUM": "number"}
    if kind in kinds:
        return _tag(text, kinds[kind])
    if kind == "PROGRESS":
        fraction = _number(text.removesuffix("%"))
        if fraction is None:
            return []
        return [ProgressLine(min(1.0, max(0.0, fraction / 100 if text.endswith("%") else fraction)))]
    return _metrics(text)


def _tag(text: str, kind: Literal["text", "number"]) -> list[Fact]:
    found = _TAG.fullmatch(text)
    if not found:
        return []
    of, key, value = found.groups()
    number = _number(value) if kind == "number" else None
    if kind == "number" and number is None:
        return []
    return [TagLine(of, key[:MAX_KEY], value[:MAX_VALUE] if number is None else number)]


def _metrics(text: str) -> list[Fact]:
    pairs = {name: _number(value, finite=False) for name, value in _PAIR.findall(text)}
    step = pairs.pop("step", None)
    at = int(step) if step is not None and math.isfinite(step) and abs(step) < 2**53 else None
    return [Metric(name, value, at) for name, value in pairs.items() if value is not None]


def _number(text: str, finite: bool = True) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) or not finite else None
