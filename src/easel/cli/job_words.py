"""What `easel jobs show` tells about a job, in the words and units of people."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from easel.declare.resources import memory_told, room_told

if TYPE_CHECKING:
    from easel.wire import job as wire


def facts_of(job: wire.Job) -> list[tuple[str, Any]]:
    """Returns what is known of the job, without what is not there; `--json` has everything."""
    spec: dict[str, Any] = job.spec
    origin, environment = spec.get("origin") or {}, spec.get("environment") or {}
    facts: list[tuple[str, Any]] = [
        ("job", job.id),
        ("name", job.name),
        ("state", f"{job.state}: {job.reason}" if job.reason else job.state),
        ("last line", job.last_line),
        ("waits", job.waiting),
        ("progress", None if job.over or not job.progress else f"{job.progress:.0%}".replace("%", " %")),
        ("command", command_of(spec["run"])),
        ("by", job.user),
        ("device", job.device),
        ("attempt", job.attempt if job.attempt > 1 else None),
        ("asks for", _asked(spec["resources"], spec.get("workers") or 1)),
        ("used", _used(job)),
        ("code", job.code_set),
        ("commit", _commit(origin)),
        ("input", job.input_set),
        ("output", job.output_set),
        ("python", environment.get("python")),
        ("image", environment.get("image")),
        ("packages", environment.get("requirements")),
        ("variables", environment.get("variables")),
        ("rerun of", job.parent_id),
        ("pipeline", job.pipeline_id),
        ("submitted", job.submitted_at),
        ("started", job.started_at),
        ("ended", job.ended_at),
    ]
    return [(name, value) for name, value in facts if value not in (None, "", {}, [])]


def command_of(run: dict[str, Any]) -> str:
    """Returns what runs as one would type it: a command, `module:function` or a notebook with its arguments."""
    if run["kind"] == "command":
        return shlex.join(run["argv"])
    given = run.get("arguments") or run.get("parameters") or {}
    values = " ".join(f"{name}={value}" for name, value in given.items())
    return f"{run.get('target') or run.get('path')} {values}".strip()


def _asked(resources: dict[str, Any], workers: int) -> str:
    told = room_told(resources["vcpu"], resources["memory_mb"], resources.get("gpus", 0))
    return told + (f" on each of {workers} devices" if workers > 1 else "")


def _used(job: wire.Job) -> str | None:
    used = job.usage
    if used is None:
        return None
    memory = f", at most {memory_told(used.peak_memory_mb)}" if used.peak_memory_mb else ""
    return f"{used.wall_seconds:.1f} s, {used.cpu_seconds:.1f} s of processor{memory}"


def _commit(origin: dict[str, Any]) -> str | None:
    if not origin.get("commit"):
        return None
    branch = f" on {origin['branch']}" if origin.get("branch") else ""
    return f"{origin['commit'][:12]}{branch}" + (" with changes" if origin.get("changed") else "")
