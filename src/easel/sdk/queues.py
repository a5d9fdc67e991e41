"""Queues, devices and secrets."""

from __future__ import annotations

import builtins
from datetime import datetime
from typing import TYPE_CHECKING

from easel.declare.resources import share_with
from easel.errors import InvalidInput
from easel.sdk.connection import ask
from easel.wire import pool as wire
from easel.wire.price import PromisesKept

if TYPE_CHECKING:
    from easel.sdk.client import Client


class Queues:
    """Who waits and who runs in the client's project. Changing is for its admins."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _path(self) -> str:
        return f"{self._client.root}/queues"

    def list(self) -> builtins.list[wire.Queue]:
        return self._client.connection.get(self._path, wire.QueueList).items

    def change(
        self, user: str | None = None, *, max_active: int | None = None, paused: bool | None = None
    ) -> builtins.list[wire.Queue]:
        """What is None stays as it is; without a user it holds for the project."""
        body = ask(wire.ChangeQueue, user=user, max_active=max_active, paused=paused)
        return self._client.connection.patch(self._path, body, wire.QueueList).items

    def reorder(self, user: str, first: builtins.list[str]) -> builtins.list[str]:
        """Put these queued jobs of a user first, in this order."""
        body = ask(wire.ReorderQueue, user=user, first=first)
        return self._client.connection.post(f"{self._path}/order", body, wire.JobIds).items

    def shares(self) -> builtins.list[wire.Share]:
        """What the project and its users have used of the pool, with their weights and priorities."""
        return self._client.connection.get(f"{self._client.root}/shares", wire.ShareList).items

    def set_share(
        self, user: str | None = None, *, weight: float = 1.0, priority: int = 0
    ) -> builtins.list[wire.Share]:
        """Weigh a user of the project; without one, the project among all (platform admins)."""
        body = ask(wire.SetShare, user=user, weight=weight, priority=priority)
        return self._client.connection.patch(f"{self._client.root}/shares", body, wire.ShareList).items

    def kept_for_apps(self) -> float:
        """The least share of the pool's cores that trials of apps get, from 0 to 1."""
        return self._client.connection.get("/api/v1/shares", wire.PoolShares).apps

    def keep_for_apps(self, share: float) -> float:
        """Keep a least share of the pool's cores for trials of apps. For admins."""
        body = ask(wire.KeepShares, apps=share)
        return self._client.connection.put("/api/v1/shares", body, wire.PoolShares).apps

    def promises(self) -> PromisesKept:
        """How often what waiting jobs were told about their start and end came true."""
        return self._client.connection.get(f"{self._client.root}/promises", PromisesKept)

    def devices(self) -> builtins.list[wire.Device]:
        return self._client.connection.get("/api/v1/devices", wire.DeviceList).items

    def use_over_time(self, hours: float = 24.0, *, everywhere: bool = False) -> wire.PoolHistory:
        """Returns what the project and all others held of the pool; `everywhere`: each project (platform admins)."""
        path = "/api/v1/pool/history" if everywhere else f"{self._client.root}/pool/history"
        return self._client.connection.get(path, wire.PoolHistory, {"hours": hours})

    def gpu_share(self, memory_gb: float) -> float:
        """Returns the share of a GPU of this pool that has so many GB of memory, for `resources={"gpus": share}`."""
        cards = [one.gpu_memory_mb or 0 for one in self.devices() if one.gpus and one.connected]
        if not cards:
            raise InvalidInput("no device of the pool has a GPU")
        return share_with(memory_gb * 1024, cards)

    def drain(self, device: str, by: datetime | None = None, reason: str = "") -> wire.Device:
        """Give a device no more work; what still runs `by` then is stopped and tried again elsewhere. For admins."""
        body = ask(wire.DrainDevice, by=by, reason=reason)
        return self._client.connection.put(f"/api/v1/devices/{device}/drain", body, wire.Device)

    def undrain(self, device: str) -> None:
        """Give a device work again."""
        self._client.connection.delete(f"/api/v1/devices/{device}/drain")

    def remove_device(self, device: str) -> None:
        """Remove a device that is gone for good, and its reservations. For admins."""
        self._client.connection.delete(f"/api/v1/devices/{device}")

    def reservations(self) -> builtins.list[wire.Reservation]:
        """Which devices are or will be kept for a project."""
        return self._client.connection.get("/api/v1/reservations", wire.ReservationList).items

    def reserve(self, device: str, project: str, start: datetime, end: datetime) -> wire.Reservation:
        """Keep a device for a project: others begin nothing there meanwhile. For admins."""
        body = ask(wire.ReserveDevice, project=project, start=start, end=end)
        path = f"/api/v1/devices/{device}/reservations"
        return self._client.connection.post(path, body, wire.Reservation)

    def cancel_reservation(self, reservation: str) -> None:
        """Give a reserved device back to everybody. For admins."""
        self._client.connection.delete(f"/api/v1/reservations/{reservation}")


class Secrets:
    """Secrets of the client's project: set by its admins, named by jobs, never shown."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _path(self) -> str:
        return f"{self._client.root}/secrets"

    def names(self) -> list[str]:
        return self._client.connection.get(self._path, wire.SecretNames).items

    def put(self, name: str, value: str) -> None:
        self._client.connection.put(
            f"{self._path}/{name}", ask(wire.PutSecret, value=value), wire.SecretNames
        )

    def remove(self, name: str) -> None:
        self._client.connection.delete(f"{self._path}/{name}")
