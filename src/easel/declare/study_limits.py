"""Figures about studies that their wire models need too: apart, so that a command imports nothing else for them."""

from __future__ import annotations

FRACTION = "data_fraction"
"""The fidelity that is the share of the data."""
MAX_WORKERS = 256
