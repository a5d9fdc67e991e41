"""Everybody on the installation, with the projects that each is in."""

from __future__ import annotations

from easel.declare.page import PageRequest
from easel.ids import UserId
from easel.records.identity import User
from easel.store import people
from easel.store.engine import Tx
from easel.store.paging import Page


def list_users(tx: Tx, page: PageRequest) -> tuple[Page[User], dict[UserId, list[str]]]:
    """Returns everybody, and the names of the projects that each is in. For platform admins."""
    found = people.list_users(tx, page)
    return found, people.project_names(tx, [user.id for user in found.items])
