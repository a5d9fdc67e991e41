"""Routes of the model registry."""

from __future__ import annotations

from typing import Any

from easel.flow.mlflow import registry as flow
from easel.flow.mlflow import registry_search
from easel.records.identity import Caller
from easel.records.run import ModelVersion, RegisteredModel
from easel.serve.mlflow import answers
from easel.serve.mlflow.asked import AskedFields
from easel.serve.mlflow.routing import api, new_router
from easel.serve.mlflow.tags import named_by, tag_routes
from easel.serve.state import AppState, Tx

router = new_router()
Json = dict[str, Any]


def _model(tx: Tx, caller: Caller, found: RegisteredModel) -> Json:
    return answers.registered_model(found, flow.latest_versions(tx, caller, found.name, ()))


def _version(tx: Tx, caller: Caller, found: ModelVersion) -> Json:
    return answers.model_version(found, flow.find(tx, caller, found.name))


@api(router, "registered-models/create", "POST")
def create_registered_model(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, description, tags = ask.need_text("name"), ask.text("description"), ask.pairs("tags")
    with state.store.write() as tx:
        return {
            "registered_model": answers.registered_model(flow.create(tx, caller, name, description, tags))
        }


@api(router, "registered-models/get", "GET")
def get_registered_model(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.read() as tx:
        return {"registered_model": _model(tx, caller, flow.find(tx, caller, ask.need_text("name")))}


@api(router, "registered-models/rename", "POST")
def rename_registered_model(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, new_name = ask.need_text("name"), ask.need_text("new_name")
    with state.store.write() as tx:
        return {"registered_model": _model(tx, caller, flow.rename(tx, caller, name, new_name))}


@api(router, "registered-models/update", "PATCH")
def update_registered_model(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, description = ask.need_text("name"), ask.text("description")
    with state.store.write() as tx:
        return {"registered_model": _model(tx, caller, flow.describe(tx, caller, name, description))}


@api(router, "registered-models/delete", "DELETE")
def delete_registered_model(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.write() as tx:
        flow.delete(tx, caller, ask.need_text("name"))
    return {}


@api(router, "registered-models/search", "GET")
def search_registered_models(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    most = ask.whole("max_results")
    with state.store.read() as tx:
        found, token = registry_search.search_models(
            tx,
            caller,
            filter_string=ask.text("filter"),
            max_results=100 if most is None else most,
            order_by=ask.texts("order_by"),
            page_token=ask.text("page_token"),
        )
    shown = [answers.registered_model(model, latest) for model, latest in found]
    return answers.without_none({"registered_models": shown or None, "next_page_token": token})


@api(router, "registered-models/get-latest-versions", "POST", "GET")
def get_latest_versions(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, stages = ask.need_text("name"), ask.texts("stages")
    with state.store.read() as tx:
        model = flow.find(tx, caller, name)
        found = flow.latest_versions(tx, caller, name, stages)
    return answers.without_none(
        {"model_versions": [answers.model_version(each, model) for each in found] or None}
    )


tag_routes(
    router,
    "registered_model",
    ("registered-models/set-tag", "registered-models/delete-tag"),
    named_by("name"),
    (flow.set_tag, flow.delete_tag),
    "DELETE",
)


@api(router, "registered-models/alias", "POST")
def set_registered_model_alias(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, alias, version = ask.need_text("name"), ask.need_text("alias"), ask.need_text("version")
    with state.store.write() as tx:
        flow.set_alias(tx, caller, name, alias, version)
    return {}


@api(router, "registered-models/alias", "DELETE")
def delete_registered_model_alias(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, alias = ask.need_text("name"), ask.need_text("alias")
    with state.store.write() as tx:
        flow.delete_alias(tx, caller, name, alias)
    return {}


@api(router, "registered-models/alias", "GET")
def get_model_version_by_alias(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, alias = ask.need_text("name"), ask.need_text("alias")
    with state.store.read() as tx:
        return {"model_version": _version(tx, caller, flow.by_alias(tx, caller, name, alias))}


@api(router, "model-versions/create", "POST")
def create_model_version(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    asked = {
        "name": ask.need_text("name"),
        "source": ask.need_text("source"),
        "run_id": ask.text("run_id"),
        "run_link": ask.text("run_link"),
        "description": ask.text("description"),
        "tags": ask.pairs("tags"),
        "model_id": ask.text("model_id"),
    }
    with state.store.write() as tx:
        made = flow.create_version(tx, caller, **asked)  # type: ignore[arg-type]
        return {"model_version": _version(tx, caller, made)}


@api(router, "model-versions/get", "GET")
def get_model_version(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, version = ask.need_text("name"), ask.need_text("version")
    with state.store.read() as tx:
        return {"model_version": _version(tx, caller, flow.find_version(tx, caller, name, version))}


@api(router, "model-versions/update", "PATCH")
def update_model_version(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, version, text = ask.need_text("name"), ask.need_text("version"), ask.text("description")
    with state.store.write() as tx:
        return {"model_version": _version(tx, caller, flow.describe_version(tx, caller, name, version, text))}


@api(router, "model-versions/delete", "DELETE")
def delete_model_version(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, version = ask.need_text("name"), ask.need_text("version")
    with state.store.write() as tx:
        flow.delete_version(tx, caller, name, version)
    return {}


@api(router, "model-versions/transition-stage", "POST")
def transition_stage(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, version, stage = ask.need_text("name"), ask.need_text("version"), ask.need_text("stage")
    archive = ask.flag("archive_existing_versions")
    with state.store.write() as tx:
        found = flow.transition(tx, caller, name, version, stage, archive_existing=archive)
        return {"model_version": _version(tx, caller, found)}


@api(router, "model-versions/search", "GET")
def search_model_versions(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    most = ask.whole("max_results")
    with state.store.read() as tx:
        found, token = registry_search.search_versions(
            tx,
            caller,
            filter_string=ask.text("filter"),
            max_results=10_000 if most is None else most,
            order_by=ask.texts("order_by"),
            page_token=ask.text("page_token"),
        )
        models = {name: flow.find(tx, caller, name) for name in {each.name for each in found}}
    shown = [answers.model_version(each, models[each.name]) for each in found]
    return answers.without_none({"model_versions": shown or None, "next_page_token": token})


@api(router, "model-versions/get-download-uri", "GET")
def get_download_uri(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, version = ask.need_text("name"), ask.need_text("version")
    with state.store.read() as tx:
        return {"artifact_uri": flow.download_uri(tx, caller, name, version)}


tag_routes(
    router,
    "model_version",
    ("model-versions/set-tag", "model-versions/delete-tag"),
    named_by("name", "version"),
    (flow.set_version_tag, flow.delete_version_tag),
    "DELETE",
)
