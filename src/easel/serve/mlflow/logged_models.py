"""Routes of logged models."""

from __future__ import annotations

from typing import Any

from easel.flow.mlflow import artifacts, experiments
from easel.flow.mlflow import logged_models as flow
from easel.records.identity import Caller
from easel.records.run import LoggedModel
from easel.serve.mlflow import answers
from easel.serve.mlflow.asked import AskedFields, missing
from easel.serve.mlflow.routing import api, new_router
from easel.serve.state import AppState, Tx

router = new_router()
Json = dict[str, Any]


def _shown(tx: Tx, caller: Caller, model: LoggedModel) -> Json:
    return answers.logged_model(model, experiments.find(tx, caller, str(model.experiment)).artifact_location)


@api(router, "logged-models", "POST")
def create_logged_model(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.write() as tx:
        made = flow.create(
            tx,
            caller,
            experiment_id=ask.need_text("experiment_id"),
            name=ask.text("name"),
            model_type=ask.text("model_type"),
            run_id=ask.text("source_run_id"),
            params=ask.pairs("params"),
            tags=ask.pairs("tags"),
        )
        return {"model": _shown(tx, caller, made)}


@api(router, "logged-models/search", "POST")
def search_logged_models(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    wanted, most = ask.texts("experiment_ids"), ask.whole("max_results")
    if not wanted:
        raise missing("experiment_ids")
    with state.store.read() as tx:
        found, token = flow.search(
            tx,
            caller,
            wanted,
            filter_string=ask.text("filter"),
            datasets=[each for each in ask.items("datasets") if isinstance(each, dict)],
            max_results=50 if most is None else most,
            order_by=[each for each in ask.items("order_by") if isinstance(each, dict)],
            page_token=ask.text("page_token"),
        )
        shown = [_shown(tx, caller, each) for each in found]
    return answers.without_none({"models": shown or None, "next_page_token": token})


@api(router, "logged-models/{model_id}", "GET")
def get_logged_model(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.read() as tx:
        return {"model": _shown(tx, caller, flow.find(tx, caller, ask.need_text("model_id")))}


_BY_NUMBER = {1: "LOGGED_MODEL_PENDING", 2: "LOGGED_MODEL_READY", 3: "LOGGED_MODEL_UPLOAD_FAILED"}


@api(router, "logged-models/{model_id}", "PATCH")
def finalise_logged_model(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    given = ask.fields.get("status")
    status = _BY_NUMBER.get(given, str(given)) if isinstance(given, int) else ask.need_text("status")
    with state.store.write() as tx:
        return {"model": _shown(tx, caller, flow.finalise(tx, caller, ask.need_text("model_id"), status))}


@api(router, "logged-models/{model_id}", "DELETE")
def delete_logged_model(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.write() as tx:
        flow.delete(tx, caller, ask.need_text("model_id"))
    return {}


@api(router, "logged-models/{model_id}/tags", "PATCH")
def set_logged_model_tags(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.write() as tx:
        changed = flow.set_tags(tx, caller, ask.need_text("model_id"), ask.pairs("tags"))
        return {"model": _shown(tx, caller, changed)}


@api(router, "logged-models/{model_id}/tags/{tag_key:path}", "DELETE")
def delete_logged_model_tag(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.write() as tx:
        flow.delete_tag(tx, caller, ask.need_text("model_id"), ask.need_text("tag_key"))
    return {}


@api(router, "logged-models/{model_id}/params", "POST")
def log_logged_model_params(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.write() as tx:
        flow.log_params(tx, caller, ask.need_text("model_id"), ask.pairs("params"))
    return {}


@api(router, "logged-models/{model_id}/artifacts/directories", "GET")
def list_logged_model_artifacts(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    path = ask.text("artifact_directory_path") or ""
    with state.store.read() as tx:
        model = flow.find(tx, caller, ask.need_text("model_id"))
        place = artifacts.locate(tx, caller, f"models/{model.id}/artifacts/{artifacts.check_path(path)}")
        found = artifacts.listing(tx, caller, place)
        root = _shown(tx, caller, model)["info"]["artifact_uri"]
    return {"root_uri": root, "files": [answers.file(each) for each in found]}
