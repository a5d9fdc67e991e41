"""Studies: the best configuration of a job under a budget."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from easel.clock import Clock, SystemClock
from easel.errors import TryLater
from easel.sdk.connection import ask
from easel.wire import study as wire
from easel.wire.terms import SetTerms, Terms

if TYPE_CHECKING:
    from easel.sdk.client import Client

OVER = frozenset({"stopped", "finished"})


class Studies:
    """The studies of the client's project."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _path(self) -> str:
        return f"{self._client.root}/studies"

    def create(self, /, name: str, *, key: str | None = None, **fields: Any) -> wire.Study:
        """`job`, `space` and `goal`, and the other fields of a study file, as plain values.

        The job's `code` may be a folder here or `git+URL@REV`: it is sent along.
        """
        return self._create(ask(wire.CreateStudy, name=name, **fields), key)

    def _create(self, asked: wire.CreateStudy, key: str | None) -> wire.Study:
        body = asked.model_copy(update={"job": self._client.jobs.with_code(asked.job)})
        return self._client.connection.post(self._path, body, wire.Study, key)

    def create_from(self, text: str, *, start: bool = True, key: str | None = None) -> wire.Study:
        """Creates a study from the text of a study file (YAML); a folder that is its job's `code` is sent along."""
        asked = wire.study_fields(text)
        return self._create(asked.model_copy(update={"start": asked.start and start}), key)

    def get(self, name: str) -> wire.Study:
        return self._client.connection.get(f"{self._path}/{name}", wire.Study)

    def list(self, limit: int = 20) -> Iterator[wire.Study]:
        return islice(self._client.connection.pages(self._path, wire.Study, {"limit": limit}), limit)

    def start(self, name: str, *, budget: Mapping[str, float] | None = None) -> wire.Study:
        """Start, or go on with one that was stopped or, with another `budget`, has ended."""
        body = ask(wire.StartStudy, budget=None if budget is None else dict(budget))
        return self._client.connection.post(f"{self._path}/{name}/start", body, wire.Study)

    def stop(self, name: str) -> wire.Study:
        return self._client.connection.post(f"{self._path}/{name}/stop", {}, wire.Study)

    def verify(self, name: str) -> wire.StudyPoint:
        """Run the recommended point as one more point of the study."""
        return self._client.connection.post(
            f"{self._path}/{name}/verify", wire.VerifyStudy(), wire.StudyPoint
        )

    def set(self, /, name: str, **terms: Any) -> Terms:
        """Change `weight`, `deadline`, `budget`, `until` or `paused`; None takes one away, what is left out stays."""
        body = ask(SetTerms, **terms).model_dump(mode="json", exclude_unset=True)
        return self._client.connection.patch(f"{self._path}/{name}/terms", body, Terms)

    def delete(self, name: str) -> None:
        self._client.connection.delete(f"{self._path}/{name}")

    def points(self, name: str, after: int = -1) -> builtins.list[wire.StudyPoint]:
        path = f"{self._path}/{name}/points"
        return self._client.connection.get(path, wire.StudyPoints, {"after": after}).items

    def front(self, name: str) -> builtins.list[wire.StudyPoint]:
        return self._client.connection.get(f"{self._path}/{name}/front", wire.StudyPoints).items

    def slice(self, name: str, dimension: str) -> wire.DimensionProfile:
        """What the models predict along one dimension."""
        path = f"{self._path}/{name}/slice"
        return self._client.connection.get(path, wire.DimensionProfile, {"dimension": dimension})

    def region(self, name: str, x: str, y: str) -> wire.Region:
        """How likely the constraints hold over two dimensions."""
        return self._client.connection.get(f"{self._path}/{name}/region", wire.Region, {"x": x, "y": y})

    def importances(self, name: str, quantity: str | None = None) -> builtins.list[wire.DimensionShare]:
        """Returns how much each dimension matters for a quantity (the objective), the largest first."""
        path, query = f"{self._path}/{name}/importances", {} if quantity is None else {"quantity": quantity}
        return self._client.connection.get(path, wire.Importances, query).items

    def export_csv(self, name: str) -> str:
        return self._client.connection.request("GET", f"{self._path}/{name}/csv").text

    def import_csv(self, name: str, text: str) -> int:
        """Takes in points from CSV; returns how many were new."""
        body = ask(wire.CsvText, csv=text)
        return self._client.connection.post(f"{self._path}/{name}/csv", body, wire.Imported).new

    def wait(
        self,
        name: str,
        timeout: float | None = None,
        *,
        told: Callable[[wire.StudyPoint], None] = lambda point: None,
        clock: Clock | None = None,
    ) -> wire.Study:
        """Waits until it ends or is stopped; `told` hears of each measured point, in the order of results."""
        clock = clock or SystemClock()
        started, pause, heard = clock.monotonic(), 0.1, 0
        while True:
            found = self.get(name)
            over = found.state in OVER and not found.points.get("running")
            ended = sorted((p for p in self.points(name) if p.told is not None), key=lambda p: p.told or 0)
            # A point is complete once the recommendation after it was noted.
            ready = [p for p in ended if p.spent is not None or over]
            for point in ready[heard:]:
                told(point)
            heard = max(heard, len(ready))
            if over:
                return found
            if timeout is not None and clock.monotonic() - started > timeout:
                raise TryLater(f"study {name} is still {found.state} after {timeout:g} s")
            clock.sleep(pause)
            pause = min(2.0, pause * 1.3)
