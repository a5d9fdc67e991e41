"""What is remembered of jobs' specs is never shown where something else is stored."""

from __future__ import annotations

import json
from typing import Any

from easel.declare.job import EntryPoint, JobSpec
from easel.store.job_specs import SPEC, KnownSpecs


def stored(name: str = "train", **arguments: Any) -> Any:
    return SPEC.dump_python(JobSpec(name, EntryPoint("m:f", arguments)), mode="json")


def test_a_spec_that_is_stored_as_before_is_checked_once() -> None:
    known = KnownSpecs()
    assert known.of("job_1", stored()) is known.of("job_1", stored())
    assert known.of("job_1", stored()) == SPEC.validate_python(stored())


def test_a_spec_that_was_changed_is_read_anew() -> None:
    known = KnownSpecs()
    known.of("job_1", stored())
    assert known.of("job_1", stored("other")).name == "other"


def test_the_text_of_a_spec_says_what_is_stored_too() -> None:
    known = KnownSpecs()
    text = json.dumps(stored())
    assert known.of_text("job_1", text) is known.of_text("job_1", text)
    assert known.of_text("job_1", text) is known.of("job_1", stored())
    assert known.of_text("job_1", json.dumps(stored("other"))).name == "other"
    assert known.of_text("job_1", text).name == "train"


def test_large_specs_are_not_kept_and_many_are_forgotten() -> None:
    known = KnownSpecs()
    known.most = 2
    large = stored(text="x" * known.largest)
    assert known.of("job_0", large) is not known.of("job_0", large)
    assert known.of_text("job_0", json.dumps(large)) is not known.of_text("job_0", json.dumps(large))
    first = known.of("job_1", stored())
    for number in (2, 3):
        known.of(f"job_{number}", stored())
    assert known.of("job_1", stored()) is not first
