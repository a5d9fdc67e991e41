"""Apps that learn the same thing get each other's trials."""

from __future__ import annotations

from collections.abc import Sequence

from easel.flow.apps.dossier import Dossier, is_willing
from easel.store import app_trials
from easel.store.engine import Tx


def differ(members: Sequence[Dossier]) -> bool:
    """Whether some have trials that count and others lack."""
    jobs_of = [{r.job_id for r in one.valid} | {f.job_id for f in one.flights} for one in members]
    return any(some != jobs_of[0] for some in jobs_of)


def share_trials(tx: Tx, members: Sequence[Dossier]) -> bool:
    """Copy to each what others have; whether anything was."""
    added = 0
    everything = {r.job_id for one in members for r in one.valid} | {
        f.job_id for one in members for f in one.flights
    }
    for one in members:
        own = {r.job_id for r in one.results} | {f.job_id for f in one.flights}
        missing = sorted(everything - own)
        if missing and (is_willing(one, tx.now.timestamp())):
            added += app_trials.copy(tx, missing, one.id)
    return added > 0
