"""The GPUs of this machine as NVIDIA's driver tells of them: cards, slices of cards (MIG), how busy they are."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

_CARD = re.compile(r"^GPU (\d+): (.+?) \(UUID: ([^)]+)\)")
_SLICE = re.compile(r"^\s+MIG (\S+)\s+Device\s+\d+: \(UUID: ([^)]+)\)")
_GB = re.compile(r"\.(\d+)gb")
_USE = "index,utilization.gpu,memory.used,memory.total"


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU that jobs may be given: a whole card, or a slice of one, which then stands for itself.

    `ident` is what CUDA calls it, `index` the card's number (/dev/nvidia0), `memory_mb` 0 where nobody says.
    """

    ident: str
    index: int
    name: str
    memory_mb: int = 0
    slice: bool = False


@dataclass(frozen=True, slots=True)
class CardUse:
    """How busy a card is, from 0 to 1, and how much of its memory is taken, by whomever."""

    busy: float
    used_mb: int
    memory_mb: int


def parse_cards(listing: str, use: Mapping[int, CardUse] | None = None) -> tuple[Card, ...]:
    """Returns the cards of `nvidia-smi -L`; a card that is cut into slices is not counted itself."""
    known = use or {}
    found: list[Card] = []
    for line in listing.splitlines():
        if whole := _CARD.match(line):
            index = int(whole[1])
            memory = known[index].memory_mb if index in known else 0
            found.append(Card(str(index), index, whole[2], memory))
        elif (part := _SLICE.match(line)) and found:
            card = found[-1] if not found[-1].slice else None
            if card is not None:
                found.pop()
            index, name = (
                (card.index, card.name) if card else (found[-1].index, found[-1].name.partition(" MIG")[0])
            )
            size = _GB.search(part[1])
            memory = int(size[1]) * 1024 if size else 0
            found.append(Card(part[2], index, f"{name} MIG {part[1]}", memory, slice=True))
    return tuple(found)


def parse_use(answer: str) -> dict[int, CardUse]:
    """Returns the use of each card by its number; what the driver does not know counts as nothing."""
    found = {}
    for line in answer.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) == 4 and words[0].isdigit():
            busy, used, total = (int(word) if word.isdigit() else 0 for word in words[1:])
            found[int(words[0])] = CardUse(busy / 100, used, total)
    return found


def ask(*words: str) -> str | None:
    """Returns what `nvidia-smi` answers; None where there is none, or its driver is away."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        answer = subprocess.run([program, *words], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None


def use_now() -> dict[int, CardUse] | None:
    """Returns the use of each card; None where the driver does not answer."""
    answer = ask(f"--query-gpu={_USE}", "--format=csv,noheader,nounits")
    return None if answer is None else parse_use(answer)


def given_by_cluster(environment: Mapping[str, str], seen: int) -> list[str]:
    """Returns CUDA's names of the cards that a cluster gave its worker; nothing where it does not say.

    Slurm without control groups may leave CUDA_VISIBLE_DEVICES unset and tell the cards only by the numbers that they
    have on the machine. Those hold where all cards are in sight; where a job sees its own `seen` cards only, these are
    numbered from 0.
    """
    placed = environment.get("EASEL_GPU_IDS")
    if placed is None:
        return []
    if names := [name for name in placed.split(",") if name]:
        return names
    told = environment.get("SLURM_STEP_GPUS") or environment.get("SLURM_JOB_GPUS") or ""
    numbers = [number for part in told.split(",") for number in _numbers(part.strip())]
    return [str(number) for number in numbers] if not seen or max(numbers, default=0) < seen else []


def _numbers(part: str) -> Sequence[int]:
    """`4` is one card, `0-3` are four."""
    first, _, last = part.partition("-")
    if not first.isdigit() or (last and not last.isdigit()):
        return ()
    return range(int(first), int(last or first) + 1)


WATCH_S = 15.0
"""How often a worker asks how busy its GPUs are; never waiting for the answer."""


class GpuWatch:
    """Asks the driver now and then, in a process of its own, and says what a device's notes should be."""

    def __init__(self, cards: Sequence[Card]) -> None:
        self._cards = cards
        self._due = 0.0
        self._asked: subprocess.Popen[str] | None = None
        self._given_up_at = 0.0
        self._said: dict[str, str] = {}

    def look(self, now: float) -> dict[str, str]:
        """What changed since it was last asked; nothing at most times. A fault that is over is said as empty."""
        if not self._cards:
            return {}
        if self._asked is None:
            if now >= self._due:
                self._due, self._given_up_at = now + WATCH_S, now + 2 * WATCH_S
                self._asked = self._begin()
                if self._asked is None:
                    return self._news(None)
            return {}
        if self._asked.poll() is None:
            if now < self._given_up_at:
                return {}
            self._asked.kill()  # a driver that hangs
        asked, self._asked = self._asked, None
        answer = asked.communicate()[0]
        return self._news(parse_use(answer) if asked.returncode == 0 else None)

    def _begin(self) -> subprocess.Popen[str] | None:
        program = shutil.which("nvidia-smi")
        if program is None:
            return None
        words = [program, f"--query-gpu={_USE}", "--format=csv,noheader,nounits"]
        try:
            return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # noqa: S603
        except OSError:
            return None

    def _news(self, use: Mapping[int, CardUse] | None) -> dict[str, str]:
        said = {"gpu fault": "", **notes_of(self._cards, use)}
        news = {name: text for name, text in said.items() if self._said.get(name, "") != text}
        self._said |= said
        return news


@cache
def cards_here() -> tuple[Card, ...]:
    """Returns the GPUs of this machine, as they were when they were first asked for."""
    listing = ask("-L")
    return () if listing is None else parse_cards(listing, use_now())


def notes_of(cards: Sequence[Card], use: Mapping[int, CardUse] | None) -> dict[str, str]:
    """What a device says of its GPUs: their name and memory, how busy each is, and whether the driver is away."""
    if not cards:
        return {}
    found = {"gpu": cards[0].name, "gpu_mb": str(min(card.memory_mb for card in cards))}
    if use is None:
        return {**found, "gpu fault": "the driver does not answer: nvidia-smi failed"}
    lost = [card.index for card in cards if card.index not in use]
    if lost:
        return {**found, "gpu fault": f"GPU {lost[0]} is gone: the driver no longer lists it"}
    for number, index in enumerate(dict.fromkeys(card.index for card in cards)):
        one = use[index]
        found[f"gpu {number}"] = f"{one.busy:.0%} busy, {one.used_mb} of {one.memory_mb} MB"
    return found
