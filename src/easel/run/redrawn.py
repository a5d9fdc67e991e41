"""Lines that draw themselves anew, as tqdm's bars do: carriage returns, and no line end until all is done."""

from __future__ import annotations

import re

_PERCENT = re.compile(rb"(\d{1,3})(?:\.\d+)? ?%")
TENTHS = 10


class Redrawn:
    """One stream. Of the states of a redrawn line it keeps the last, and one for every tenth that the bar passes."""

    def __init__(self) -> None:
        self._tenth = -1

    def settle(self, data: bytes) -> bytes:
        """Returns whole lines with one state each; what may yet be drawn over stays at the end, with its `\\r`."""
        *lines, rest = data.split(b"\n")
        kept: list[bytes] = []
        for line in lines:
            *before, last = _states(line)
            kept += [*self._passed(before), last]
            self._tenth = -1
        *before, last = _states(rest)
        kept += self._passed(before)
        _, returned, newest = rest.rpartition(b"\r")
        open_end = last if newest.strip() else last + returned + newest  # blanks may begin the next state
        return b"".join(line + b"\n" for line in kept) + open_end

    def _passed(self, states: list[bytes]) -> list[bytes]:
        """The states with which the bar passes a tenth of its way; a bar that begins anew is another bar."""
        found: list[bytes] = []
        for state in states:
            shown = _PERCENT.search(state)
            if shown is None:
                continue
            tenth = int(shown[1]) // TENTHS
            if tenth > self._tenth:
                found.append(state)
            self._tenth = tenth
        return found


def _states(line: bytes) -> list[bytes]:
    """What was drawn, in order; at least one, which may be empty."""
    return [state for state in line.split(b"\r") if state.strip()] or [b""]
