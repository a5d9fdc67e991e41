"""The audit, for admins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from easel.wire.audit import AuditEntry, AuditVerdict

if TYPE_CHECKING:
    from easel.sdk.client import Client


class Audit:
    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self, filter: list[str] | None = None, *, everywhere: bool = True) -> Iterator[AuditEntry]:  # noqa: A002
        """Entries, newest first: of the installation (platform admins), or of the client's project."""
        path = "/api/v1/audit" if everywhere else f"{self._client.root}/audit"
        return self._client.connection.pages(path, AuditEntry, {"filter": filter})

    def export(self, target: Path, after: int = 0) -> int:
        """Write the audit to a file of JSON lines; returns its bytes."""
        partial = target.with_name(target.name + ".partial")
        with partial.open("wb") as out:
            for chunk in self._client.connection.download(f"/api/v1/audit/export?after={after}"):
                out.write(chunk)
            size = out.tell()
        partial.replace(target)
        return size

    def verify(self, seq: int | None = None, known_hash: str | None = None) -> AuditVerdict:
        """Check the whole chain, and that an entry noted elsewhere is still in it."""
        return self._client.connection.get(
            "/api/v1/audit/verify", AuditVerdict, {"seq": seq, "hash": known_hash}
        )
