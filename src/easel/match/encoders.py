"""Which encoder a candidate's inputs and outputs get: by the kind of the program, or the family's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from easel.declare.program import Program
from easel.match.candidate import Candidate
from easel.match.encode.bits import fit_bits
from easel.match.encode.images import fit_pictures, looks_at
from easel.match.encode.series import fit_series, fit_trees
from easel.match.encode.tables import fit_table
from easel.match.encode.texts import fit_texts
from easel.match.examples import Object
from easel.match.kinds import Task, TemplateKind
from easel.match.registry import family_of
from easel.match.templates import match_program

NO_VECTORS: Mapping[str, Sequence[float]] = {}


def fit_source(
    candidate: Candidate,
    program: Program,
    inputs: Sequence[Object],
    vectors: Mapping[str, Sequence[float]] = NO_VECTORS,
) -> Any:
    """The encoder of a candidate's inputs; None where its estimator reads texts itself."""
    own = family_of(candidate).encode
    if own is not None:
        return own(candidate, program, inputs)
    norm = candidate.text("norm", "standard")
    match match_program(program).kind:
        case TemplateKind.IMAGE:
            return fit_pictures(inputs, norm, looks_at(candidate))
        case TemplateKind.SERIES:
            return fit_series(program.input, inputs, norm)
        case TemplateKind.TREE:
            return fit_trees(program.input, inputs, norm)
        case TemplateKind.TEXT:
            return fit_texts(inputs, vectors)
        case TemplateKind.TABLE | TemplateKind.MULTI_OUTPUT:
            return fit_table(program.input, inputs)
        case TemplateKind.GENERAL:
            return fit_bits(program.input, inputs)


def fit_target(program: Program, outputs: Sequence[Object]) -> Any:
    """The encoder of outputs that are neither classes nor numbers."""
    match match_program(program).task:
        case Task.RECOVER:
            return fit_pictures(outputs, "standard")
        case Task.TRANSLATE:
            return fit_series(program.output, outputs, "standard")
        case _:
            return fit_bits(program.output, outputs)
