"""What admins ask of a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from easel.sdk.connection import ask
from easel.wire import operate as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client

What = Literal["logs", "events", "outputs"]


class Operations:
    """For platform admins."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def health(self) -> wire.Health:
        """What is well and what is wrong."""
        return self._client.connection.get("/api/v1/health", wire.Health)

    def cordon(self, reason: str = "") -> wire.Cordoned:
        """Let `/readyz` of the server that answers say no."""
        return self._client.connection.put("/api/v1/cordon", ask(wire.Cordon, reason=reason), wire.Cordoned)

    def uncordon(self) -> None:
        """Take requests again."""
        self._client.connection.delete("/api/v1/cordon")

    def backups(self) -> wire.Backups:
        """The plan by which backups are made, and the last of them."""
        return self._client.connection.get("/api/v1/backups", wire.Backups)

    def back_up(self) -> None:
        """Have a backup made now, by the plan."""
        self._client.connection.request("POST", "/api/v1/backups")

    def storage(self) -> wire.StorageReport:
        """Who holds what, over all projects."""
        return self._client.connection.get("/api/v1/storage", wire.StorageReport)


class Storage:
    """What a project keeps, and what it gives up when it is old."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def report(self) -> wire.StorageReport:
        """Who holds what in this project."""
        return self._client.connection.get(f"{self._client.root}/storage", wire.StorageReport)

    def give_up(
        self, what: What, older_than_days: float, tag: str = "", *, really: bool = False
    ) -> wire.GivenUp:
        """Tell what is old, and with `really` give it up."""
        body = ask(wire.GiveUp, what=what, older_than_days=older_than_days, tag=tag, really=really)
        return self._client.connection.post(f"{self._client.root}/retention", body, wire.GivenUp)

    def rules(self) -> list[wire.RetentionRule]:
        """What is given up every day."""
        path = f"{self._client.root}/retention/rules"
        return self._client.connection.get(path, wire.RetentionRules).items

    def add_rule(self, what: What, older_than_days: float, tag: str = "") -> wire.RetentionRule:
        """Give this up every day from now on."""
        body = ask(wire.Retention, what=what, older_than_days=older_than_days, tag=tag)
        return self._client.connection.post(f"{self._client.root}/retention/rules", body, wire.RetentionRule)

    def remove_rule(self, rule: str) -> None:
        """Give it up no longer."""
        self._client.connection.delete(f"{self._client.root}/retention/rules/{rule}")

    def quotas(self) -> list[wire.Quota]:
        """What the project and people in it may hold and use, and what is used."""
        return self._client.connection.get(f"{self._client.root}/quotas", wire.Quotas).items

    def set_quota(
        self,
        user: str | None = None,
        *,
        bytes: int | None = None,  # noqa: A002 - the field's name
        gpu_hours: float | None = None,
        jobs: int | None = None,
    ) -> list[wire.Quota]:
        """Set the quota of a member, or of the project (platform admins). What is left out has no limit."""
        body = ask(wire.SetQuota, user=user, bytes=bytes, gpu_hours=gpu_hours, jobs=jobs)
        return self._client.connection.put(f"{self._client.root}/quotas", body, wire.Quotas).items
