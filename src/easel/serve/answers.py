"""Questions to models: who asks and which model answers is known for a moment, the rest is done by a model process."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import asdict, dataclass, replace
from typing import Any

from anyio import from_thread, to_thread
from starlette.responses import Response

from easel.errors import EaselError
from easel.flow.apps.files import AppFiles
from easel.flow.apps.infer import served
from easel.flow.apps.ready import metric_of
from easel.match.candidate import Candidate
from easel.match.raw import open_value, plain_value
from easel.records.app import App
from easel.records.identity import Caller
from easel.serve.model_forms import OPEN, OWN, READY, checked
from easel.serve.model_process import ModelOrder
from easel.serve.state import AppState

log = logging.getLogger("easel.models")
_FILE = b'"$file"'
MOST_READY = 1000


@dataclass(frozen=True, slots=True)
class Serving:
    """The model that answers for an app: how its process is asked, and what the answer says of it."""

    app: App
    key: str
    orders: dict[str, bytes]
    tails: dict[str, bytes]


async def serving(state: AppState, caller: Caller, name: str, version: str | None = None) -> Serving:
    """Which model answers now, or the version that is named; its files on this machine."""
    key = (caller.project_id, name, version)
    found: Serving | None = state.recent_models.get(key)
    if found is None:
        mark = state.recent_models.mark()
        found = await to_thread.run_sync(_find, state, caller, name, version)
        state.recent_models.keep(key, found, mark)
    return found


def _find(state: AppState, caller: Caller, name: str, version: str | None) -> Serving:
    app, best = served(state.lake, caller, name, version)
    assert best.model_set is not None
    folder = state.model_files.folder(state.lake, caller, best.model_set)
    styles = json.dumps(app.styles or {})
    orders = {
        form: json.dumps(asdict(ModelOrder(str(folder), app.program, metric_of(app), form, styles))).encode()
        for form in (OWN, OPEN, READY)
    }
    about = {
        "candidate": Candidate.from_json(dict(best.candidate)).name,
        "model": best.model_set,
        "quality": best.quality or 0.0,
        "pinned": app.pinned is not None and app.pinned == best.model_set,
    }
    by_protocol = {"model_name": app.name, "model_version": best.model_set.rpartition(":")[2]}
    tails = {OWN: _tail(about), OPEN: _tail(by_protocol)}
    return Serving(app, f"{caller.project_id}/{best.model_set}", orders, tails)


def _tail(about: dict[str, Any]) -> bytes:
    return b"," + json.dumps(about, ensure_ascii=False).encode()[1:]


def make_ready(state: AppState, caller: Caller, app: App, model: str) -> None:
    """Has a model process hold the model that answers for an app somebody looks at: they are likely to ask it next.

    For threads that answer a request. Nobody waits for it, and each model is got ready once.
    """
    if state.settings.warm_trials and (caller.project_id, model) not in state.models_ready:
        from_thread.run_sync(_begin_to_make_ready, state, caller, app.name, model)


def _begin_to_make_ready(state: AppState, caller: Caller, name: str, model: str) -> None:
    if len(state.models_ready) >= MOST_READY:
        state.models_ready.clear()
    task = asyncio.get_running_loop().create_task(_make_ready(state, caller, name))
    state.models_ready[caller.project_id, model] = task  # also keeps the task from being collected


async def _make_ready(state: AppState, caller: Caller, name: str) -> None:
    try:
        found = await serving(state, caller, name)
        await state.models.ask(found.orders[READY], found.key, b"")
    except EaselError as error:  # whoever asks the model is told
        log.info("the model of %s was not got ready: %s", name, error.message)


async def answer_own(state: AppState, caller: Caller, name: str, body: bytes) -> Response:
    """The answer to a request in our own form."""
    found = await serving(state, caller, name)
    if _FILE in body:  # files of the lake are ours to read, not the model's
        body = await to_thread.run_sync(_with_files, state, caller, found.app, body)
    told = await state.models.ask(found.orders[OWN], found.key, body)
    return Response(told + found.tails[OWN], media_type="application/json")


async def answer_open(
    state: AppState, caller: Caller, name: str, version: str | None, body: bytes
) -> Response:
    """The answer to a request of the Open Inference Protocol."""
    found = await serving(state, caller, name, version)
    told = await state.models.ask(found.orders[OPEN], found.key, body)
    return Response(told + found.tails[OPEN], media_type="application/json")


def _with_files(state: AppState, caller: Caller, app: App, body: bytes) -> bytes:
    """The same request with the bytes of the files that it names."""
    asked: dict[str, Any] = checked(body).model_dump()
    files = AppFiles(state.lake, caller, app)

    def brought(value: Any) -> Any:
        if isinstance(value, dict) and "$file" in value:
            return plain_value(replace(open_value(value, files), path=None))
        if isinstance(value, dict):
            return {key: brought(part) for key, part in value.items()}
        return [brought(part) for part in value] if isinstance(value, list) else value

    asked["objects"] = [brought(one) for one in asked["objects"]]
    return json.dumps(asked).encode()
