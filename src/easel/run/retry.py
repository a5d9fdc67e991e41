"""How long a job that is tried again waits. Deciding only."""

from __future__ import annotations

FIRST_S = 1.0
LONGEST_S = 300.0


def backoff_s(repeats: int, chance: float) -> float:
    """Seconds before the next attempt when `repeats` have failed or were lost: twice as long each time, up to a limit.

    `chance` in [0, 1) spreads jobs that failed together: between half of the time and all of it.
    """
    longest = min(LONGEST_S, FIRST_S * 2.0 ** min(repeats - 1, 30))
    return longest * (0.5 + 0.5 * chance)
