"""What every part of a move shares: the two sides, what was done, what failed, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from easel.errors import EaselError, TryLater
from easel.sdk.mlflow.records import MovedFile, MovedLoggedModel, MovedRun, TrackingSource
from easel.sdk.mlflow.server import TrackingServer

ORIGIN = "easel.moved_from"
WHOLE = "easel.moved_whole"
_VERSIONS = "mlflow.modelVersions"
"""The tag in which a server writes where a logged model is registered; the target writes its own."""
_OWN = frozenset({ORIGIN, WHOLE, _VERSIONS})
"""Tags that say something of the source, and nothing of what is made of it; the source may have been moved itself."""
_LOST_IN_A_ROW = 3
"""So many things that failed since a side was away, one after the other: the move ends, to be continued later."""
T = TypeVar("T")


@dataclass(slots=True)
class MoveSummary:
    """What was done; `there` counts runs that had come before."""

    experiments: int = 0
    runs: int = 0
    there: int = 0
    points: int = 0
    files: int = 0
    bytes: int = 0
    logged_models: int = 0
    models: int = 0
    versions: int = 0
    failed: list[str] = field(default_factory=list)
    """What could not be moved, and why."""
    open: list[str] = field(default_factory=list)
    """Runs that were not over at the source: what they log after this comes the next time."""


class MoveEnded(TryLater):
    """One of both sides is away: nothing else can be moved now."""


class MoveStep(NamedTuple):
    """How far a move is, in runs and models; `bytes` are those of files that came."""

    done: int
    total: int
    bytes: int
    word: str


@dataclass(slots=True)
class MoveUnderWay:
    source: TrackingSource
    target: TrackingServer
    told: Callable[[MoveStep], None] = lambda _: None
    summary: MoveSummary = field(default_factory=MoveSummary)
    runs: dict[str, MovedRun] = field(default_factory=dict)
    """What became of the source's runs, by their ids there."""
    logged: dict[str, MovedLoggedModel] = field(default_factory=dict)
    partial: set[str] = field(default_factory=set)
    """Runs and logged models of the source of which something failed to come."""
    total: int = 0
    _done: int = 0
    _word: str = ""
    _lost: int = 0

    def begin(self, word: str) -> None:
        """Say what is moved now."""
        self._word = word
        self._tell()

    def end(self) -> None:
        """Count one run or model as done with, whatever came of it."""
        self._done += 1
        self._tell()

    def _tell(self) -> None:
        self.told(MoveStep(self._done, self.total, self.summary.bytes, self._word))

    @contextmanager
    def attempt(self, what: str, of: str = "") -> Iterator[None]:
        """Goes on after a failure, which is noted; `of` is the run or logged model that is not whole then."""
        try:
            yield
        except MoveEnded:
            raise
        except (EaselError, OSError) as error:
            self.summary.failed.append(f"{what}: {error}")
            if of:
                self.partial.add(of)
            self._lost = self._lost + 1 if isinstance(error, TryLater) else 0
            if self._lost == _LOST_IN_A_ROW:
                raise MoveEnded(
                    f"{error}. Repeat the command later: it continues where it stopped"
                ) from error
        else:
            self._lost = 0

    def copy_files(
        self,
        files: Iterable[MovedFile],
        there: Mapping[str, int],
        to: str,
        read: Callable[[str], Iterator[bytes]],
        *,
        whose: str,
        of: str = "",
    ) -> int:
        """Bring files to `to`, an address of the target's artifact store; returns how many of them are there then.

        `there` are the sizes of what the target has already.
        """
        whole = 0
        with self.attempt(f"files of {whose}", of):
            for file in files:
                if there.get(file.path) == file.size:
                    whole += 1
                    continue
                with self.attempt(f"file {file.path} of {whose}", of):
                    before = self.summary.bytes
                    try:
                        self.target.put_file(to, file.path, self._counted(read, file.path, before))
                    except BaseException:
                        self.summary.bytes = before
                        raise
                    self.summary.files += 1
                    whole += 1
        return whole

    def _counted(
        self, read: Callable[[str], Iterator[bytes]], path: str, before: int
    ) -> Callable[[], Iterator[bytes]]:
        def counted() -> Iterator[bytes]:
            self.summary.bytes = before
            for chunk in read(path):
                self.summary.bytes += len(chunk)
                self._tell()
                yield chunk

        return counted


def sizes(files: Iterable[MovedFile]) -> dict[str, int]:
    return {file.path: file.size for file in files}


def told_tags(tags: Mapping[str, str]) -> list[tuple[str, str]]:
    """The tags that are moved along."""
    return [(key, value) for key, value in tags.items() if key not in _OWN]


def pairs(items: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in items]


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of at most `size`; where `items` fails, what had come by then is still given."""
    batch: list[T] = []
    try:
        for item in items:
            batch.append(item)
            if len(batch) == size:
                yield batch
                batch = []
    except (EaselError, OSError):
        if batch:
            yield batch
        raise
    if batch:
        yield batch
