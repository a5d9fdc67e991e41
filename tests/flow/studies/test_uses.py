"""A study refuses a command that does not use what it varies."""

from __future__ import annotations

from pathlib import Path

import pytest

from easel.errors import InvalidInput
from easel.flow.studies.point import fill
from easel.flow.studies.uses import check_uses, is_word_in
from easel.lake.blobs.local import LocalBlobs
from easel.lake.blobs.store import Incoming
from easel.lake.digest import digest_of
from easel.records.job import StoredFile
from easel.wire.study import study_fields

STUDY = """
name: slip
job:
  command: {command}
  {more}
space:
  - {{name: x, type: float, low: 0, high: 1}}
  - {{name: y, type: float, low: 0, high: 1}}
  - {{name: vcpu, type: ordinal, values: [0.5, 1], role: resource}}
goal: {{minimise: loss, budget: {{count: 3}}}}
"""


def check(command: str, more: str = "output_folder: output") -> None:
    check_uses(study_fields(STUDY.format(command=command, more=more)).spec())


def test_a_placeholder_that_names_no_dimension_is_refused_with_the_likely_one() -> None:
    with pytest.raises(InvalidInput, match=r"\{yy\}.*did you mean \{y\}"):
        check("python f.py {x} {yy}")


def test_a_dimension_that_the_command_does_not_take_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nothing uses the dimension 'y'"):
        check("python f.py {x}")
    with pytest.raises(InvalidInput, match="nothing uses the dimension"):
        check("python f.py")


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("python f.py {x} --y={y}", "output_folder: output"),
        ("python f.py", "code: trainer"),
        ("sh -c 'python f.py $EASEL_POINT'", "output_folder: output"),
        ("sh -c 'echo ${HOME} {x} {y} {{print}}'", "output_folder: output"),
    ],
)
def test_what_uses_the_space_is_accepted(command: str, more: str) -> None:
    check(command, more)


def test_doubled_braces_stand_for_themselves() -> None:
    assert fill(("awk", "{{print}} {x}", "${HOME}"), {"x"}, {"x": 1}) == ("awk", "{print} 1", "${HOME}")


def test_code_must_name_the_variable_where_the_command_takes_no_value() -> None:
    spec = study_fields(STUDY.format(command="python f.py", more="code: trainer")).spec()
    check_uses(spec, lambda word: word == "EASEL_POINT")
    with pytest.raises(InvalidInput, match="nothing uses the dimension 'x'"):
        check_uses(spec, lambda _word: False)


def test_code_is_looked_through_for_the_variable(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path)

    def stored(path: str, body: bytes) -> StoredFile:
        digest = digest_of(body)
        stage = blobs.begin(f"stage-{digest.hex()[:8]}", len(body))
        blobs.put_part(stage, 1, [body])
        blobs.check(stage, Incoming(digest, len(body)))
        blobs.promote(stage, digest)
        return StoredFile(path, digest.hex(), len(body), digest.hex(), 0)

    silent = stored("/train.py", b"print(1)")
    reading = stored("/parts/read.py", b"import os\nos.environ['EASEL_POINT']")
    assert is_word_in("EASEL_POINT", [silent, reading], blobs)
    assert not is_word_in("EASEL_POINT", [silent], blobs)
    assert is_word_in("EASEL_POINT", [silent, stored("/code.zip", b"PK")], blobs)
