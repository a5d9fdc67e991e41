"""The process that talks to Ray: commands as lines of JSON on standard input, answers on standard output.

A process of its own, because Ray ends its driver when the head is away for long, and because its threads and signal
handlers are no business of a controller. Workers live in detached actors, so they outlive this process.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from typing import Any, TextIO

import ray
from ray.util.placement_group import (
    PlacementGroup,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

NAMESPACE = "easel"


class Host:
    """One worker on a machine of the cluster. When it ends, so does the actor, and what Ray gave it is free."""

    def __init__(self, words: list[str], variables: dict[str, str]) -> None:
        cards = ",".join(str(each) for each in ray.get_gpu_ids())
        program = [sys.executable if words[0] == "python" else words[0], *words[1:]]
        self.process = subprocess.Popen(  # noqa: S603
            program,
            env={**os.environ, **variables, "EASEL_GPU_IDS": cards},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        self.process.wait()
        os._exit(0)


class Driver:
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._host = ray.remote(max_restarts=0, max_task_retries=0)(Host)

    def place(
        self, name: str, words: list[list[str]], variables: dict[str, str], asked: dict[str, float]
    ) -> str:
        """One actor for each command line; more than one are placed as a group, on as many machines as there are."""
        common = {
            "num_cpus": asked["vcpu"],
            "num_gpus": asked["gpus"],
            "memory": int(asked["memory_mb"]) << 20,
            "lifetime": "detached",
            "namespace": NAMESPACE,
        }
        group = self._group(name, len(words), asked) if len(words) > 1 else None
        for member, line in enumerate(words):
            options: dict[str, Any] = {**common, "name": _actor(name, member)}
            if group is not None:
                options["scheduling_strategy"] = PlacementGroupSchedulingStrategy(group, member)
            with contextlib.suppress(ValueError):  # asked for twice: the first one counts
                self._host.options(**options).remote(line, variables)
        return name

    def _group(self, name: str, count: int, asked: dict[str, float]) -> PlacementGroup:
        bundle = {"CPU": asked["vcpu"], "memory": int(asked["memory_mb"]) << 20}
        if asked["gpus"]:
            bundle["GPU"] = asked["gpus"]
        made: PlacementGroup = placement_group(
            [bundle] * count, strategy="SPREAD", name=name, lifetime="detached"
        )
        return made

    def names(self) -> list[str]:
        """The placements with a living or waiting actor; groups of which none is left are given back."""
        alive = placements_of(ray.util.list_named_actors(), self._prefix)
        tables = placement_group_table().values()
        groups = {each["name"] for each in tables if each["state"] not in ("REMOVED",) and each["name"]}
        for group in groups - alive:
            if group.startswith(self._prefix):
                self._remove_group(group)
        return sorted(alive)

    def cancel(self, name: str) -> None:
        for actor in ray.util.list_named_actors():
            if actor.startswith(self._prefix) and placements_of([actor], self._prefix) == {name}:
                with contextlib.suppress(ValueError):
                    ray.kill(ray.get_actor(actor, namespace=NAMESPACE))
        self._remove_group(name)

    def _remove_group(self, name: str) -> None:
        with contextlib.suppress(ValueError):
            remove_placement_group(ray.util.get_placement_group(name))

    def capacity(self) -> list[list[float]]:
        nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        found = [node["Resources"] for node in nodes if node["Alive"]]
        return [
            [each.get("CPU", 0.0), each.get("memory", 0.0) / 2**20, each.get("GPU", 0.0)] for each in found
        ]

    def answer(self, message: dict[str, Any]) -> Any:
        match message:
            case {"op": "place", **more}:
                return self.place(**more)
            case {"op": "list"}:
                return self.names()
            case {"op": "cancel", "name": name}:
                return self.cancel(name)
            case {"op": "capacity"}:
                return self.capacity()
        raise ValueError(f"nobody knows {message!r}")


def _actor(placement: str, member: int) -> str:
    return f"{placement}-{member}" if member else placement


def placements_of(actors: Iterable[str], prefix: str) -> set[str]:
    """Returns the placements of these members; one whose first member has ended lives as long as another does."""
    found = (each.removeprefix(prefix).partition("-")[0] for each in actors if each.startswith(prefix))
    return {f"{prefix}{name}" for name in found}


def main(address: str, prefix: str, answers: TextIO) -> None:
    where: dict[str, Any] = {"address": address} if address else {"include_dashboard": False}
    ray.init(**where, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    driver = Driver(prefix)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            result: dict[str, Any] = {"ok": driver.answer(json.loads(line))}
        except Exception as error:  # noqa: BLE001 - whatever Ray raises is told, not died of
            result = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # whatever Ray prints must not come between our answers
        main(sys.argv[1], sys.argv[2], out)
