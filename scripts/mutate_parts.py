"""Runs mutmut on the pure parts and prints how many mutants were killed. `scripts/mutate` calls it."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / ".cache" / "mutate"
"""Each part's copy of the sources, with what became of its mutants so far."""
GOAL = 85.0
SEED = 2026
SURVIVED, UNTESTED = 0, 33
"""mutmut's exit codes of mutants that no test noticed; everything else was noticed, or took for ever."""
PARTS = {
    "lifecycle": (["run/lifecycle.py"], ["tests/run/test_lifecycle.py"]),
    "queue": (["run/queue.py", "run/share.py"], ["tests/run/test_queue.py", "tests/run/test_share.py"]),
    "leasing": (["run/leasing.py"], ["tests/run/test_leasing.py"]),
    "placement": (["run/placement.py"], ["tests/run/test_placement.py"]),
    "policies": (
        ["schedule/policies/*.py"],
        [
            "tests/schedule/test_policy_values.py",
            "tests/schedule/test_policies.py",
            "tests/schedule/test_paper_rules.py",
            "tests/schedule/test_slices.py",
        ],
    ),
    "provision": (
        ["price/provision.py"],
        ["tests/price/test_provision_values.py", "tests/price/test_provision.py", "tests/price/test_gpus.py"],
    ),
    "query": (["lake/query/*.py"], ["tests/lake/test_query.py"]),
    "manifest": (["lake/manifest/*.py"], ["tests/lake/manifest"]),
}
"""Modules under src/easel that are mutated, and the tests that must notice."""


def fingerprint(part: str) -> str:
    """Returns a digest of what is mutated and of the tests that must notice, by which earlier outcomes still count."""
    modules, tests = PARTS[part]
    named = [path for module in modules for path in (ROOT / "src" / "easel").glob(module)]
    for test in tests:
        named += (ROOT / test).rglob("*.py") if (ROOT / test).is_dir() else [ROOT / test]
    told = hashlib.sha256(json.dumps(PARTS[part]).encode())
    for path in sorted(named):
        told.update(path.read_bytes())
    return told.hexdigest()


def prepare(part: str, folder: Path) -> None:
    """Copies the source and its tests, with settings of mutmut and pytest for the part's modules.

    Does nothing where that was done before, of the same modules and tests: mutmut then goes on where it was stopped.
    """
    stamp, now = folder / "fingerprint", fingerprint(part)
    if stamp.exists() and stamp.read_text() == now:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    modules, tests = PARTS[part]
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("static", "__pycache__"))
    (folder / "pyproject.toml").write_text(
        f"""[tool.mutmut]
source_paths = ["src"]
only_mutate = {json.dumps([f"src/easel/{module}" for module in modules])}
pytest_add_cli_args_test_selection = {json.dumps(tests)}

[tool.pytest.ini_options]
pythonpath = ["src", "."]
addopts = ["--import-mode=importlib", "-p", "no:cacheprovider", "-x"]
markers = ["foreign: -", "postgres: -", "slow: -"]
"""
    )
    stamp.write_text(now)


def outcomes(folder: Path) -> dict[str, int | None]:
    """Returns mutmut's exit code of each mutant; None for one that was not tried."""
    found: dict[str, int | None] = {}
    for meta in (folder / "mutants").rglob("*.meta"):
        found |= json.loads(meta.read_text())["exit_code_by_key"]
    return found


def measure(part: str, folder: Path, most: int | None) -> dict[str, int | None]:
    """Returns the outcomes of the part's mutants, or of a sample of them; those that are known are not tried again."""
    prepare(part, folder)
    names: list[str] = []
    if most is not None:
        if not outcomes(folder):
            _mutmut(folder, "easel.no.such.mutant")  # only makes them
        every = sorted(outcomes(folder))
        names = every if len(every) <= most else random.Random(SEED).sample(every, most)  # noqa: S311
    known = outcomes(folder)
    left = [name for name in names if known.get(name) is None]
    if left or not names:
        _mutmut(folder, *left)
    found = outcomes(folder)
    return {name: found[name] for name in names or found}


def _mutmut(folder: Path, *names: str) -> None:
    with (folder / "log").open("ab") as log:
        subprocess.run(
            [sys.executable, "-m", "mutmut", "run", "--max-children", "2", *names],
            cwd=folder,
            stdout=log,
            stderr=log,
            check=False,
        )


def main(parts: list[str]) -> int:
    """Prints a row for each part; 1 where all together miss the goal or something could not be measured."""
    sample = os.environ.get("EASEL_MUTATE_SAMPLE")
    most = int(sample) if sample else None
    whole: Counter[str] = Counter()
    print("| part | mutants | killed | share |\n|---|---:|---:|---:|", flush=True)
    for part in parts or PARTS:
        folder = KEPT / part
        tried = {name: code for name, code in measure(part, folder, most).items() if code is not None}
        alive = sorted(name for name, code in tried.items() if code in (SURVIVED, UNTESTED))
        if not tried:
            print(f"| {part} | nothing was measured: see {folder}/log | | |", flush=True)
            whole["broken"] += 1
            continue
        whole.update(all=len(tried), killed=len(tried) - len(alive))
        share = 100 * (len(tried) - len(alive)) / len(tried)
        print(f"| {part} | {len(tried)} | {len(tried) - len(alive)} | {share:.0f} % |", flush=True)
        if os.environ.get("EASEL_MUTATE_SHOW"):
            print("\n".join([f"survivors, in {folder}:", *alive]), file=sys.stderr)
    share = 100 * whole["killed"] / max(whole["all"], 1)
    print(f"| **all** | {whole['all']} | {whole['killed']} | **{share:.1f} %** |")
    return 0 if share >= GOAL and not whole["broken"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
