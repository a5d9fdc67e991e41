"""A whole app in this process, with people in it. The store's own suite covers the databases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from easel.flow.first_start import create_platform_admin
from easel.serve.app import create_app
from easel.serve.settings import Settings
from easel.store.engine import Store


@dataclass
class World:
    """Two projects, `astro` and `bio`, each with an admin and a member."""

    app: FastAPI
    http: TestClient
    tokens: dict[str, str] = field(default_factory=dict)

    def call(self, who: str | None, method: str, path: str, **more: Any) -> Any:
        headers = dict(more.pop("headers", {}))
        if who is not None:
            headers["Authorization"] = f"Bearer {self.tokens[who]}"
        return self.http.request(method, path, headers=headers, **more)


@pytest.fixture
def world(sqlite_store: Store, tmp_path: Path) -> Iterator[World]:
    yield from populated(sqlite_store, tmp_path)


@pytest.fixture
def either_world(store: Store, tmp_path: Path) -> Iterator[World]:
    """For the few routes whose statements differ by database."""
    yield from populated(store, tmp_path)


def populated(store: Store, tmp_path: Path) -> Iterator[World]:
    """An app on this store with two projects, an admin and a member in each."""
    settings = Settings(home=tmp_path / "home", failed_logins_per_minute=5)
    admin = create_platform_admin(store)
    assert admin is not None
    app = create_app(settings, store)
    with TestClient(app, raise_server_exceptions=False) as http:
        made = World(app, http, {"root": admin})
        for project in ("astro", "bio"):
            assert made.call("root", "POST", "/api/v1/projects", json={"name": project}).status_code == 201
            for name, role in ((f"{project}-admin", "admin"), (f"{project}-member", "member")):
                answer = made.call(
                    "root", "POST", f"/api/v1/projects/{project}/users", json={"name": name, "role": role}
                )
                made.tokens[name] = answer.json()["token"]["secret"]
        yield made
