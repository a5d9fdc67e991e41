"""Where a trial trains, and how much of that GPU is its own."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

import torch

log = logging.getLogger("easel.match")
SHARE = "EASEL_GPU_SHARE"
VISIBLE = "CUDA_VISIBLE_DEVICES"


def training_device() -> torch.device:
    """Returns the GPU where there is one that works, else the CPU. Of a GPU that is shared, no more than our share of
    its memory is taken (`EASEL_GPU_SHARE`)."""
    if not torch.cuda.is_available():
        if os.environ.get(VISIBLE):
            log.warning(
                "a GPU was given, and torch finds none: the training goes on the processor, far slower"
            )
        return torch.device("cpu")
    device = torch.device("cuda", torch.cuda.current_device())
    share = own_share()
    if share < 1.0:
        torch.cuda.set_per_process_memory_fraction(share, device)
    return device


def own_share(environment: Mapping[str, str] = os.environ) -> float:
    """Returns the share of a GPU that this process was given; all of it where nothing is said."""
    try:
        share = float(environment.get(SHARE, "1"))
    except ValueError:
        return 1.0
    return share if 0.0 < share < 1.0 else 1.0


def own_free_bytes(device: torch.device) -> float:
    """Returns how much of a GPU's memory this process may still take: what is free, and no more than its share."""
    free, total = torch.cuda.mem_get_info(device)
    return min(free, own_share() * total - torch.cuda.memory_allocated(device))
