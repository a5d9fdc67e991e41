"""Projects, users and tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from easel.declare.roles import Role
from easel.declare.verbs import Verb
from easel.sdk.connection import Connection, ask
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

    def change(
        self,
        name: str,
        *,
        description: str | None = None,
        archived: bool | None = None,
        owner: str | None = None,
    ) -> wire.Project:
        """Describe it, archive it (reads only) or open it again, or hand it to another owner."""
        body = ask(wire.ChangeProject, description=description, archived=archived, owner=owner)
        return self._client.connection.patch(f"/api/v1/projects/{name}", body, wire.Project)

    def export(self, name: str, target: Path) -> int:
        """Write all of a project to a tar archive; returns its bytes. The file appears when it is whole."""
        partial = target.with_name(target.name + ".partial")
        with partial.open("wb") as out:
            for chunk in self._client.connection.download(f"/api/v1/projects/{name}/export"):
                out.write(chunk)
            size = out.tell()
        partial.replace(target)
        return size

    def delete(self, name: str, *, without_export: bool = False) -> None:
        """Remove an archived project for good."""
        query = urlencode({"confirm": name, "without_export": without_export})
        self._client.connection.delete(f"/api/v1/projects/{name}?{query}")


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

    def disable(
        self, name: str, *, hand_over_to: str | None = None, kill_running: bool = False
    ) -> wire.Departure:
        """End somebody's sessions, tokens and waiting jobs at once; their work is kept."""
        body = ask(wire.DisableUser, hand_over_to=hand_over_to, kill_running=kill_running)
        return self._client.connection.post(f"{self._path}/{name}/disable", body, wire.Departure)

    def enable(self, name: str) -> wire.User:
        return self._client.connection.post(f"{self._path}/{name}/enable", {}, wire.User)

    def hand_over(self, name: str, to: str) -> wire.HandedOver:
        """Make another member the owner of somebody's apps, studies, profiles and rights on files."""
        body = ask(wire.HandOver, to=to)
        return self._client.connection.post(f"{self._path}/{name}/hand-over", body, wire.HandedOver)

    def everybody(self) -> Iterator[wire.Person]:
        """All people and programs of the installation; for platform admins."""
        return self._client.connection.pages("/api/v1/users", wire.Person)

    def disable_everywhere(self, user_id: str, *, kill_running: bool = False) -> wire.Departure:
        """Disable somebody by id, whichever projects they are in; for platform admins."""
        body = ask(wire.DisableUser, kill_running=kill_running)
        return self._client.connection.post(f"/api/v1/users/{user_id}/disable", body, wire.Departure)

    def enable_everywhere(self, user_id: str) -> wire.User:
        return self._client.connection.post(f"/api/v1/users/{user_id}/enable", {}, wire.User)

    def create_token(self, user: str, name: str, expires_at: datetime | None = None) -> wire.IssuedToken:
        body = ask(wire.CreateToken, name=name, expires_at=expires_at)
        return self._client.connection.post(f"{self._path}/{user}/tokens", body, wire.IssuedToken)


class Tokens:
    """Your own."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> Iterator[wire.Token]:
        return self._client.connection.pages("/api/v1/tokens", wire.Token)

    def create(
        self,
        name: str,
        expires_at: datetime | None = None,
        *,
        verbs: Sequence[Verb] = (),
        projects: Sequence[str] = (),
    ) -> wire.IssuedToken:
        """A further token; with `verbs` and `projects` one that may do less than you."""
        body = ask(
            wire.CreateToken, name=name, expires_at=expires_at, verbs=tuple(verbs), projects=tuple(projects)
        )
        return self._client.connection.post("/api/v1/tokens", body, wire.IssuedToken)

    def revoke(self, token_id: str) -> None:
        self._client.connection.delete(f"/api/v1/tokens/{token_id}")


class Invitations:
    """Codes with which people join the client's project."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _path(self) -> str:
        return f"{self._client.root}/invitations"

    def list(self) -> Iterator[wire.Invitation]:
        return self._client.connection.pages(self._path, wire.Invitation)

    def create(self, role: Role = Role.MEMBER, note: str = "", days: float = 7) -> wire.IssuedInvitation:
        body = ask(wire.CreateInvitation, role=role, note=note, days=days)
        return self._client.connection.post(self._path, body, wire.IssuedInvitation)

    def withdraw(self, invitation_id: str) -> None:
        self._client.connection.delete(f"{self._path}/{invitation_id}")

    def join(self, code: str) -> wire.Joined:
        """Join the project that invited, as who you are."""
        body = ask(wire.JoinProject, code=code)
        return self._client.connection.post("/api/v1/invitations/join", body, wire.Joined)


def accept_invitation(connection: Connection, code: str, name: str) -> wire.Accepted:
    """Join as a new person; the answer has the first token."""
    body = ask(wire.AcceptInvitation, code=code, name=name)
    return connection.post("/api/v1/invitations/accept", body, wire.Accepted)


class ServiceAccounts:
    """Programs of the client's project, with tokens of their own."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _path(self) -> str:
        return f"{self._client.root}/service-accounts"

    def list(self) -> Iterator[wire.ServiceAccount]:
        return self._client.connection.pages(self._path, wire.ServiceAccount)

    def create(self, name: str, role: Role = Role.MEMBER) -> wire.ServiceAccount:
        body = ask(wire.CreateServiceAccount, name=name, role=role)
        return self._client.connection.post(self._path, body, wire.ServiceAccount)

    def create_token(
        self,
        account: str,
        name: str,
        *,
        verbs: Sequence[Verb] = (Verb.READ,),
        projects: Sequence[str] = (),
        days: float = 90,
    ) -> wire.IssuedToken:
        body = ask(
            wire.CreateServiceToken, name=name, verbs=tuple(verbs), projects=tuple(projects), days=days
        )
        return self._client.connection.post(f"{self._path}/{account}/tokens", body, wire.IssuedToken)

    def rotate(self, account: str, token_id: str, overlap_hours: float = 24) -> wire.IssuedToken:
        """A new token like an old one, which works on for some hours."""
        body = ask(wire.RotateToken, overlap_hours=overlap_hours)
        path = f"{self._path}/{account}/tokens/{token_id}/rotate"
        return self._client.connection.post(path, body, wire.IssuedToken)

    def revoke(self, account: str, token_id: str) -> None:
        self._client.connection.delete(f"{self._path}/{account}/tokens/{token_id}")
