"""A lake on each database, with two projects and people in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from easel.declare.roles import Role
from easel.flow.lake import upload
from easel.flow.lake.file_set import create_file_set, entries_of
from easel.flow.lake.ingest import send
from easel.flow.lake.upload import Lake
from easel.ids import TokenId
from easel.lake.blobs.local import LocalBlobs
from easel.lake.folder import scan
from easel.records.identity import Caller, Project
from easel.records.lake import FileSetVersion, Upload
from easel.store import identity
from easel.store.engine import Store, Tx


@dataclass
class People:
    """`ana` and `ben` are members of `astro`, `root` is its admin; `eve` is a member of `bio`."""

    lake: Lake
    folder: Path
    ana: Caller
    ben: Caller
    root: Caller
    eve: Caller

    def put(self, who: Caller, files: Mapping[str, bytes]) -> Upload:
        """Upload and commit."""
        session = self.send(who, files)
        with self.lake.store.write() as tx:
            return upload.commit(tx, who, session.id)

    def send(self, who: Caller, files: Mapping[str, bytes]) -> Upload:
        """Upload without committing."""
        with self.lake.store.write() as tx:
            session = upload.start(tx, who)
        found = []
        for number, (path, content) in enumerate(sorted(files.items())):
            local = self.folder / f"{session.id}-{number}"
            local.write_bytes(content)
            found += scan(local, path)
        send(self.lake, who, session.id, found)
        return session

    def make_set(self, who: Caller, name: str, *references: str) -> FileSetVersion:
        return create_file_set(self.lake.store, who, name, references)

    def content(self, who: Caller, reference: str) -> dict[str, int]:
        """Path to version."""
        with self.lake.store.read() as tx:
            return {e.path: e.version for e in entries_of(tx, who, reference)}


@pytest.fixture
def people(store: Store, tmp_path: Path) -> People:
    def caller(tx: Tx, project: Project, name: str, role: Role) -> Caller:
        user = identity.add_user(tx, name, home=project.id)
        identity.put_member(tx, project.id, user.id, role)
        return Caller(user, TokenId("tok_test"), project, role)

    with store.write() as tx:
        astro, bio = identity.add_project(tx, "astro", ""), identity.add_project(tx, "bio", "")
        callers = [
            caller(tx, astro, "ana", Role.MEMBER),
            caller(tx, astro, "ben", Role.MEMBER),
            caller(tx, astro, "root", Role.ADMIN),
            caller(tx, bio, "eve", Role.MEMBER),
        ]
    folder = tmp_path / "local"
    folder.mkdir()
    return People(Lake(store, LocalBlobs(tmp_path / "blobs")), folder, *callers)
