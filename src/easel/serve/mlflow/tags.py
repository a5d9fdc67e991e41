"""The two routes that everything with tags has: set one, delete one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter

from easel.flow.mlflow.checks import KeyValue
from easel.records.identity import Caller
from easel.serve.mlflow.asked import AskedFields
from easel.serve.mlflow.routing import api
from easel.serve.state import AppState


def named_by(*fields: str) -> Callable[[AskedFields], tuple[str, ...]]:
    """Returns what reads the fields of a request that name the thing whose tags they are."""
    return lambda ask: tuple(ask.need_text(field) for field in fields)


def tag_routes(
    router: APIRouter,
    what: str,
    paths: tuple[str, str],
    named: Callable[[AskedFields], tuple[str, ...]],
    change: tuple[Callable[..., None], Callable[..., None]],
    delete_verb: str = "POST",
) -> None:
    """Add both routes. `change` sets a tag and deletes one: (transaction, caller, names…, tag or key)."""
    set_tag, delete_tag = change

    def set_one(state: AppState, caller: Caller, ask: AskedFields) -> dict[str, Any]:
        names = named(ask)
        tag = KeyValue(ask.need_text("key"), ask.text("value") or "")
        with state.store.write() as tx:
            set_tag(tx, caller, *names, tag)
        return {}

    def delete_one(state: AppState, caller: Caller, ask: AskedFields) -> dict[str, Any]:
        names, key = named(ask), ask.need_text("key")
        with state.store.write() as tx:
            delete_tag(tx, caller, *names, key)
        return {}

    set_one.__name__, delete_one.__name__ = f"set_{what}_tag", f"delete_{what}_tag"
    api(router, paths[0], "POST")(set_one)
    api(router, paths[1], delete_verb)(delete_one)
