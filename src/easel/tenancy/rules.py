"""When tenants stop, and how long trials may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """`done_below`: a tenant that may gain less than this in the next hour stops. A trial may run `patience` times as
    long as predicted, and at least `least_limit_s`. A refused tenant is asked again after `retry_s`; who may start is
    looked up every `admission_s`."""

    done_below: float = 0.0005
    patience: float = 4.0
    least_limit_s: float = 60.0
    retry_s: float = 5.0
    admission_s: float = 1.0
