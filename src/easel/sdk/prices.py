"""Profiles and bills: `client.profiles.start("mnist", "python train.py --epoch {1,2,5}", code="mnist-code")`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from easel.clock import Clock, SystemClock
from easel.errors import Conflict, TryLater
from easel.sdk.connection import ask, sent
from easel.wire import price as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client

Values = Mapping[str, float] | Sequence[float]


def _values(values: Values) -> dict[str, float] | list[float]:
    return dict(values) if isinstance(values, Mapping) else list(values)


class Profiles:
    """The profiles of the client's project."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _path(self) -> str:
        return f"{self._client.root}/profiles"

    def plan(self, /, name: str, template: str, **fields: Any) -> wire.ProfilePlan:
        """What `start` with the same arguments would run, and what it can cost."""
        body = ask(wire.StartProfile, name=name, template=template, **fields)
        return self._client.connection.post(f"{self._path}/plan", body, wire.ProfilePlan)

    def start(self, /, name: str, template: str, *, key: str | None = None, **fields: Any) -> wire.Profile:
        """Submit the runs. Fields are those of the API: code, inputs, environment, cpus, memories_mb, gpus, design,
        size, time_limit_s, budget, tags.
        """
        body = ask(wire.StartProfile, name=name, template=template, **fields)
        return self._client.connection.post(self._path, body, wire.Profile, key)

    def get(self, name: str, version: int | None = None) -> wire.Profile:
        return self._client.connection.get(f"{self._path}/{name}", wire.Profile, {"version": version})

    def list(self, limit: int = 50) -> Iterator[wire.Profile]:
        """Every version, newest first."""
        params = {"limit": min(limit, 200)}
        return islice(self._client.connection.pages(self._path, wire.Profile, params), limit)

    def wait(self, name: str, timeout: float | None = None, *, clock: Clock | None = None) -> wire.Profile:
        """Waits until its model is fitted; Conflict when there is none to be had."""
        clock = clock or SystemClock()
        started, pause = clock.monotonic(), 0.1
        while (found := self.get(name)).state == "running":
            if timeout is not None and clock.monotonic() - started > timeout:
                raise TryLater(f"profile {name} still runs after {timeout:g} s ({found.done} runs done)")
            clock.sleep(pause)
            pause = min(2.0, pause * 1.3)
        if found.state != "fitted":
            raise Conflict(f"profile {name} has no model: {found.reason}")
        return found

    def estimate(
        self,
        name: str,
        values: Values,
        shapes: Sequence[tuple[float, ...]],
        confidence: float | None = None,
    ) -> Sequence[wire.Offer]:
        """What (vCPU, MB) or (vCPU, MB, GPUs) sizes would take and cost."""
        names = ("vcpu", "memory_mb", "gpus")
        sizes = [dict(zip(names, shape, strict=False)) for shape in shapes]
        body = ask(wire.EstimateRequest, values=_values(values), shapes=sizes, confidence=confidence)
        return self._client.connection.post(f"{self._path}/{name}/estimate", body, wire.OfferList).items

    def provision(
        self,
        /,
        name: str,
        values: Values,
        *,
        max_seconds: float | None = None,
        max_cost: float | None = None,
        deadline: datetime | None = None,
        aim: Literal["cheapest", "fastest"] | None = None,
        key: str | None = None,
        **more: Any,
    ) -> wire.Provisioned:
        """The best size, with its job. Without an aim: the fastest within a cost, else the cheapest in time."""
        body = self._wish(values, max_seconds, max_cost, deadline, aim, more)
        return self._client.connection.post(f"{self._path}/{name}/provision", body, wire.Provisioned, key)

    def picture(
        self,
        /,
        name: str,
        values: Values,
        *,
        max_seconds: float | None = None,
        max_cost: float | None = None,
        deadline: datetime | None = None,
        aim: Literal["cheapest", "fastest"] | None = None,
        **more: Any,
    ) -> bytes:
        """PNG: the predicted runtime over the grid, the excluded sizes in red."""
        body = self._wish(values, max_seconds, max_cost, deadline, aim, more)
        path = f"{self._path}/{name}/picture"
        return self._client.connection.request("POST", path, json=sent(body)).content

    @staticmethod
    def _wish(
        values: Values,
        max_seconds: float | None,
        max_cost: float | None,
        deadline: datetime | None,
        aim: Literal["cheapest", "fastest"] | None,
        more: Mapping[str, Any],
    ) -> wire.Provision:
        timed = max_seconds is not None or deadline is not None
        usual = "fastest" if max_cost is not None and not timed else "cheapest"
        return ask(
            wire.Provision,
            values=_values(values),
            aim=aim or usual,
            max_seconds=max_seconds,
            max_cost=max_cost,
            deadline=deadline,
            **more,
        )


class Bills:
    """What the project's jobs cost, and its budget."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def of(self, job_id: str) -> wire.Bill:
        return self._client.connection.get(f"{self._client.root}/jobs/{job_id}/bill", wire.Bill)

    def report(
        self, by: Literal["user", "month", "day", "app", "job"] = "user", month: str | None = None
    ) -> wire.BillReport:
        params = {"by": by, "month": month}
        return self._client.connection.get(f"{self._client.root}/bills", wire.BillReport, params)

    def everywhere(
        self, by: Literal["project", "user", "month", "day", "app"] = "project", month: str | None = None
    ) -> wire.BillReport:
        """Returns the report over all projects, for platform admins."""
        return self._client.connection.get("/api/v1/bills", wire.BillReport, {"by": by, "month": month})

    def chargeback(self, month: str, *, idle_gpus: bool = False) -> wire.Chargeback:
        """What to charge whom for a month; or what GPUs came to while they were held idle (platform admins)."""
        params = {"month": month, "idle_gpus": idle_gpus}
        return self._client.connection.get("/api/v1/bills/chargeback", wire.Chargeback, params)

    def chargeback_file(self, month: str, form: Literal["csv", "pdf"], *, idle_gpus: bool = False) -> bytes:
        """The same as a file."""
        params = {"month": month, "idle_gpus": idle_gpus}
        return self._client.connection.request(
            "GET", f"/api/v1/bills/chargeback/{form}", params=params
        ).content

    def idle_gpus(self) -> list[wire.IdleJob]:
        """Jobs that hold GPUs now and have hardly used them, who wasted most first (platform admins)."""
        return self._client.connection.get("/api/v1/bills/idle-gpus", wire.IdleJobs).items

    def budget(self, since: datetime | None = None) -> wire.Budget:
        """Returns the budget; with `since`, a moment with its zone, also what was run up after it."""
        params = {"since": None if since is None else since.isoformat()}
        return self._client.connection.get(f"{self._client.root}/budget", wire.Budget, params)

    def set_budget(self, /, limit: float, **fields: Any) -> wire.Budget:
        """Sets the limit, and what is given of period (month or total), warn_at and hard_stop; the rest stays."""
        now = self.budget()
        kept = {} if now.limit is None else now.model_dump(include={"period", "warn_at", "hard_stop"})
        body = ask(wire.SetBudget, limit=limit, **(kept | fields))
        return self._client.connection.put(f"{self._client.root}/budget", body, wire.Budget)

    def remove_budget(self) -> None:
        self._client.connection.delete(f"{self._client.root}/budget")

    def prices(self) -> wire.PriceList:
        return self._client.connection.get("/api/v1/prices", wire.PriceList)

    def set_prices(
        self, name: str | None = None, toml: str | None = None, since: datetime | None = None
    ) -> wire.PriceList:
        """Sets prices, for platform admins: a shipped book by name, or one as TOML."""
        body = ask(wire.SetPrices, name=name, toml=toml, since=since)
        return self._client.connection.put("/api/v1/prices", body, wire.PriceList)
