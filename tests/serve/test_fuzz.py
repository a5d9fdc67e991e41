"""Schemathesis, from our own OpenAPI document: no request makes the server fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from easel.flow.first_start import create_platform_admin
from easel.serve.app import create_app
from easel.serve.settings import Settings
from easel.store.engine import Store

EXAMPLES = int(os.environ.get("EASEL_FUZZ_EXAMPLES", "6"))
"""For each operation, every one of which is tried; `python -m benchmarks.fuzz` is the long form."""


@pytest.fixture
def app(sqlite_store: Store, tmp_path: Path) -> tuple[FastAPI, str]:
    token = create_platform_admin(sqlite_store)
    assert token is not None
    return create_app(Settings(home=tmp_path / "home"), sqlite_store), token


@pytest.mark.timeout(1200)  # every operation of the API, on a machine that may be busy
def test_no_documented_operation_fails_on_generated_requests(app: tuple[FastAPI, str]) -> None:
    application, token = app
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", application)
    found = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    operations = [operation for operation in found if not operation.path.endswith("/stream")]
    assert len(operations) > 15
    headers = {"Authorization": f"Bearer {token}"}
    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ]

    for operation in operations:

        @given(data=st.data())
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def probe(data: st.DataObject) -> None:
            case = data.draw(operation.as_strategy())  # noqa: B023 - called at once
            case.call_and_validate(headers=headers, checks=checks)

        probe()
