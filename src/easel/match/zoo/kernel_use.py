"""Whether networks use our own GPU kernels here: where none are kept, a short training ends before they are built."""

from __future__ import annotations

import os

KERNELS = "EASEL_KERNELS"
NONE_KEPT = "none kept"
"""What KERNELS says where each process would have to build them for itself."""
_said: dict[str, bool] = {}


def kernels_wanted() -> bool:
    """Whether layers use our kernels, as far as they can be built; otherwise they are the library's."""
    return _said.get("wanted", os.environ.get(KERNELS) != NONE_KEPT)


def use_kernels(wanted: bool) -> None:
    """Says so for all that this process trains from now on."""
    _said["wanted"] = wanted
