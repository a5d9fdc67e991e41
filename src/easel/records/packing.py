"""What trials need to have in common so that one process may train them as one program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Packing(NamedTuple):
    """Trials of a tenant with equal `shape` are trained as one program; each trains so many `networks`.

    `begin` is what is done once for all of them: seconds to start the process and to bring the examples to the device.
    """

    shape: str
    networks: int
    begin: float = 0.0


@dataclass(frozen=True)
class PackPlace:
    """A trial's place in a pack of `size` trials, which takes `stretch` times what the trial would take by itself."""

    name: str
    size: int
    stretch: float

    def alone(self, seconds: float, together: int) -> float:
        """Returns what the trial would have taken by itself, if it took `seconds` with so many of its pack."""
        if together <= 1 or self.size <= 1:
            return seconds
        return seconds / (1.0 + (self.stretch - 1.0) * (min(together, self.size) - 1) / (self.size - 1))
