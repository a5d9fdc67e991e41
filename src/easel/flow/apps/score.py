"""score: a whole file, folder or file set through the model that answers now, as a job."""

from __future__ import annotations

from dataclasses import dataclass, replace

from easel.errors import InvalidInput
from easel.flow.apps.infer import served
from easel.flow.apps.look import candidate_name
from easel.flow.apps.memory import to_answer
from easel.flow.apps.ready import metric_of
from easel.flow.apps.trial_job import trial_spec
from easel.flow.jobs.submit import submit_job
from easel.flow.lake.file_set import create_file_set, entries_of
from easel.flow.lake.upload import Lake
from easel.ids import JobId
from easel.lake.paths import parse_set
from easel.match.candidate import Candidate
from easel.records.identity import Caller

SCORE = "easel.flow.apps.score_job:score"
SCORING_LIMIT_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Scoring:
    """The job that scores, and the model that it asks."""

    job: JobId
    model: str
    candidate: str


def score_files(lake: Lake, caller: Caller, name: str, reference: str) -> Scoring:
    """Submit the job. Its input is one set of the model's version and what `reference` names now, so that the
    provenance of the answers holds both.
    """
    app, best = served(lake, caller, name)
    assert best.model_set is not None
    asked = as_reference(reference)
    with lake.store.read() as tx:
        inside = next(
            (e.path for e in entries_of(tx, caller, best.model_set) if e.path.endswith("/model/model.json")),
            None,
        )
    if inside is None:
        raise InvalidInput(f"{best.model_set} holds no model: pin another one")
    inputs = create_file_set(lake.store, caller, f"{app.name}-scored", [f"/@{best.model_set}", asked])
    candidate = candidate_name(best)
    arguments = {
        "model": inside.removesuffix("/model/model.json"),
        "metric": metric_of(app),
        "styles": dict(app.styles or {}),
        "about": {
            "app": app.name,
            "program": app.program,
            "model": best.model_set,
            "candidate": candidate,
            "metric": metric_of(app),
            "quality": best.quality,
            "source": asked,
        },
    }
    with lake.store.write() as tx:
        need = to_answer(tx, caller, Candidate.from_json(dict(best.candidate)), best.model_set)
        spec = trial_spec(app, SCORE, arguments, "score files", f"{app.name}-scores", need, SCORING_LIMIT_S)
        job = submit_job(tx, caller, replace(spec, input=str(inputs)))
    return Scoring(job.id, best.model_set, candidate)


def as_reference(text: str) -> str:
    """`rows:3` is the file set of that name; paths of the lake stay as they are."""
    if text.startswith("/"):
        return text
    return f"/@{parse_set(text.removeprefix('@'))}"
