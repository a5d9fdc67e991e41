"""How often somebody may be wrong: about tokens, which nobody guesses, and about passwords and codes, which can be."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager

from easel.clock import Clock
from easel.errors import EaselError, QuotaExhausted

_MINUTE = 60.0
_MOST_KNOWN = 50_000
"""So many addresses and accounts are remembered, the latest: a scan must not fill the memory."""
_TOGETHER = 5
"""How many times as often all accounts behind one address may be wrong, and all addresses about one account: a lab
behind one address does not shut itself out, and passwords are guessed no faster from many addresses."""


class FailedLogins:
    """Wrong secrets of the last minute, by address and by account."""

    def __init__(self, clock: Clock, per_minute: int) -> None:
        self._clock, self._per_minute = clock, per_minute
        self._times: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, address: str) -> None:
        """Notes a wrong token, and refuses where it is one too many.

        A right one always passes: it cannot be guessed, and one bad script does not shut out a lab.
        """
        with self._lock:
            self._count({("token", address): self._per_minute}, "wrong tokens from this address")

    @contextmanager
    def guessing(
        self, address: str, account: str, what: str, *, wrong: type[EaselError] | tuple[type[EaselError], ...]
    ) -> Iterator[None]:
        """Around the check of something that can be guessed; errors of the kind `wrong` say that it was.

        After too many even the right one is refused, without a look: else each answer would say whether it was right.
        It counts from the beginning, so that many at once are no way around it.
        """
        who = " ".join(account.casefold().split())[:200]
        limits = {
            ("pair", f"{address} {who}"): self._per_minute,
            ("address", address): self._per_minute * _TOGETHER,
            ("account", who): self._per_minute * _TOGETHER,
        }
        with self._lock:
            at = self._count(limits, f"wrong {what}")
        try:
            yield
        except wrong:
            raise
        except BaseException:
            self._take_back(limits, at)
            raise
        self._take_back(limits, at)

    def _count(self, limits: dict[tuple[str, str], int], what: str) -> float:
        now = self._clock.monotonic()
        known = [self._times_of(key, most) for key, most in limits.items()]
        full = [times for times in known if len(times) == times.maxlen and now - times[0] < _MINUTE]
        if full:
            wait = max(1, round(max(_MINUTE - (now - times[0]) for times in full)))
            raise QuotaExhausted(f"too many {what}: wait {wait} s", retry_after=wait)
        for times in known:
            times.append(now)
        return now

    def _times_of(self, key: tuple[str, str], most: int) -> deque[float]:
        times = self._times.setdefault(key, deque(maxlen=most))
        self._times.move_to_end(key)
        while len(self._times) > _MOST_KNOWN:
            self._times.popitem(last=False)
        return times

    def _take_back(self, limits: dict[tuple[str, str], int], at: float) -> None:
        with self._lock:
            for key in limits:
                times = self._times.get(key)
                if times is not None and at in times:
                    times.remove(at)
