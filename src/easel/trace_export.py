"""Sends spans through OpenTelemetry's SDK, as OTLP in JSON: to a collector by HTTP, or as lines of a file."""

from __future__ import annotations

import json
import logging
import os
import threading
import urllib.request
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from easel.traces import JobSpan
from easel.version import __version__

log = logging.getLogger("easel.traces")
TIMEOUT_S = 1.0
EVERY_MS = 1000


class _GivenIds(IdGenerator):
    """Hands out the ids that were set just before; the recorder sets them under its lock."""

    def __init__(self) -> None:
        self.trace = self.span = 1

    def generate_span_id(self) -> int:
        return self.span

    def generate_trace_id(self) -> int:
        return self.trace


class Recorder:
    """One a process; each service has a provider of its own, for its name belongs to the resource."""

    def __init__(self, target: str) -> None:
        self._exporter = _exporter(target)
        self._ids = _GivenIds()
        self._lock = threading.Lock()
        self._providers: dict[str, TracerProvider] = {}

    def add(self, span: JobSpan) -> None:
        with self._lock:
            self._add(span)

    def _add(self, span: JobSpan) -> None:
        self._ids.trace, self._ids.span = span.trace, span.id
        context = None
        if span.parent is not None:
            above = SpanContext(span.trace, span.parent, is_remote=True, trace_flags=TraceFlags(1))
            context = set_span_in_context(NonRecordingSpan(above))
        tracer = self._provider(span.service).get_tracer("easel", __version__)
        made = tracer.start_span(
            span.name, context, SpanKind.INTERNAL, dict(span.attributes), start_time=_ns(span.began)
        )
        if span.error is not None:
            made.set_status(Status(StatusCode.ERROR, span.error[:500]))
        made.end(_ns(span.ended))

    def flush(self) -> None:
        for provider in self._providers.values():
            provider.force_flush(int(TIMEOUT_S * 1000))

    def _provider(self, service: str) -> TracerProvider:
        if service not in self._providers:
            resource = Resource({"service.name": service, "service.version": __version__})
            made = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=True)
            made.add_span_processor(BatchSpanProcessor(self._exporter, schedule_delay_millis=EVERY_MS))
            self._providers[service] = made
        return self._providers[service]


def _exporter(target: str) -> SpanExporter:
    if target.startswith("file://"):
        return FileExporter(Path(unquote(urlsplit(target).path)))
    return HttpExporter(target)


class FileExporter(SpanExporter):
    """Appends a line for each batch, in one write: many processes may share the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(descriptor, otlp(spans) + b"\n")
            finally:
                os.close(descriptor)
        except OSError as error:
            log.warning("traces cannot be written to %s: %s", self._path, error)
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS


class HttpExporter(SpanExporter):
    """OTLP/HTTP with JSON; `OTEL_EXPORTER_OTLP_HEADERS` holds headers that the collector wants."""

    def __init__(self, address: str) -> None:
        base = address.rstrip("/")
        self._url = base if base.endswith("/v1/traces") else f"{base}/v1/traces"
        given = os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")
        pairs = (each.partition("=") for each in given.split(",") if "=" in each)
        self._headers = {key.strip(): unquote(value.strip()) for key, _, value in pairs}

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        headers = {"Content-Type": "application/json", **self._headers}
        request = urllib.request.Request(self._url, otlp(spans), headers)  # noqa: S310 - an admin's setting
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S):  # noqa: S310
                return SpanExportResult.SUCCESS
        except OSError as error:
            log.warning("traces cannot be sent: %s", error)
            return SpanExportResult.FAILURE


def otlp(spans: Sequence[ReadableSpan]) -> bytes:
    """Returns spans as an OTLP request in JSON, grouped by service."""
    by_service: dict[str, list[dict[str, Any]]] = {}
    for span in spans:
        service = str(span.resource.attributes.get("service.name", "easel"))
        by_service.setdefault(service, []).append(_plain(span))
    groups = [
        {
            "resource": {
                "attributes": _attributes({"service.name": service, "service.version": __version__})
            },
            "scopeSpans": [{"scope": {"name": "easel", "version": __version__}, "spans": found}],
        }
        for service, found in by_service.items()
    ]
    return json.dumps({"resourceSpans": groups}).encode()


def _plain(span: ReadableSpan) -> dict[str, Any]:
    context = span.get_span_context()
    assert context is not None
    status: dict[str, Any] = {}
    if span.status.status_code is StatusCode.ERROR:
        status = {"code": 2, "message": span.status.description or ""}
    made: dict[str, Any] = {
        "traceId": f"{context.trace_id:032x}",
        "spanId": f"{context.span_id:016x}",
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": _attributes(dict(span.attributes or {})),
        "status": status,
    }
    return made if span.parent is None else {**made, "parentSpanId": f"{span.parent.span_id:016x}"}


def _attributes(given: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in given.items()]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case _:
            return {"stringValue": str(value)}


def _ns(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000
