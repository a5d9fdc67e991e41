"""checks: what is wrong or odd with the examples of an app, looked for by a job, and in short at every feed."""

from __future__ import annotations

from datetime import timedelta

from easel.errors import Conflict
from easel.flow.apps.infer import Models
from easel.flow.apps.memory import to_look
from easel.flow.apps.readable import need_examples
from easel.flow.apps.report import Looked, last_job, looked_into
from easel.flow.apps.trial_job import trial_spec
from easel.flow.jobs.submit import submit_job
from easel.flow.lake.upload import Lake
from easel.flow.words.findings import CHECKS
from easel.ids import JobId
from easel.records.app import App
from easel.records.identity import Caller
from easel.records.job import TERMINAL, JobState
from easel.store import app_examples, app_reports
from easel.store.engine import Tx

CHECK = "easel.flow.apps.checks_job:check"
EXAMPLES = "examples"
ONE_FEED = timedelta(minutes=10)
"""What came within this before the newest example counts as the same feed."""


def ask_for_checks(tx: Tx, caller: Caller, name: str) -> JobId:
    """Start the job that checks the examples that are switched on; the one that did or does, if there is one."""
    app = need_examples(tx, caller, name)
    if app.examples_set is None:
        raise Conflict(f"{name} has no examples to check: feed some")
    before = last_job(tx, app.id, EXAMPLES, _subject(app))
    if before is not None and (before.state not in TERMINAL or before.state is JobState.FINISHED):
        return before.id
    arguments = {
        "program": app.program,
        "off": app_examples.off(tx, app.id),
        "newest": app_examples.newest_shards(tx, app.id, ONE_FEED),
    }
    spec = trial_spec(app, CHECK, arguments, "checks", f"{app.name}-checks", to_look(tx, app))
    made = submit_job(tx, caller, spec)
    app_reports.note(tx, app.id, EXAMPLES, _subject(app), made.id)
    return made.id


def checks_of(lake: Lake, models: Models, caller: Caller, name: str) -> Looked:
    """What was found about the examples that are switched on now."""
    with lake.store.read() as tx:
        app = need_examples(tx, caller, name)
    return looked_into(lake, models, caller, app, EXAMPLES, _subject(app), CHECKS)


def _subject(app: App) -> str:
    """Alike as long as the same examples are switched on."""
    return app.examples_key or app.examples_set or ""
