"""What a job may say about itself while it runs: `easel.log_metric("loss", 0.1, step=3)`.

A line on standard output, which the platform reads; outside of a job it is just a line.
"""

from __future__ import annotations

import re

from easel.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z_][\w./-]{0,99}")


def log_metric(name: str, value: float, step: int | None = None) -> None:
    """One point of the series `name`; without a step it is the next one."""
    if not _NAME.fullmatch(name) or name == "step":
        raise InvalidInput(f"{name!r} is not a valid name for a metric: letters, digits, '_', '.', '/', '-'")
    at = "" if step is None else f" step={int(step)}"
    print(f"[EASEL_METRIC] {name}={float(value)!r}{at}", flush=True)  # noqa: T201


def log_progress(fraction: float) -> None:
    """How much is done, from 0 to 1."""
    print(f"[EASEL_PROGRESS] {float(fraction)!r}", flush=True)  # noqa: T201


def log_tag(key: str, value: str | float, of: str = "job") -> None:
    """Tag the job (`of="job"`) or its output (`of="fileset"`)."""
    kind = "TAG" if isinstance(value, str) else "TAG_NUM"
    print(f"[EASEL_{kind}] {of} {key}:{value}", flush=True)  # noqa: T201
