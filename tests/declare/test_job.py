"""Jobs as asked for: what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from easel.declare.job import Command, EntryPoint, Environment, JobSpec, RetryRule, Trial
from easel.errors import InvalidInput
from easel.store.job_specs import SPEC

RUN = Command(("true",))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Command(()), "at least a program"),
        (lambda: Command(("",)), "at least a program"),
        (lambda: Command(("a\0b",)), "NUL"),
        (lambda: Command(("x" * 200_000,)), "exceeds"),
        (lambda: EntryPoint("train.py"), "package.module:function"),
        (lambda: EntryPoint("os:system; rm"), "package.module:function"),
        (lambda: Trial("a:b", {"x": object()}), "not JSON"),
        (lambda: Trial("a:b", {"x": float("nan")}), "not JSON"),
        (lambda: Environment(variables={"1A": "x"}), "not a valid name"),
        (lambda: Environment(variables={"EASEL_TOKEN": "x"}), "reserved"),
        (lambda: Environment(variables={"A": "\0"}), "NUL"),
        (lambda: Environment(secrets={"A": "../../etc"}), "secret"),
        (lambda: Environment(python="venv/bin/python"), "absolute"),
        (lambda: RetryRule(failed=-1), "0 to 100"),
        (lambda: JobSpec("a/b", RUN), "slash"),
        (lambda: JobSpec("", RUN), "1 to 100"),
        (lambda: JobSpec("a", RUN, output_folder="../up"), "lie in"),
        (lambda: JobSpec("a", RUN, output_folder="/etc"), "lie in"),
        (lambda: JobSpec("a", RUN, output_set="a b"), "valid name"),
        (lambda: JobSpec("a", RUN, time_limit_s=0), "time_limit_s"),
        (lambda: JobSpec("a", RUN, time_limit_s=float("nan")), "time_limit_s"),
        (lambda: JobSpec("a", RUN, tags={"k": float("inf")}), "finite"),
    ],
)
def test_nonsense_is_refused_with_a_remedy(make: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        make()


@pytest.mark.parametrize("run", [RUN, EntryPoint("a.b:c", {"x": [1, None]}), Trial("a:b", {"lr": 0.1})])
def test_a_job_survives_being_stored(run: Any) -> None:
    spec = JobSpec(
        "näme ✓",
        run,
        code="/code.zip:2",
        input="words:3",
        tags={"a": "b", "n": 2.5},
        environment=Environment(variables={"A": "1"}, secrets={"K": "key"}, network=True),
        retry=RetryRule(2, 3),
        time_limit_s=1.5,
    )
    assert SPEC.validate_json(SPEC.dump_json(spec)) == spec
