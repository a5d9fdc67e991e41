"""What the nursery of a worker imports ahead."""

from __future__ import annotations

TRIAL_MODULES = (
    "numpy",
    "scipy.stats",
    "sklearn.ensemble",
    "torch",
    "easel.run.trial",
    "easel.flow.apps.trial",
)
"""What the nursery imports, where it is installed: the seconds that a trial then does not pay."""
