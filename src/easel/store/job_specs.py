"""What jobs ask for, as it is stored: read, kept while it is needed often, and named by what it does."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import TypeAdapter

from easel.declare.job import JobSpec

SPEC: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)


def signature(spec: JobSpec, code_set: str | None, input_set: str | None) -> str:
    """Names the work: what runs, in which environment, on which versions. Not on how large a machine."""
    body = SPEC.dump_python(spec, mode="json")
    environment = {k: v for k, v in body["environment"].items() if k != "requirements" or v is not None}
    work = [body["run"], environment, body["output_folder"], code_set, input_set]
    return hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()


class KnownSpecs:
    """Specs that were read lately: checking one takes longer than all else about a job, and it hardly ever changes."""

    most, largest = 2000, 2000
    """How many are kept, and of how many characters at most."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, JobSpec]] = {}
        self._known_texts: dict[str, tuple[str, JobSpec]] = {}

    def of(self, job_id: str, stored: Any) -> JobSpec:
        """Returns the spec that is stored so. What is known of a job counts only where it was stored as it is now."""
        known = self._known.get(job_id)
        if known is not None and known[0] == stored:
            return known[1]
        spec = SPEC.validate_python(stored)
        if len(json.dumps(stored)) <= self.largest:
            self._keep(self._known, job_id, (stored, spec))
        return spec

    def of_text(self, job_id: str, text: str) -> JobSpec:
        """Returns the same for the text that is stored: comparing that is quicker than reading it."""
        known = self._known_texts.get(job_id)
        if known is not None and known[0] == text:
            return known[1]
        spec = self.of(job_id, json.loads(text))
        if len(text) <= self.largest:
            self._keep(self._known_texts, job_id, (text, spec))
        return spec

    def _keep(self, known: dict[str, tuple[Any, JobSpec]], job_id: str, what: tuple[Any, JobSpec]) -> None:
        if len(known) >= self.most:
            known.clear()
        known[job_id] = what


KNOWN = KnownSpecs()
"""Those of this process."""
