"""The public faces: what `easel`, `easel.study` and `easel.testing` offer, and how a name is retired."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from easel.deprecation import deprecated

ROOT = Path(__file__).parents[1]
FACES = ("easel", "easel.study", "easel.testing")


@pytest.mark.parametrize("face", FACES)
def test_every_public_name_is_there(face: str) -> None:
    module = import_module(face)
    assert sorted(module.__all__) == list(module.__all__)
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    for face in FACES:
        with pytest.raises(AttributeError, match="nothing_of_the_kind"):
            _ = import_module(face).nothing_of_the_kind


def test_tutorials_and_how_tos_import_public_names_only() -> None:
    pages = [path for folder in ("tutorial", "how-to") for path in (ROOT / "docs" / folder).rglob("*")]
    deep = {}
    for page in [path for path in pages if path.suffix in (".md", ".py", ".ipynb")]:
        named = re.findall(r"(?:from|import) (easel[\w.]*)", page.read_text())
        found = [name for name in named if name not in FACES]
        if found and page.name != "trials.md":  # written for those who extend Easel itself
            deep[page.name] = found
    assert deep == {}


def test_a_deprecated_function_still_works_and_says_what_to_use() -> None:
    @deprecated("`new_way`", gone_in="0.3")
    def old_way(x: int) -> int:
        """Returns one more."""
        return x + 1

    with pytest.warns(DeprecationWarning, match="gone in 0.3: use `new_way`"):
        assert old_way(1) == 2
    assert old_way.__doc__ == "Returns one more."


def test_run_stays_callable_after_the_subpackage_of_that_name_was_imported() -> None:
    told = subprocess.run(
        [sys.executable, "-c", CALLS_RUN], capture_output=True, text=True, check=True, timeout=120
    )
    assert told.stdout.split() == ["same", "error"]


def test_what_is_not_installed_is_named_with_the_extra_that_brings_it() -> None:
    program = "import sys\nsys.modules['numpy'] = None\nimport easel\neasel.minimise"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "easel.minimise needs the package numpy: pip install 'easel-ml[optimise]'" in done.stderr


CALLS_RUN = """
import easel
public = easel.run
import easel.run.order
from easel.run import order
print("same" if order is easel.run.order is not None and callable(public) else "other")
try:
    easel.run()
except TypeError as error:  # the function's own complaint, not that a module cannot be called
    print("error" if "run()" in str(error) else error)
"""
