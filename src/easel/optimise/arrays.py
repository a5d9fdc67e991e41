"""One spelling of the few array operations that NumPy and torch name differently.

Everything in `optimise/` is written once against `namespace(x)`; whoever passes torch tensors (on a CPU or a
GPU) gets torch results of the same dtype on the same device. Torch is only imported when a tensor comes in.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
"""A float64 NumPy array, or a torch tensor wherever a function says that it takes either."""


def is_tensor(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "torch"


def namespace(*xs: Any) -> Any:
    """`torch` when any argument is a tensor, else `numpy`; both know exp, sqrt, where, einsum, linalg, ..."""
    if any(is_tensor(x) for x in xs):
        import torch

        return torch
    return np


def like(x: Any, values: Any) -> Any:
    """`values` as an array of the kind, dtype and device of `x`."""
    if is_tensor(x):
        import torch

        return torch.as_tensor(values, dtype=x.dtype, device=x.device)
    return np.asarray(values, dtype=float)


def arrays(*xs: Any) -> tuple[Any, ...]:
    """Numbers and lists as arrays, of the kind of whichever argument already is one."""
    reference = next((x for x in xs if is_tensor(x)), None)
    return tuple(like(reference, x) if reference is not None else np.asarray(x, dtype=float) for x in xs)


def to_numpy(x: Any) -> Array:
    return np.asarray(x.detach().cpu().numpy() if is_tensor(x) else x, dtype=float)


def normal_cdf(u: Any) -> Any:
    """`Φ(u)`, elementwise."""
    if is_tensor(u):
        import torch

        return torch.special.ndtr(u)
    from scipy.special import ndtr

    return ndtr(u)


def normal_pdf(u: Any) -> Any:
    """`φ(u)`, elementwise."""
    return namespace(u).exp(-0.5 * u * u) / float(np.sqrt(2.0 * np.pi))


def solve_lower(L: Any, b: Any, *, transposed: bool = False) -> Any:
    """`L⁻¹ b`, or `L⁻ᵀ b`: `L` `(n, n)` lower triangular, `b` `(n,)` or `(n, m)`."""
    if is_tensor(L):
        import torch

        columns = b[:, None] if b.ndim == 1 else b
        A = L.mT if transposed else L
        x = torch.linalg.solve_triangular(A, columns, upper=transposed)
        return x[:, 0] if b.ndim == 1 else x
    from scipy.linalg import solve_triangular

    return solve_triangular(L, b, lower=True, trans=1 if transposed else 0, check_finite=False)


def cholesky(K: Any) -> Any:
    """Lower factor of `K` `(n, n)`, with the least jitter (1e-10, 1e-9, ... of the mean variance) that works.

    A covariance of near-duplicate points is singular in floating point; the jitter is what makes those
    ordinary input. A matrix that needs more than a tenth of its own variance is not a covariance: that is the
    caller's mistake and `numpy.linalg.LinAlgError` (torch: `torch.linalg.LinAlgError`) comes through.
    """
    xp = namespace(K)
    n = K.shape[0]
    eye = like(K, np.eye(n))
    scale = float(xp.einsum("ii->", K)) / max(n, 1) or 1.0
    for exponent in (None, -10, -9, -8, -7, -6, -5, -4, -3, -2):
        jitter = 0.0 if exponent is None else scale * 10.0**exponent
        try:
            return xp.linalg.cholesky(K + jitter * eye)
        except xp.linalg.LinAlgError:
            continue
    return xp.linalg.cholesky(K + 0.1 * scale * eye)
