"""A Ray cluster as an engine: each worker is a detached actor with the CPUs, memory and GPUs of what it runs."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from easel.declare.resources import Room
from easel.errors import TryLater
from easel.records.worker import Placement
from easel.run.depots import TOKEN
from easel.run.executors.engine import PlacementState, WorkerPlan, command

PATIENCE_S = 120.0


class RayEngine:
    """`address` is host:port of the head, or empty to start a cluster on this machine for a try-out.

    `variables` are for the process that talks to Ray: where its token is (RAY_AUTH_TOKEN_PATH).
    """

    name = "ray"

    def __init__(self, address: str, log: Path, variables: Mapping[str, str] | None = None) -> None:
        self._address, self._log, self._variables = address, log, dict(variables or {})
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._lock = threading.Lock()

    def place(self, placement: Placement, plan: WorkerPlan) -> str:
        asked = placement.resources
        home = f"/tmp/easel-{placement.name}"  # noqa: S108 - on whichever machine Ray chooses
        words = [
            command(placement, plan, member, f"{home}-{member}", "python")
            for member in range(placement.count)
        ]
        size = {"vcpu": asked.vcpu, "memory_mb": asked.memory_mb, "gpus": asked.gpus}
        variables = {**plan.variables, TOKEN: plan.token}
        made = self._ask(op="place", name=placement.name, words=words, variables=variables, asked=size)
        return str(made)

    def standings(self) -> Mapping[str, PlacementState]:
        return dict.fromkeys(self._ask(op="list"), PlacementState.WAITING)

    def why(self, placement: Placement) -> str:
        return "its Ray actor is gone: the worker ended, was killed, or its node was lost"

    def cancel(self, placement: Placement) -> None:
        self._ask(op="cancel", name=placement.name)

    def capacity(self) -> Sequence[Room]:
        return [
            Room(vcpu, int(memory_mb), (1.0,) * int(gpus))
            for vcpu, memory_mb, gpus in self._ask(op="capacity")
        ]

    def close(self) -> None:
        with self._lock:
            self._end()

    # The process that talks to Ray. ---------------------------------------------------------------------------

    def _ask(self, **message: Any) -> Any:
        with self._lock:
            self._ensure()
            assert self._process is not None
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(json.dumps(message) + "\n")
                self._process.stdin.flush()
            except OSError as error:
                self._end()
                raise TryLater(f"the connection to Ray is gone: {error}") from error
            answer = self._answer()
            if "error" in answer and self._address:
                self._end()  # after a restart of the head only a new connection is let in
        if "error" in answer:
            raise TryLater(f"Ray says {answer['error']}")
        return answer["ok"]

    def _answer(self) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=PATIENCE_S)
        except queue.Empty:
            line = None
        if line is None:
            self._end()
            raise TryLater(f"Ray at {self._address or 'this machine'} does not answer: see {self._log}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ensure(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self._end()
        source = str(Path(__file__).resolve().parents[3])
        path = os.pathsep.join(part for part in (source, os.environ.get("PYTHONPATH", "")) if part)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "easel.run.executors.ray_driver", self._address, f"{self.name}-"],
                env={**os.environ, **self._variables, "PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._answers = queue.Queue()
        threading.Thread(
            target=_read, args=(self._process, self._answers), name="ray-answers", daemon=True
        ).start()
        self._answer()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            with contextlib.suppress(OSError):
                if process.stdin:
                    process.stdin.close()


def _read(process: subprocess.Popen[str], answers: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    with contextlib.suppress(ValueError), process.stdout as lines:
        for line in lines:
            answers.put(line)
    answers.put(None)
