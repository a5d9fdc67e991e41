"""Projects, users and tokens."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from easel.declare.roles import Role
from easel.sdk.connection import ask
from easel.wire import identity as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client


class Projects:
    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self, sort: str | None = None, filter: list[str] | None = None) -> Iterator[wire.Project]:  # noqa: A002
        params = {"sort": sort, "filter": filter}
        return self._client.connection.pages("/api/v1/projects", wire.Project, params)

    def get(self, name: str) -> wire.Project:
        return self._client.connection.get(f"/api/v1/projects/{name}", wire.Project)

    def create(self, name: str, description: str = "", key: str | None = None) -> wire.Project:
        body = ask(wire.CreateProject, name=name, description=description)
        return self._client.connection.post("/api/v1/projects", body, wire.Project, key)


class Users:
    """The people of the client's project."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _path(self) -> str:
        return f"{self._client.root}/users"

    def list(self) -> Iterator[wire.Member]:
        return self._client.connection.pages(self._path, wire.Member)

    def get(self, name: str) -> wire.Member:
        return self._client.connection.get(f"{self._path}/{name}", wire.Member)

    def create(
        self, name: str, role: Role = Role.MEMBER, token_expires_at: datetime | None = None
    ) -> wire.CreatedUser:
        body = ask(wire.CreateUser, name=name, role=role, token_expires_at=token_expires_at)
        return self._client.connection.post(self._path, body, wire.CreatedUser)

    def admit(self, user_id: str, role: Role = Role.MEMBER) -> wire.Member:
        body = ask(wire.AdmitUser, user_id=user_id, role=role)
        return self._client.connection.post(f"{self._path}/admit", body, wire.Member)

    def set_role(self, name: str, role: Role) -> wire.Member:
        return self._client.connection.patch(
            f"{self._path}/{name}", ask(wire.ChangeRole, role=role), wire.Member
        )

    def remove(self, name: str) -> None:
        self._client.connection.delete(f"{self._path}/{name}")

    def create_token(self, user: str, name: str, expires_at: datetime | None = None) -> wire.IssuedToken:
        body = ask(wire.CreateToken, name=name, expires_at=expires_at)
        return self._client.connection.post(f"{self._path}/{user}/tokens", body, wire.IssuedToken)


class Tokens:
    """Your own."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> Iterator[wire.Token]:
        return self._client.connection.pages("/api/v1/tokens", wire.Token)

    def create(self, name: str, expires_at: datetime | None = None) -> wire.IssuedToken:
        body = ask(wire.CreateToken, name=name, expires_at=expires_at)
        return self._client.connection.post("/api/v1/tokens", body, wire.IssuedToken)

    def revoke(self, token_id: str) -> None:
        self._client.connection.delete(f"/api/v1/tokens/{token_id}")
