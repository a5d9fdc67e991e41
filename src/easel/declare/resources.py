"""How much of a machine somebody asks for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from easel.declare.counted import counted
from easel.errors import InvalidInput

MAX_VCPU = 1024
MAX_MEMORY_MB = 64 * 1024 * 1024
MAX_GPUS = 64


@dataclass(frozen=True, slots=True)
class Resources:
    """vCPU in halves, memory in megabytes (2²⁰ bytes), GPUs whole or, below one, a declared share of one."""

    vcpu: float = 1.0
    memory_mb: int = 1024
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if not (
            math.isfinite(self.vcpu) and 0.5 <= self.vcpu <= MAX_VCPU and float(self.vcpu * 2).is_integer()
        ):
            raise InvalidInput(f"vcpu must be a multiple of 0.5 from 0.5 to {MAX_VCPU}, not {self.vcpu}")
        if not 16 <= self.memory_mb <= MAX_MEMORY_MB:
            raise InvalidInput(f"memory_mb must be from 16 to {MAX_MEMORY_MB}, not {self.memory_mb}")
        whole = float(self.gpus).is_integer()
        if not (math.isfinite(self.gpus) and 0 <= self.gpus <= MAX_GPUS and (whole or self.gpus < 1)):
            raise InvalidInput(f"gpus must be whole, or a share between 0 and 1 of one GPU, not {self.gpus}")

    @property
    def threads(self) -> int:
        """How many threads a numerical library should start."""
        return max(1, math.floor(self.vcpu))


@dataclass(frozen=True, slots=True)
class Room:
    """What a device has, or has left. `gpus[i]` is the free share of GPU `i`, from 0 to 1."""

    vcpu: float
    memory_mb: int
    gpus: tuple[float, ...] = ()

    def choose_gpus(self, wanted: float) -> tuple[int, ...] | None:
        """Which GPUs to give, or None. A share goes to the fullest GPU that has it, to keep whole ones."""
        if wanted == 0:
            return ()
        if wanted < 1:
            able = [i for i, free in enumerate(self.gpus) if free >= wanted - 1e-9]
            return (min(able, key=lambda i: (self.gpus[i], i)),) if able else None
        untouched = [i for i, free in enumerate(self.gpus) if free >= 1 - 1e-9]
        return tuple(untouched[: int(wanted)]) if len(untouched) >= wanted else None

    def fits(self, asked: Resources) -> bool:
        return (
            asked.vcpu <= self.vcpu + 1e-9
            and asked.memory_mb <= self.memory_mb
            and self.choose_gpus(asked.gpus) is not None
        )

    def less(self, asked: Resources, gpus: tuple[int, ...]) -> Room:
        return self._change(asked, gpus, -1)

    def plus(self, asked: Resources, gpus: tuple[int, ...]) -> Room:
        return self._change(asked, gpus, +1)

    def _change(self, asked: Resources, gpus: tuple[int, ...], sign: int) -> Room:
        share = sign * min(1.0, asked.gpus)
        return Room(
            self.vcpu + sign * asked.vcpu,
            self.memory_mb + sign * asked.memory_mb,
            tuple(round(free + share, 9) if i in gpus else free for i, free in enumerate(self.gpus)),
        )


def memory_told(mb: float) -> str:
    """Returns memory as people say it: `512 MB`, `1.5 GB`; of 1024, as `memory_mb` counts."""
    return f"{mb:.0f} MB" if mb < 1024 else f"{mb / 1024:.{0 if mb % 1024 == 0 else 1}f} GB"


def room_told(vcpu: float, memory_mb: float, gpus: float) -> str:
    """Returns what a device has, or what is asked of one: `8 vCPU, 16 GB, 1 GPU`."""
    told = f"{vcpu:g} vCPU, {memory_told(memory_mb)}"
    if not gpus:
        return told
    return f"{told}, {counted(int(gpus), 'GPU') if gpus == int(gpus) else f'{gpus:g} of a GPU'}"


def share_with(memory_mb: float, cards_mb: Sequence[int]) -> float:
    """Returns the share of a GPU, in hundredths, that has so much memory.

    The smallest GPU that has it decides; `cards_mb` are those of the pool, 0 where a device does not say.
    """
    known = [size for size in cards_mb if size > 0]
    if not known:
        raise InvalidInput(
            "no device of the pool says how much memory its GPUs have: ask for a share, --gpus 0.25"
        )
    able = [size for size in known if size >= memory_mb]
    if memory_mb <= 0 or not able:
        raise InvalidInput(
            f"no GPU has {memory_told(memory_mb)} of memory: the largest has {memory_told(max(known))}"
        )
    share = math.ceil(100 * memory_mb / min(able)) / 100
    return min(1.0, share)
