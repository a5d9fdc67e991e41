"""Whether a study's command uses what the study varies: a slip there costs the whole budget."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from easel.declare.job import Command
from easel.declare.study import PROVISIONED, StudySpec
from easel.errors import InvalidInput
from easel.flow.studies.point import placeholders
from easel.lake.blobs.store import BlobStore
from easel.lake.digest import Digest
from easel.records.job import StoredFile

POINT_VARIABLE = "EASEL_POINT"
MOST_BYTES = 5 << 20
ARCHIVES = (".zip", ".whl", ".gz", ".tar", ".pyc", ".so", ".jar")


def check_uses(spec: StudySpec, in_code: Callable[[str], bool] = lambda _word: True) -> None:
    """InvalidInput where the command names no dimension of the space, or a dimension is not in the command.

    A command without any placeholder may read EASEL_POINT: in its own text, or in the code that goes along, of which
    `in_code` says whether a word is in it. Functions get every value as an argument.
    """
    if not isinstance(spec.job.run, Command):
        return
    dimensions = {dimension.name: dimension for dimension in spec.space.dimensions}
    named = {name for part in spec.job.run.argv for name in placeholders(part)}
    for name in sorted(named - dimensions.keys()):
        close = difflib.get_close_matches(name, dimensions, 1)
        meant = f": did you mean {{{close[0]}}}?" if close else "."
        raise InvalidInput(
            f"the command names {{{name}}}, which is no dimension of the space{meant} The space has "
            f"{', '.join(sorted(dimensions))}; for the braces themselves write {{{{{name}}}}}"
        )
    if not named and POINT_VARIABLE in " ".join(spec.job.run.argv):
        return
    if not named and spec.job.code is not None and in_code(POINT_VARIABLE):
        return
    share = spec.share.name if spec.share else None
    for name, dimension in dimensions.items():
        given = name in PROVISIONED or name == share or name in named
        if not given and len(dimension.levels(2)) > 1:
            raise InvalidInput(
                f"nothing uses the dimension {name!r}: write {{{name}}} where the command takes it, or take it out of "
                f"the space. (A command without placeholders may read all values from {POINT_VARIABLE}.)"
            )


def is_word_in(word: str, files: Sequence[StoredFile], blobs: BlobStore) -> bool:
    """Whether code holds a word, or might: in an archive, or where there is too much to look through."""
    if sum(file.size for file in files) > MOST_BYTES or any(file.path.endswith(ARCHIVES) for file in files):
        return True
    sought = word.encode()
    return any(
        sought in b"".join(blobs.read(Digest(bytes.fromhex(file.object)), file.offset, file.size))
        for file in files
    )
