"""Small trials for tests and benchmarks of the engine."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from easel.metrics import log_metric, log_progress
from easel.run.trial import TrialContext

__trials__ = ("add", "count", "die", "fill", "meet", "noop", "pry", "raise_error", "resume", "wait")
__together__ = {"meet": "easel.testing.trials:meet_together"}


def noop(context: TrialContext) -> dict[str, Any]:
    return {}


def add(context: TrialContext) -> dict[str, Any]:
    return {"sum": context.arguments["a"] + context.arguments["b"], "read": _input_names(context)}


def count(context: TrialContext) -> dict[str, Any]:
    """Says something at each step: a line, a metric, its progress."""
    steps = int(context.arguments["steps"])
    for step in range(steps):
        print(f"step {step}")  # noqa: T201
        log_metric("loss", 1.0 / (step + 1), step=step)
        log_progress((step + 1) / steps)
    (context.output / "model.txt").write_text("weights")
    return {"score": 0.5, "pid": os.getpid()}


def wait(context: TrialContext) -> dict[str, Any]:
    """Waits until a file appears, so that a test decides how long it takes."""
    while not Path(context.arguments["until"]).exists():
        time.sleep(0.01)
    return {"waited": True}


def meet(context: TrialContext) -> dict[str, Any]:
    """Says how many share its process."""
    return {"together": 1, "pid": os.getpid()}


def meet_together(
    contexts: Sequence[TrialContext], told: Callable[[int, Mapping[str, Any] | BaseException], None]
) -> None:
    """Each does as its argument `how` says: it ends, raises, dies, or waits for a file."""
    print(f"{len(contexts)} met")  # noqa: T201
    waiting = dict(enumerate(contexts))
    while waiting:
        for number, context in list(waiting.items()):
            how, until = context.arguments.get("how", "ends"), context.arguments.get("until")
            if how == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            if until is None or Path(until).exists() or context.was_killed():
                del waiting[number]
                (context.output / "model.txt").write_text(f"weights of {number}")
                result = {"together": len(contexts), "pid": os.getpid()}
                told(number, RuntimeError("the loss is not a number") if how == "raises" else result)
        time.sleep(0.01)


def raise_error(context: TrialContext) -> dict[str, Any]:
    raise RuntimeError(context.arguments.get("says", "the loss is not a number"))


def die(context: TrialContext) -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def fill(context: TrialContext) -> dict[str, Any]:
    """Uses as much memory as told."""
    held = bytearray(int(context.arguments["mb"]) << 20)
    held[::4096] = b"x" * len(held[::4096])
    return {"bytes": len(held)}


def resume(context: TrialContext) -> dict[str, Any]:
    """Dies the first time, and the second time finds what it left."""
    mark = context.checkpoint / "half"
    if not mark.exists():
        mark.write_text("done so far")
        os.kill(os.getpid(), signal.SIGKILL)
    return {"found": mark.read_text()}


def pry(context: TrialContext) -> dict[str, Any]:
    """Tries to get at what is not its own, as a decoder that was taken over would; tells what it could."""
    got: list[str] = []
    for name in context.arguments["files"]:
        with suppress(OSError):
            Path(name).read_bytes()
            got.append(f"read {name}")
    for name in context.arguments["folders"]:
        with suppress(OSError):
            (Path(name) / "left").write_text("here")
            got.append(f"wrote to {name}")
    with suppress(OSError), socket.create_connection(("127.0.0.1", context.arguments["port"]), timeout=5):
        got.append("connected")
    with suppress(OSError):
        os.kill(os.getppid(), 0)
        got.append("signalled another process")
    (context.output / "own").write_text("mine")
    (context.checkpoint / "own").write_text("mine")
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"mine")
    return {"got": got, "read": _input_names(context)}


def _input_names(context: TrialContext) -> list[str]:
    return sorted(path.name for path in context.input.iterdir()) if context.input.is_dir() else []
