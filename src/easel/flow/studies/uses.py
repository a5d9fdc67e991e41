"""Whether a study's command uses what the study varies: a slip there costs the whole budget."""

from __future__ import annotations

import difflib

from easel.declare.job import Command
from easel.declare.study import PROVISIONED, StudySpec
from easel.errors import InvalidInput
from easel.flow.studies.point import placeholders

POINT_VARIABLE = "EASEL_POINT"


def check_uses(spec: StudySpec) -> None:
    """InvalidInput where the command names no dimension of the space, or a dimension is not in the command.

    A command without any placeholder may read EASEL_POINT: in its own text, or in the code that goes along. Functions
    get every value as an argument.
    """
    if not isinstance(spec.job.run, Command):
        return
    dimensions = {dimension.name: dimension for dimension in spec.space.dimensions}
    named = {name for part in spec.job.run.argv for name in placeholders(part)}
    for name in sorted(named - dimensions.keys()):
        close = difflib.get_close_matches(name, dimensions, 1)
        meant = f"did you mean {{{close[0]}}}? " if close else ""
        raise InvalidInput(
            f"the command names {{{name}}}, which is no dimension of the space: {meant}The space has "
            f"{', '.join(sorted(dimensions))}; for the braces themselves write {{{{{name}}}}}"
        )
    read_by_program = POINT_VARIABLE in " ".join(spec.job.run.argv) or spec.job.code is not None
    if not named and read_by_program:
        return
    share = spec.share.name if spec.share else None
    for name, dimension in dimensions.items():
        given = name in PROVISIONED or name == share or name in named
        if not given and len(dimension.levels(2)) > 1:
            raise InvalidInput(
                f"nothing uses the dimension {name!r}: write {{{name}}} where the command takes it, or take it out of "
                f"the space. (A command without placeholders may read all values from {POINT_VARIABLE}.)"
            )
