"""Everybody on the installation, with the projects that each is in."""

from __future__ import annotations

from dataclasses import dataclass

from easel.declare.page import PageRequest
from easel.ids import UserId
from easel.records.identity import User
from easel.store import people, sign_on
from easel.store.engine import Tx
from easel.store.paging import Page
from easel.store.sign_on import KnownAt


@dataclass(frozen=True, slots=True)
class Directory:
    """A page of people, the names of the projects that each is in, and whom providers vouch for, with which groups."""

    page: Page[User]
    projects: dict[UserId, list[str]]
    identities: dict[UserId, KnownAt]


def list_users(tx: Tx, page: PageRequest) -> Directory:
    """Returns everybody. For platform admins."""
    found = people.list_users(tx, page)
    ids = [user.id for user in found.items]
    return Directory(found, people.project_names(tx, ids), sign_on.known_at(tx, ids))
