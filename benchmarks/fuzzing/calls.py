"""Calls of a server: of its own document, and of the routes that are in none."""

from __future__ import annotations

import json
import re
from typing import Any

from fastapi.testclient import TestClient

from benchmarks.fuzzing.texts import FILTERS
from benchmarks.fuzzing.values import NUMBERS, Fuzz


def requests(fuzz: Fuzz, http: TestClient, document: dict[str, Any], token: str) -> None:
    """One call of the API."""
    rng = fuzz.rng
    template, operations = rng.choice(list(document["paths"].items()))
    method, operation = rng.choice(list(operations.items()))
    if "stream" in template or template.startswith("/blobs"):
        return
    path, query = template, {}
    for parameter in operation.get("parameters", ()):
        given = fuzz.fitting(parameter.get("schema", {}), document)
        if parameter["in"] == "path":
            chosen = "astro" if parameter["name"] == "project" and rng.random() < 0.9 else str(given)
            path = re.sub(r"{" + parameter["name"] + r"(:path)?}", lambda _: _quoted(chosen), path)  # noqa: B023
        elif parameter["in"] == "query" and rng.random() < 0.4:
            query[parameter["name"]] = str(given).encode("utf-8", "replace").decode()
    body = operation.get("requestBody", {}).get("content", {})
    content, headers = None, {"Authorization": f"Bearer {token}"}
    if body:
        kind, about = next(iter(body.items()))
        headers["Content-Type"] = kind
        content = json.dumps(fuzz.fitting(about.get("schema", {}), document)).encode("utf-8", "replace")
        if rng.random() < 0.05:
            content = content[: rng.randrange(len(content) + 1)]
    what = f"{method.upper()} {path} {query} {content!r}"

    def call() -> None:
        answer = http.request(method, path, params=query, content=content, headers=headers)
        fuzz.calls[f"status {answer.status_code // 100}xx"] += 1
        if answer.status_code >= 500 and answer.status_code != 503:
            fuzz.find(f"{answer.status_code}: {what[:400]} → {answer.text[:200]}")
        if template.endswith("/cordon"):  # a server that takes no work would be asked for little
            http.delete(path, headers=headers)
        if answer.status_code < 300 and len(fuzz.ids) < 500:
            fuzz.ids += re.findall(r'"(?:id|name)":\s*"([^"]{1,60})"', answer.text)[:5]

    fuzz.note("request", what, call)


TOLD = [
    "name",
    "model_id",
    "max_results",
    "version",
    "experiment_id",
    "experiment_ids",
    "page_token",
    "step",
    "path",
    "filter",
    "filter_string",
    "description",
    "timestamp",
    "run_id",
    "run_uuid",
    "run_ids",
    "run_name",
    "order_by",
    "key",
    "value",
    "tags",
    "metric_key",
    "metrics",
    "params",
    "alias",
    "upload_id",
    "status",
    "start_time",
    "end_time",
    "source",
    "new_name",
    "lifecycle_stage",
    "view_type",
    "run_view_type",
    "artifact_location",
    "stages",
    "stage",
    "datasets",
    "dataset_name",
    "dataset_digest",
    "start_step",
    "end_step",
    "num_parts",
    "model_type",
    "model_json",
    "archive_existing_versions",
    "inputs",
    "models",
]
"""Names of fields that clients of MLflow send."""


def undocumented(fuzz: Fuzz, http: TestClient, routes: list[Any], token: str) -> None:
    """One call of a route that is not in our document: nearly all are MLflow's own API."""
    rng = fuzz.rng
    route = rng.choice(routes)
    method = rng.choice(sorted(route.methods))
    path = route.path.replace("{project}", "astro")
    path = re.sub(r"{[^}]*}", lambda _: _quoted(str(fuzz.text())), path)

    def told() -> Any:
        pair = {"key": fuzz.text(), "value": fuzz.text()}
        point = {
            **pair,
            "value": rng.choice(NUMBERS),
            "timestamp": rng.randrange(10**12),
            "step": rng.randrange(9),
        }
        simple = [rng.choice(fuzz.ids), rng.choice(["0", 1, "1"]), fuzz.broken(rng.choice(FILTERS))]
        return rng.choice([*simple, [pair], [point], [rng.choice(fuzz.ids)], fuzz.value()])

    fields = {name: told() for name in rng.sample(TOLD, rng.randrange(9))}
    headers = {"Authorization": f"Bearer {token}"}
    asked = {name: str(value).encode("utf-8", "replace").decode() for name, value in fields.items()}
    looks = method in ("GET", "HEAD")
    content = b"" if looks else json.dumps(fields).encode("utf-8", "replace")
    params = asked if looks else {}
    what = f"{method} {path} {params} {content!r}"

    def call() -> None:
        answer = http.request(method, path, params=params, content=content, headers=headers)
        fuzz.calls[f"status {answer.status_code // 100}xx"] += 1
        if answer.status_code >= 500 and answer.status_code != 503:
            fuzz.find(f"{answer.status_code}: {what[:400]} → {answer.text[:200]}")
        if answer.status_code < 300 and len(fuzz.ids) < 500:
            fuzz.ids += re.findall(r'"(?:\w*id|name)":\s*"([^"]{1,60})"', answer.text)[:5]

    fuzz.note("request of MLflow and of pages", what, call)


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text.encode("utf-8", "replace"), safe="") or "x"
