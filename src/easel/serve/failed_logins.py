"""How often somebody may be wrong: about tokens, which nobody guesses, and about passwords and codes, which can be."""

from __future__ import annotations

import secrets
import threading
import zlib
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv6Network, ip_address
from typing import TypeAlias

from easel.clock import Clock
from easel.errors import EaselError, QuotaExhausted

_Key: TypeAlias = tuple[str, str]
_MINUTE = 60.0
_MOST_KNOWN = 50_000
"""So many addresses and accounts are remembered each by itself: a scan must not fill the memory."""
_SHARED = 4_096
"""Beyond that they are counted together, by chance, in so many places of each kind: nothing of the last minute is
forgotten, else a scan would wipe out what is known of an account that is guessed at."""
_TOGETHER = 5
"""How many times as often all accounts behind one address may be wrong, and all addresses about one account: a lab
behind one address does not shut itself out, and passwords are guessed no faster from many addresses."""


class FailedLogins:
    """Wrong secrets of the last minute, by address and by account."""

    def __init__(self, clock: Clock, per_minute: int) -> None:
        self._clock, self._per_minute = clock, per_minute
        self._times: OrderedDict[_Key, deque[float]] = OrderedDict()
        self._lock = threading.Lock()
        self._salt = secrets.token_bytes(8)

    def note(self, address: str) -> None:
        """Notes a wrong token, and refuses where it is one too many.

        A right one always passes: it cannot be guessed, and one bad script does not shut out a lab.
        """
        with self._lock:
            self._count({("token", _network(address)): self._per_minute}, "wrong tokens from this address")

    @contextmanager
    def guessing(
        self, address: str, account: str, what: str, *, wrong: type[EaselError] | tuple[type[EaselError], ...]
    ) -> Iterator[None]:
        """Around the check of something that can be guessed; errors of the kind `wrong` say that it was.

        After too many even the right one is refused, without a look: else each answer would say whether it was right.
        It counts from the beginning, so that many at once are no way around it.
        """
        who, address = " ".join(account.casefold().split())[:200], _network(address)
        limits = {
            ("pair", f"{address} {who}"): self._per_minute,
            ("address", address): self._per_minute * _TOGETHER,
            ("account", who): self._per_minute * _TOGETHER,
        }
        with self._lock:
            counted, at = self._count(limits, f"wrong {what}")
        try:
            yield
        except wrong:
            raise
        except BaseException:
            self._take_back(counted, at)
            raise
        self._take_back(counted, at)

    def _count(self, limits: Mapping[_Key, int], what: str) -> tuple[list[_Key], float]:
        """Counts one more under each; returns where it did, and when. What is refused leaves no trace."""
        now = self._clock.monotonic()
        self._forget(now)
        keys = [self._place(key) for key in limits]
        known = [self._times.get(key) for key in keys]
        full = [times for times in known if times and len(times) == times.maxlen and now - times[0] < _MINUTE]
        if full:
            wait = max(1, round(max(_MINUTE - (now - times[0]) for times in full)))
            raise QuotaExhausted(f"too many {what}: wait {wait} s", retry_after=wait)
        for key, most in zip(keys, limits.values(), strict=True):
            self._times.setdefault(key, deque(maxlen=most)).append(now)
            self._times.move_to_end(key)
        return keys, now

    def _place(self, key: _Key) -> _Key:
        """Where a key is counted: by itself as long as there is room, then together with others of its kind."""
        if key in self._times or len(self._times) < _MOST_KNOWN:
            return key
        kind, who = key
        return f"{kind}, shared", str(zlib.crc32(self._salt + who.encode(errors="replace")) % _SHARED)

    def _forget(self, now: float) -> None:
        """Forgets what is older than a minute; the oldest come first."""
        while self._times:
            times = next(iter(self._times.values()))
            if times and now - times[-1] < _MINUTE:
                return
            self._times.popitem(last=False)

    def _take_back(self, keys: Iterable[_Key], at: float) -> None:
        with self._lock:
            for key in keys:
                times = self._times.get(key)
                if times is not None and at in times:
                    times.remove(at)


def _network(address: str) -> str:
    """An address, or of IPv6 the network that one customer has: there are too many addresses in it to count each."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    return str(found.ipv4_mapped or IPv6Network((int(found), 64), strict=False))
