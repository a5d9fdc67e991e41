"""Every Python example of the documents passes `mypy --strict`: our types hold where people copy from."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^([ ]*)```python[^\n]*\n(.*?)^[ ]*```", re.DOTALL | re.MULTILINE)
GIVEN = {
    "docs/design/price.md": """
        class Candidate:
            name, family, cost_s = "", "", 1.0
        class Ended(Candidate):
            seconds = 1.0
        candidates: list[Candidate] = []
        ended: list[Ended] = []
    """,
    "docs/how-to/code.md": "import easel",
    "docs/how-to/gpus.md": "import os\nimport torch",
    "docs/how-to/mlflow.md": "x, y = [[0.0], [1.0]], [0, 1]",
    "docs/how-to/studies.md": """
        from collections.abc import Mapping
        from easel.study import Float, Space, Value
        def train(point: Mapping[str, Value]) -> dict[str, float]:
            return {"accuracy": 0.9, "cost": 0.1}
        def run(point: Mapping[str, Value]) -> dict[str, float]:
            return train(point)
        space = Space((Float("rate", 0.0, 1.0),))
    """,
    "docs/how-to/trials.md": """
        from easel.records.identity import Caller
        from easel.store.engine import Store
        def here() -> tuple[Store, Caller]:
            raise NotImplementedError
        store, caller = here()
    """,
    "docs/tutorial/lake.md": "import pandas",
}
"""What the text around an example says is there already."""
MODULES = {"mnist/training.py": "def train(lr: float, epochs: int) -> dict[str, float]:\n    return {}\n"}
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "reference" not in page.parts and BLOCK.search(page.read_text())
]
PROGRAMS = sorted((ROOT / "docs").rglob("*.py"))


def examples(page: Path) -> list[str]:
    """Returns the Python blocks of a page, each with what is given before it."""
    name = page.relative_to(ROOT).as_posix()
    given = textwrap.dedent(GIVEN.get(name, ""))
    return [f"{given}\n{textwrap.dedent(body)}" for _, body in BLOCK.findall(page.read_text())]


def check(folder: Path) -> str:
    """Returns what `mypy --strict` says of the modules in a folder."""
    variables = {**os.environ, "MYPYPATH": f"{folder}:{ROOT / 'src'}"}
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--strict"]
    command += ["--cache-dir", str(ROOT / ".mypy_cache" / "examples")]
    command += ["--allow-redefinition", "--disable-error-code", "no-redef", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=variables, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def written(folder: Path) -> Path:
    for page in PAGES:
        stem = re.sub("[^a-z0-9]", "_", page.relative_to(ROOT).with_suffix("").as_posix().lower())
        for number, text in enumerate(examples(page)):
            folder.joinpath(f"{stem}_{number}.py").write_text(text)
    for program in PROGRAMS:
        stem = re.sub("[^a-z0-9]", "_", program.relative_to(ROOT).with_suffix("").as_posix().lower())
        folder.joinpath(f"{stem}.py").write_text(program.read_text())
    for name, text in MODULES.items():
        folder.joinpath(name).parent.mkdir(exist_ok=True)
        folder.joinpath(name).write_text(text)
    return folder


@pytest.mark.timeout(600)
def test_every_example_of_the_documents_has_sound_types(tmp_path: Path) -> None:
    assert len(PAGES) > 5
    assert check(written(tmp_path)) == ""


@pytest.mark.timeout(600)
def test_a_misspelt_argument_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        "import easel\neasel.Client().jobs.submit('ls', resource={'vcpu': 2})\n"
    )
    assert "Unexpected keyword argument" in check(tmp_path)
