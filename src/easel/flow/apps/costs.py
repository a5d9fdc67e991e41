"""What candidates will cost here: their estimates, moved by what trials of them and of their kin took on this pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from easel.match.candidate import Candidate
from easel.price.expect import Kind, Took, expected_seconds

START_S = 0.3
"""What starting a trial, fetching its examples and storing its model takes at least."""
REMEMBERED = 300
"""The newest trials say enough about a machine; their covariances are solved for at every decision."""


def calibrated(
    pools: Mapping[str, Sequence[Candidate]], ran: Sequence[tuple[Candidate, float]]
) -> dict[str, tuple[Candidate, ...]]:
    """The candidates of every app with the time that the runtime model expects, given what `ran` for how long.

    The model's correction is a factor on the estimate that depends on a candidate's name and family only: it is
    asked once for every name, however many apps have such a candidate.
    """
    taken = [
        Took(_kind(candidate, max(candidate.cost_s, START_S)), max(seconds, START_S))
        for candidate, seconds in ran[-REMEMBERED:]
        if seconds > 0
    ]
    kinds = {candidate.name: _kind(candidate, 1.0) for pool in pools.values() for candidate in pool}
    factors = dict(zip(kinds, expected_seconds(list(kinds.values()), taken).seconds.tolist(), strict=True))
    return {
        app: tuple(replace(one, cost_s=max(one.cost_s, START_S) * factors[one.name]) for one in pool)
        for app, pool in pools.items()
    }


def _kind(candidate: Candidate, guess_s: float) -> Kind:
    return Kind(candidate.name, candidate.family, guess_s)
