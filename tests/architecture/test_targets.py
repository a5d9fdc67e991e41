"""Names that cross processes as text lead to something: trial targets and the modules imported ahead."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from easel.run.preload import TRIAL_MODULES

SRC = Path(__file__).parents[2] / "src" / "easel"


def targets() -> set[tuple[str, str]]:
    """Returns every `module:function` of ours that the source names as text."""
    text = "\n".join(path.read_text() for path in SRC.rglob("*.py"))
    return set(re.findall(r'"(easel(?:\.\w+)+):(\w+)"', text))


def test_every_target_of_a_trial_is_a_function() -> None:
    found = targets()
    assert ("easel.flow.apps.trial", "learn") in found
    assert [
        f"{module}:{name}" for module, name in found if not callable(getattr(import_module(module), name))
    ] == []


def test_every_module_of_ours_that_is_imported_ahead_exists() -> None:
    ours = [name for name in TRIAL_MODULES if name.startswith("easel.")]
    assert ours
    for name in ours:
        import_module(name)


def test_every_module_started_as_a_process_exists() -> None:
    text = "\n".join(path.read_text() for path in SRC.rglob("*.py"))
    started = set(re.findall(r'"-m",\s*"(easel(?:\.\w+)+)"', text))
    assert started
    assert [name for name in started if not (SRC.parent / (name.replace(".", "/") + ".py")).exists()] == []
