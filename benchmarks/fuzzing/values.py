"""One run of odd input: its random values, what was called and what was found."""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from easel.errors import EaselError
from easel.run.failure import Failure

MOST_CPU_S = 2.0
_WORDS = [
    "a",
    "name",
    "x" * 300,
    "..",
    "/",
    "/a",
    "/a/../b",
    "%2e%2e",
    "a\x00b",
    "\u202e",
    "é",
    "😀",
    "=1+1",
    "-",
    "",
    " ",
]
TEXTS = [
    *_WORDS,
    "' OR 1=1 --",
    "<script>",
    "{{x}}",
    "$(id)",
    "\ud800",
    "\uffff",
    "a:1",
    "a@b:2",
    "null",
    "NaN",
    "1e999",
]
NUMBERS = [
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63),
    2**64,
    10**40,
    0.5,
    -0.0,
    1e308,
    1e-308,
    float("nan"),
    float("inf"),
]


@dataclass
class Fuzz:
    """One run. `ids` are what answers named, so that later calls meet things that exist."""

    rng: random.Random
    ids: list[str] = field(default_factory=lambda: ["astro", "flowers", "texts"])
    calls: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def find(self, what: str) -> None:
        """Keeps a finding and says it at once: a run is long."""
        if what not in self.found:
            sys.stderr.write(what.encode("utf-8", "replace").decode() + "\n")
            sys.stderr.flush()
        self.found.append(what)

    def note(self, kind: str, what: str, act: Callable[[], object]) -> None:
        """Does it, and notes what must not happen."""
        self.calls[kind] += 1
        began = time.process_time()
        try:
            act()
        except (EaselError, Failure):
            pass
        except Exception as error:
            self.find(f"{kind}: {type(error).__name__}: {str(error)[:150]} at {what[:300]!r}")
        spent = time.process_time() - began
        self.slowest = max(self.slowest, spent)
        if spent > MOST_CPU_S:
            self.find(f"{kind}: {spent:.1f} s of processor at {what[:300]!r}")

    # Values. ------------------------------------------------------------------------------------------------

    def text(self) -> str:
        rng = self.rng
        kinds: list[Callable[[], str]] = [
            lambda: rng.choice(TEXTS),
            lambda: rng.choice(self.ids),
            lambda: "".join(
                chr(rng.choice([rng.randrange(128), rng.randrange(0x2FFF)])) for _ in range(rng.randrange(30))
            ),
        ]
        return rng.choice(kinds)()

    def value(self, depth: int = 0) -> Any:
        rng = self.rng
        kind = rng.randrange(8 if depth < 4 else 5)
        if kind < 2:
            return self.text()
        if kind == 2:
            return rng.choice(NUMBERS)
        if kind in (3, 4):
            return rng.choice([None, True, False, [], {}])
        if kind in (5, 6):
            return [self.value(depth + 1) for _ in range(rng.randrange(4))]
        return {self.text(): self.value(depth + 1) for _ in range(rng.randrange(4))}

    def fitting(self, schema: dict[str, Any], whole: dict[str, Any], depth: int = 0) -> Any:
        """Mostly what the schema asks for, now and then something else."""
        rng = self.rng
        if rng.random() < 0.12 or depth > 6:
            return self.value()
        if "$ref" in schema:
            return self.fitting(
                whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]], whole, depth + 1
            )
        for key in ("anyOf", "oneOf", "allOf"):
            if key in schema:
                return self.fitting(rng.choice(schema[key]), whole, depth + 1)
        if "enum" in schema:
            return rng.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        if schema.get("examples") and rng.random() < 0.5:
            return rng.choice(schema["examples"])
        match schema.get("type"):
            case "object":
                given = {
                    name: self.fitting(each, whole, depth + 1)
                    for name, each in schema.get("properties", {}).items()
                    if name in schema.get("required", ()) or rng.random() < 0.3
                }
                return (
                    given
                    if schema.get("properties")
                    else {self.text(): self.value() for _ in range(rng.randrange(3))}
                )
            case "array":
                return [
                    self.fitting(schema.get("items", {}), whole, depth + 1) for _ in range(rng.randrange(4))
                ]
            case "integer":
                return rng.choice([rng.randrange(100), rng.choice([1, 2**31, -1])])
            case "number":
                return rng.choice([rng.random(), rng.choice(NUMBERS)])
            case "boolean":
                return rng.random() < 0.5
            case "null":
                return None
            case "string":
                return self.text()
        return self.value()

    # Grammars. ----------------------------------------------------------------------------------------------

    def broken(self, text: str) -> str:
        """Pieces of a valid text, shuffled, repeated, cut."""
        rng = self.rng
        parts = re.findall(r"\w+|\s+|.", text)
        for _ in range(rng.randrange(6)):
            place = rng.randrange(len(parts) + 1)
            match rng.randrange(4):
                case 0:
                    parts.insert(place, self.text())
                case 1:
                    del parts[place : place + rng.randrange(3)]
                case 2:
                    parts[place:place] = parts[: rng.randrange(5)] * rng.randrange(50)
                case 3:
                    rng.shuffle(parts)
        return "".join(parts)
