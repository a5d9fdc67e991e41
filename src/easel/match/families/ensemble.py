"""The ensemble of what was tried for an app. It is never proposed: it is made when there is something to combine."""

from __future__ import annotations

from easel.match.family import EnsembleFamily, Plan

FAMILIES = (
    EnsembleFamily(
        name="ensemble",
        fits=frozenset(),
        plan=lambda situation: Plan(0.9),
        cost=lambda candidate, summary: 2.0 + 1e-4 * summary.examples,
        no_onnx="an ensemble is exported with all its members (--form native), not as one ONNX graph",
    ),
)
