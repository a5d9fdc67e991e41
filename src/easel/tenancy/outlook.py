"""What a tenant may still gain: whether it is worth going on. Pure."""

from __future__ import annotations

import numpy as np
import scipy  # its parts load when they are used: a server that starts pays for none

from easel.schedule.state import PoolDevice, Tenant

HOUR_S = 3600.0
_GRID = (np.arange(48) + 0.5) / 48.0


def outlook(tenant: Tenant, device: PoolDevice) -> float:
    """The quality that the next hour of trials on one such device may add to the tenant's best.

    `E[(max_k min(f_k, ceiling) − best)⁺]` over the open candidates, `∫ (1 − ∏ Φ((y − m_k)/s_k)) dy` by the midpoint
    rule, as if they were independent: more than is true, so that nobody is stopped too early. A candidate that takes
    longer than an hour counts for the share of it that the hour would see.
    """
    still = tenant.open & np.isfinite(tenant.costs(device))
    if not still.any():
        return 0.0
    m, s = tenant.belief.mean[still], np.maximum(tenant.belief.sd[still], 1e-12)
    share = np.minimum(HOUR_S / tenant.costs(device)[still], 1.0)
    top = min(tenant.ceiling, float((m + 6.0 * s).max()))
    if top <= tenant.best:
        return 0.0
    width = top - tenant.best
    y = tenant.best + width * _GRID
    above = share[:, None] * (1.0 - scipy.special.ndtr((y[None, :] - m[:, None]) / s[:, None]))
    return float((1.0 - np.prod(1.0 - above, axis=0)).mean() * width)
