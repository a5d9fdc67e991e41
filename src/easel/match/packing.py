"""Which trials may be trained as one program on a GPU, told before anything is read. Needs no torch."""

from __future__ import annotations

from easel.match.candidate import GRID, Candidate
from easel.match.family import NetworkFamily, rounds_of
from easel.match.registry import family_of
from easel.match.summary import DataSummary
from easel.records.packing import Packing

PACKED_EXAMPLES = 20_000
"""Networks on more examples fill a GPU one by one."""
MOST_TOGETHER = 64
"""So many networks are trained together at most: each keeps its weights, its optimiser and its steps on the GPU."""
RATES = (0.1, 0.01, 0.001, 0.0001)
"""The grid of the paper's own runs with Adam."""
_MAY_DIFFER = frozenset({"lr", "augment"})


def packing_of(candidate: Candidate, summary: DataSummary) -> Packing | None:
    """Returns what a trial could share a program with; None for one that is trained by itself.

    Whoever trains them looks at the networks themselves (`fit_packed.packable`): this only says what is worth trying.
    """
    family = family_of(candidate)
    if not isinstance(family, NetworkFamily) or family.solve is not None or summary.side <= 1:
        return None
    if summary.examples > PACKED_EXAMPLES:
        return None
    rates = len(RATES) if candidate.text("lr", "") == GRID else 1
    networks = rounds_of(summary.examples) * max(1, int(candidate.number("bag", 1))) * rates
    if networks >= MOST_TOGETHER:
        return None
    settings = sorted((key, str(value)) for key, value in candidate.settings if key not in _MAY_DIFFER)
    return Packing(f"{candidate.family} {settings} {rates}", networks)
