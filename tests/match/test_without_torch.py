"""An installation without torch learns, keeps and answers with models that need none."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import tempfile, time
from importlib.machinery import PathFinder
from pathlib import Path

find = PathFinder.find_spec
PathFinder.find_spec = staticmethod(lambda name, *more: None if name == "torch" else find(name, *more))

from easel.match.model import load_model
from easel.match.propose import propose_candidates
from easel.match.registry import is_network
from easel.match.split import assign_folds
from easel.match.summary import strata, summarise
from easel.match.train import Conditions, train
from tests.match.worlds import pictures

program, examples = pictures(40)
offered = propose_candidates(program, summarise(program, examples))
assert offered and not any(is_network(one) for one in offered)
candidate = next(one for one in offered if one.family == "logistic_regression")
folds = assign_folds(strata(program, examples))
found = train(candidate, program, examples, folds, Conditions(0, 60.0, time.monotonic))
with tempfile.TemporaryDirectory() as folder:
    found.model.save(Path(folder))
    print("answers", load_model(Path(folder)).predict([examples[0].input]).shape)
"""


def test_without_torch_other_models_are_learned_kept_and_asked() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.startswith("answers (1, ")
