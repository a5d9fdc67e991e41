"""What a worker's fork server imports ahead."""

from __future__ import annotations

TRIAL_MODULES = (
    "numpy",
    "scipy.stats",
    "sklearn.ensemble",
    "torch",
    "easel.run.trial",
    "easel.flow.apps.trial",
)
"""What the fork server imports, where it is installed: the seconds that a trial then does not pay."""
