"""Routes about the server itself, and answers to what Easel leaves out, so that clients go on."""

from __future__ import annotations

from typing import Any

from fastapi import Response
from fastapi.responses import PlainTextResponse

from easel.records.identity import Caller
from easel.serve.mlflow.access import Tracker
from easel.serve.mlflow.asked import AskedFields
from easel.serve.mlflow.routing import api, new_router
from easel.serve.state import AppState

router = new_router()
Json = dict[str, Any]
SPOKEN = "3.1.0"
"""The release of MLflow whose API this is, as far as `/version` tells clients."""


@api(router, "server-info", "GET", versions=("3.0", "2.0"))
def server_info(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    """What newer clients ask before they send large files: plain uploads are best here."""
    return {
        "store_type": "SqlStore",
        "workspaces_enabled": False,
        "trace_archival_enabled": False,
        "multipart_uploads_enabled": False,
        "multipart_downloads_enabled": False,
        "presigned_upload_run_id_supported": False,
        "presigned_upload_model_id_supported": False,
        "features_enabled": {"gateway": False},
    }


@router.get("/health", name="mlflow_health")
def health(caller: Tracker) -> Response:
    return PlainTextResponse("OK")


@router.get("/version", name="mlflow_version")
def version(caller: Tracker) -> Response:
    return PlainTextResponse(SPOKEN)


# Traces are not kept. Clients send them in the background and must neither wait nor fail for it. -----------------


@api(router, "traces/search", "POST", versions=("2.0", "3.0"))
def search_traces(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    return {"traces": []}


@api(router, "traces", "GET")
def list_traces(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    return {"traces": []}


@api(router, "traces", "POST", versions=("3.0",))
def start_trace(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    """Echoed, not kept."""
    given = ask.fields.get("trace")
    return {"trace": given if isinstance(given, dict) else {}}


@api(router, "traces/delete-traces", "POST", versions=("2.0", "3.0"))
def delete_traces(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    return {"traces_deleted": 0}


@api(router, "webhooks", "GET")
def list_webhooks(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    """There are none: Easel tells of changes by its own event stream."""
    return {"webhooks": []}


@router.post("/v1/traces", name="mlflow_otlp_traces")
def otlp(caller: Tracker) -> Response:
    """OpenTelemetry's own protocol: taken and dropped."""
    return Response(b"", media_type="application/x-protobuf")
