"""Structured logs: one JSON object a line, with the request's id; never a query string or a header.

Lines are written by a thread of their own: a write on the event loop would wait for the disk, and then again for
the interpreter, once a request.
"""

from __future__ import annotations

import atexit
import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue

REQUESTS = "easel.request"
"""The logger that writes one line a request."""
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (current := getattr(record, "request_id", None)) is not None:
            line["request_id"] = current
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _Handover(QueueHandler):
    """Notes whose request it is, which only the thread that logs knows."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        record.request_id = request_id.get()
        return record


def configure(level: str, requests: str = "auto") -> None:
    """Log to standard error from now on. What is logged before the program ends is written before it ends.

    `requests` says whether each request is a line: `yes`, `no`, or `auto`, which is unless a person looks at it.
    """
    wanted = requests == "yes" or (requests == "auto" and not sys.stderr.isatty())
    logging.getLogger(REQUESTS).setLevel(logging.NOTSET if wanted else logging.WARNING)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    lines: SimpleQueue[logging.LogRecord] = SimpleQueue()
    writer = QueueListener(lines, handler)
    writer.start()
    atexit.register(writer.stop)
    root = logging.getLogger()
    root.handlers[:] = [_Handover(lines)]
    root.setLevel(level.upper())
    for noisy in ("uvicorn.access", "httpx", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    for own in ("uvicorn", "uvicorn.error"):
        logging.getLogger(own).handlers.clear()
        logging.getLogger(own).propagate = True
