"""Who uses the dashboard in its tests."""

from __future__ import annotations

from easel.declare.roles import Role
from easel.sdk.client import Client
from easel.testing.server import ServerProcess

SMALL = {"vcpu": 0.5, "memory_mb": 128}
NASTY = "<img src=x onerror=document.title='owned'>"


def person(server: ServerProcess, name: str, role: Role = Role.MEMBER, project: str = "astro") -> Client:
    secret = server.client(project=project).users.create(name, role).token.secret
    assert secret is not None
    return server.client(secret, project)


def token_of(client: Client) -> str:
    return client.connection.http.headers["Authorization"].removeprefix("Bearer ")
