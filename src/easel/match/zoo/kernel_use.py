"""Whether networks use our own GPU kernels here: where none are kept, a short training ends before they are built."""

from __future__ import annotations

import os
from pathlib import Path

KERNELS = "EASEL_KERNELS"
"""The folder with a file for each network whose kernels are kept; where it is not set, all are taken to be."""
_said = {"wanted": True}


def kernels_wanted() -> bool:
    """Whether layers use our kernels, as far as they can be built; otherwise they are the library's."""
    return _said["wanted"]


def use_kernels(wanted: bool) -> None:
    """Says so for all that this process trains from now on."""
    _said["wanted"] = wanted


def network_name(family: str, width: float) -> str:
    """Returns the name under which a network's kernels are kept."""
    return f"{family} {width:g}"


def use_kept_kernels(network: str) -> None:
    """Has this process use our kernels if those of the network are kept."""
    kept = os.environ.get(KERNELS)
    use_kernels(kept is None or Path(kept, network).exists())
