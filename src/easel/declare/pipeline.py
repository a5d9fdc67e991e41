"""Steps that depend on one another."""

from __future__ import annotations

from dataclasses import dataclass

from easel.declare.job import JobSpec


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One job of a pipeline. It starts when all that it `needs` finished; an input `step:NAME` needs NAME too."""

    name: str
    job: JobSpec
    needs: tuple[str, ...] = ()
