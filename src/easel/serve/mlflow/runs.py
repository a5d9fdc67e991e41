"""Routes of runs: their life, what is logged to them, searches, histories of metrics."""

from __future__ import annotations

from typing import Any

from easel.flow.mlflow import artifacts, inputs, logged_models, metrics, search
from easel.flow.mlflow import runs as flow
from easel.flow.mlflow.checks import MAX_BATCH_BYTES, KeyValue, MetricPoint
from easel.flow.mlflow.errors import invalid
from easel.records.identity import Caller
from easel.records.job import TERMINAL
from easel.records.run import ModelUse
from easel.serve.mlflow import answers
from easel.serve.mlflow.asked import AskedFields, as_float, as_whole, missing
from easel.serve.mlflow.routing import api, new_router
from easel.serve.mlflow.tags import tag_routes
from easel.serve.state import AppState

router = new_router()
Json = dict[str, Any]
MAX_BULK_RUNS = 100
MAX_BULK_RESULTS = 25_000
MAX_INTERVAL_RESULTS = 2500


@api(router, "runs/create", "POST")
def create_run(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    asked = {
        "experiment_id": ask.text("experiment_id") or "0",
        "user": ask.text("user_id") or "",
        "start_time": ask.whole("start_time"),
        "tags": ask.pairs("tags"),
        "name": ask.text("run_name") or "",
    }
    with state.store.write() as tx:
        return {"run": answers.run(flow.create(tx, caller, **asked))}  # type: ignore[arg-type]


@api(router, "runs/get", "GET")
def get_run(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.read() as tx:
        return {"run": answers.run(flow.get(tx, caller, ask.run_id()))}


_BY_NUMBER = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}


@api(router, "runs/update", "POST")
def update_run(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    run_id, given = ask.run_id(), ask.fields.get("status")
    status = _BY_NUMBER.get(given, str(given)) if isinstance(given, int) else ask.text("status")
    end_time, name = ask.whole("end_time"), ask.text("run_name")
    with state.store.write() as tx:
        found = flow.update(tx, caller, run_id, status=status, end_time=end_time, name=name)
        if found.record.state in TERMINAL:
            artifacts.keep_output(tx, caller, found.record)
    return {"run_info": answers.run_info(found)}


@api(router, "runs/delete", "POST")
def delete_run(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.write() as tx:
        flow.delete(tx, caller, ask.run_id())
    return {}


@api(router, "runs/restore", "POST")
def restore_run(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    with state.store.write() as tx:
        flow.restore(tx, caller, ask.run_id())
    return {}


@api(router, "runs/log-metric", "POST")
def log_metric(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    run_id, key = ask.run_id(), ask.need_text("key")
    if ask.fields.get("value") is None:
        raise missing("value")
    if ask.fields.get("timestamp") is None:
        raise missing("timestamp")
    point = MetricPoint(
        key,
        as_float("value", ask.fields["value"]),
        as_whole("timestamp", ask.fields["timestamp"]),
        ask.whole("step") or 0,
        ask.text("model_id") or None,
        ask.text("dataset_name") or None,
        ask.text("dataset_digest") or None,
    )
    with state.store.write() as tx:
        flow.log_batch(tx, caller, run_id, metrics=[point], single=True)
        logged_models.log_metrics(tx, caller, run_id, [point])
    return {}


@api(router, "runs/log-parameter", "POST")
def log_param(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    run_id, param = ask.run_id(), KeyValue(ask.need_text("key"), ask.text("value") or "")
    with state.store.write() as tx:
        flow.log_batch(tx, caller, run_id, params=[param], single=True)
    return {}


@api(router, "runs/log-batch", "POST")
def log_batch(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    if ask.size > MAX_BATCH_BYTES:
        raise invalid(
            f"Batched logging API requests must be at most {MAX_BATCH_BYTES} bytes, got a request of size {ask.size}."
        )
    run_id, points = ask.run_id(), ask.points("metrics")
    params, tags = ask.pairs("params"), ask.pairs("tags")
    with state.store.write() as tx:
        flow.log_batch(tx, caller, run_id, metrics=points, params=params, tags=tags)
        logged_models.log_metrics(tx, caller, run_id, points)
    return {}


tag_routes(
    router,
    "run",
    ("runs/set-tag", "runs/delete-tag"),
    lambda ask: (ask.run_id(),),
    (flow.set_tag, flow.delete_tag),
)


@api(router, "runs/log-model", "POST")
def log_model(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    run_id, model = ask.run_id(), ask.need_text("model_json")
    with state.store.write() as tx:
        flow.log_model(tx, caller, run_id, model)
    return {}


@api(router, "runs/log-inputs", "POST")
def log_inputs(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    run_id = ask.run_id()
    given, models = ask.items("datasets"), ask.items("models")
    if not given and not models:
        raise missing("datasets")
    datasets = [inputs.read_dataset(number, each) for number, each in enumerate(given)]
    inputs.log_inputs(state.lake, caller, run_id, datasets, _uses(models, "input"))
    return {}


@api(router, "runs/outputs", "POST")
def log_outputs(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    run_id, models = ask.run_id(), ask.items("models")
    if not models:
        raise missing("models")
    with state.store.write() as tx:
        flow.log_models(tx, caller, run_id, _uses(models, "output"))
    return {}


def _uses(models: list[Any], role: str) -> list[ModelUse]:
    found = []
    for each in models:
        if not isinstance(each, dict) or not isinstance(each.get("model_id"), str):
            raise invalid("Invalid value for parameter 'models' supplied: each has a model_id")
        found.append(ModelUse(each["model_id"][:40], role, as_whole("step", each.get("step") or 0)))
    return found


@api(router, "runs/search", "POST")
def search_runs(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    most = ask.whole("max_results")
    if most is not None and most > search.MAX_RESULTS:
        raise invalid(
            f"Invalid value {most} for parameter 'max_results' supplied: It must be at most {search.MAX_RESULTS}"
        )
    with state.store.glance() as tx:
        found, token = search.search(
            tx,
            caller,
            ask.texts("experiment_ids"),
            filter_string=ask.text("filter"),
            view=ask.view("run_view_type"),
            max_results=1000 if most is None else most,
            order_by=ask.texts("order_by"),
            page_token=ask.text("page_token"),
        )
    return answers.without_none(
        {"runs": [answers.found_run(each) for each in found] or None, "next_page_token": token}
    )


@api(router, "metrics/get-history", "GET")
def get_history(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    run_id, key = ask.run_id(), ask.need_text("metric_key")
    most, page = ask.whole("max_results"), ask.text("page_token")
    with state.store.read() as tx:
        columns = metrics.history_in_columns(tx, caller, run_id, key, max_results=most, page_token=page)
        if columns is not None:
            return answers.points(key, *columns)
        found, token = metrics.history(tx, caller, run_id, key, max_results=most, page_token=page)
    return answers.without_none(
        {"metrics": [answers.point(key, each) for each in found] or None, "next_page_token": token}
    )


@api(router, "metrics/get-history-bulk", "GET")
def get_history_bulk(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    runs = ask.texts("run_id")
    if not runs:
        raise invalid("GetMetricHistoryBulk request must specify at least one run_id.")
    if len(runs) > MAX_BULK_RUNS:
        raise invalid(
            f"GetMetricHistoryBulk request cannot specify more than {MAX_BULK_RUNS} run_ids. "
            f"Received {len(runs)} run_ids."
        )
    key = ask.text("metric_key")
    if not key:
        raise invalid("GetMetricHistoryBulk request must specify a metric_key.")
    most = ask.whole("max_results")
    most = MAX_BULK_RESULTS if most is None else max(0, min(most, MAX_BULK_RESULTS))
    with state.store.read() as tx:
        found = metrics.of_several(tx, caller, runs, key, most)
    return {"metrics": [{**answers.point(key, each.point), "run_id": each.run_id} for each in found]}


@api(router, "metrics/get-history-bulk-interval", "GET", versions=("2.0", "2.11"))
def get_history_bulk_interval(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    runs = ask.texts("run_ids")
    if not runs:
        raise missing("run_ids")
    if len(runs) > MAX_BULK_RUNS:
        raise invalid(f"GetMetricHistoryBulkInterval request must specify at most {MAX_BULK_RUNS} run_ids.")
    key, most = ask.need_text("metric_key"), ask.whole("max_results")
    if most is not None and not 1 <= most <= MAX_INTERVAL_RESULTS:
        raise invalid(f"max_results must be between 1 and {MAX_INTERVAL_RESULTS}.")
    start, end = ask.whole("start_step"), ask.whole("end_step")
    between: tuple[int, int] | None = None
    if start is not None and end is not None:
        if end < start:
            raise invalid(
                f"end_step must be greater than start_step. Found start_step={start} and end_step={end}."
            )
        between = (start, end)
    elif start is not None or end is not None:
        raise invalid("If either start step or end step are specified, both must be specified.")
    with state.store.read() as tx:
        found = metrics.thinned(
            tx, caller, runs, key, between=between, max_results=most or MAX_INTERVAL_RESULTS
        )
    return {"metrics": [{**answers.point(key, each.point), "run_id": each.run_id} for each in found]}
