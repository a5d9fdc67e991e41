"""Dashboard and alerts ask for measurements that a server exports, and for labels that these have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from easel.flow.first_start import create_platform_admin
from easel.serve.app import create_app
from easel.serve.settings import Settings
from easel.store.engine import Store

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")


def dashboard_queries() -> Iterator[str]:
    for panel in json.loads((MONITORING / "grafana.json").read_text())["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def alert_queries() -> Iterator[str]:
    for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


@pytest.fixture
def exported(sqlite_store: Store, tmp_path: Path) -> dict[str, set[str]]:
    """Names of all samples that a server with some traffic exports, each with its labels."""
    token = create_platform_admin(sqlite_store)
    with TestClient(create_app(Settings(home=tmp_path), sqlite_store)) as http:
        headers = {"Authorization": f"Bearer {token}"}
        http.get("/healthz")
        text = http.get("/metrics", headers=headers).text
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_every_query_names_measurements_and_labels_that_are_exported(exported: dict[str, set[str]]) -> None:
    queries = [*dashboard_queries(), *alert_queries()]
    assert len(queries) > 20
    for query in queries:
        for name, selector in re.findall(r"\b(easel_\w+)(?:\{([^}]*)\})?", query):
            assert name in exported, f"{name} in {query}"
            assert set(LABEL.findall(selector)) <= exported[name], query
        for grouped in re.findall(r"by \(([\w, ]+)\)", query):
            asked = {label.strip() for label in grouped.split(",")}
            names = re.findall(r"\beasel_\w+", query)
            assert any(asked <= exported[name] for name in names), query


def test_what_is_exported_about_the_pool_is_shown_somewhere(exported: dict[str, set[str]]) -> None:
    shown = " ".join([*dashboard_queries(), *alert_queries()])
    parts = ("_created", "_bucket", "_sum", "_count")
    unseen = {name for name in exported if not name.endswith(parts) and name not in shown}
    assert unseen == set()


def test_every_alert_is_explained() -> None:
    guide = (MONITORING.parents[1] / "docs" / "how-to" / "monitor.md").read_text()
    rules = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules if f"`{rule['alert']}`" not in guide] == []
