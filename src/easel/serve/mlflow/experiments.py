"""Routes of experiments."""

from __future__ import annotations

from typing import Any

from easel.flow.mlflow import experiments as flow
from easel.flow.mlflow import inputs
from easel.flow.mlflow.errors import invalid
from easel.records.identity import Caller
from easel.serve.mlflow import answers
from easel.serve.mlflow.asked import AskedFields
from easel.serve.mlflow.routing import api, new_router
from easel.serve.mlflow.tags import named_by, tag_routes
from easel.serve.state import AppState

router = new_router()
Json = dict[str, Any]


@api(router, "experiments/create", "POST")
def create_experiment(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    name, location, tags = ask.need_text("name"), ask.text("artifact_location"), ask.pairs("tags")
    with state.store.write() as tx:
        return {"experiment_id": str(flow.create(tx, caller, name, location, tags))}


@api(router, "experiments/search", "POST", "GET")
def search_experiments(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    most = ask.whole("max_results")
    with state.store.read() as tx:
        found, token = flow.search(
            tx,
            caller,
            view=ask.view("view_type"),
            filter_string=ask.text("filter"),
            order_by=ask.texts("order_by"),
            max_results=1000 if most is None else most,
            page_token=ask.text("page_token"),
        )
    return answers.without_none(
        {"experiments": [answers.experiment(each) for each in found] or None, "next_page_token": token}
    )


@api(router, "experiments/get", "GET")
def get_experiment(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.read() as tx:
        return {"experiment": answers.experiment(flow.find(tx, caller, ask.need_text("experiment_id")))}


@api(router, "experiments/get-by-name", "GET")
def get_experiment_by_name(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.read() as tx:
        return {
            "experiment": answers.experiment(flow.find_by_name(tx, caller, ask.need_text("experiment_name")))
        }


@api(router, "experiments/delete", "POST")
def delete_experiment(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.write() as tx:
        flow.delete(tx, caller, ask.need_text("experiment_id"))
    return {}


@api(router, "experiments/restore", "POST")
def restore_experiment(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.write() as tx:
        flow.restore(tx, caller, ask.need_text("experiment_id"))
    return {}


@api(router, "experiments/update", "POST")
def update_experiment(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    experiment, name = ask.need_text("experiment_id"), ask.need_text("new_name")
    with state.store.write() as tx:
        flow.rename(tx, caller, experiment, name)
    return {}


tag_routes(
    router,
    "experiment",
    ("experiments/set-experiment-tag", "experiments/delete-experiment-tag"),
    named_by("experiment_id"),
    (flow.set_tag, flow.delete_tag),
)


@api(router, "experiments/search-datasets", "POST")
def search_datasets(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    wanted = ask.texts("experiment_ids")
    if not wanted:
        raise invalid("SearchDatasets request must specify at least one experiment_id.")
    if len(wanted) > 20:
        raise invalid(
            f"SearchDatasets request cannot specify more than 20 experiment_ids. Received {len(wanted)} experiment_ids."
        )
    with state.store.read() as tx:
        found = inputs.dataset_summaries(tx, caller, [flow.number_of(each) for each in wanted])
    return {
        "dataset_summaries": [
            answers.without_none(
                {"experiment_id": str(number), "name": name, "digest": digest, "context": context}
            )
            for number, name, digest, context in found
        ]
    }
