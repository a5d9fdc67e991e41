"""A metric that people write themselves: what each mistake costs, `cost(sick as healthy: 10, healthy as sick: 1)`.

Mistakes that are not named cost 1, right answers nothing. The answer is the class of least expected cost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.errors import InvalidInput

START = "negative_cost("
_NAME = r'(?:"(?:\\.|[^"\\])*"|[^",:()]+?)'
_RULE = re.compile(rf"\s*(?P<truth>{_NAME})\s+as\s+(?P<said>{_NAME})\s*:\s*(?P<cost>[^,\s]+)\s*(?:,|\Z)")
_PLAIN = re.compile(r"[\w.+-]+\Z")
FORM = "write costs like cost(sick as healthy: 10, healthy as sick: 1)"

Mistakes = Mapping[tuple[str, str], float]
"""What it costs to take the first class for the second."""


def is_cost(metric: str) -> bool:
    """Whether a metric's name, as `read_costs` spells it, is a matrix of costs."""
    return metric.startswith(START)


def read_costs(text: str) -> str | None:
    """Returns the metric's one spelling, or None where the text is no matrix of costs at all."""
    bare = text.strip().removeprefix("negative_")
    if not bare.startswith("cost(") or not bare.endswith(")"):
        if bare == "cost" or bare.startswith("cost"):
            raise InvalidInput(FORM)
        return None
    return _spelled(_mistakes(bare.removeprefix("cost(").removesuffix(")")))


def _mistakes(inside: str) -> Mistakes:
    found: dict[tuple[str, str], float] = {}
    at = 0
    while at < len(inside):
        rule = _RULE.match(inside, at)
        if rule is None:
            raise InvalidInput(f"cannot read {inside[at : at + 60]!r}: {FORM}")
        truth, said = _unquoted(rule["truth"]), _unquoted(rule["said"])
        try:
            cost = float(rule["cost"])
        except ValueError:
            raise InvalidInput(f"{rule['cost'][:40]!r} is not a number: {FORM}") from None
        if not (math.isfinite(cost) and 0 <= cost <= 1e9):
            raise InvalidInput(f"a cost is between 0 and 1e9, not {rule['cost'][:40]}")
        if truth == said:
            raise InvalidInput(f"{truth} as {said} is right: it costs nothing")
        if (truth, said) in found:
            raise InvalidInput(f"the cost of {truth} as {said} is given twice")
        found[truth, said] = cost
        at = rule.end()
    if not any(found.values()):
        raise InvalidInput(f"no mistake costs anything: {FORM}")
    return found


def _unquoted(name: str) -> str:
    name = name.strip()
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name.startswith('"') else name


def _spelled(mistakes: Mistakes) -> str:
    rules = (f"{_quoted(t)} as {_quoted(s)}: {cost:g}" for (t, s), cost in mistakes.items())
    return f"{START}{', '.join(rules)})"


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return name if _PLAIN.match(name) and name != "as" else f'"{escaped}"'


def by_number(metric: str, names: Sequence[str]) -> str:
    """Returns the metric with the numbers of the classes in place of their names; other metrics as they are."""
    if not is_cost(metric):
        return metric
    place = {name: str(number) for number, name in enumerate(names)}
    mistakes = _mistakes(metric.removeprefix(START).removesuffix(")"))
    strange = sorted({name for pair in mistakes for name in pair if name not in place})
    if strange:
        raise InvalidInput(
            f"the costs name {', '.join(strange)[:200]}, which is no class; the classes are {', '.join(names)[:200]}"
        )
    return _spelled({(place[truth], place[said]): cost for (truth, said), cost in mistakes.items()})


def largest_cost(metric: str) -> float:
    """Returns the most that one answer can cost."""
    return max(1.0, *_mistakes(metric.removeprefix(START).removesuffix(")")).values())


def cost_matrix(metric: str, classes: int) -> NDArray[np.float64]:
    """`(classes, classes)`: what truth k answered as j costs, of a metric that `by_number` made."""
    costs = np.ones((classes, classes))
    np.fill_diagonal(costs, 0.0)
    for (truth, said), cost in _mistakes(metric.removeprefix(START).removesuffix(")")).items():
        costs[int(truth), int(said)] = cost
    return costs


def cheapest(metric: str, probabilities: NDArray[Any]) -> NDArray[Any]:
    """`(n, D)` whose largest entry is the class of least expected cost."""
    whole: NDArray[Any] = -(probabilities @ cost_matrix(metric, probabilities.shape[1]))
    return whole


def negative_cost(metric: str, truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """The mean cost of the answers, negated."""
    said = cheapest(metric, probabilities).argmax(1)
    return -float(np.mean(cost_matrix(metric, probabilities.shape[1])[truth, said]))
