"""Resources in words."""

from __future__ import annotations

import pytest

from easel.declare.resources import memory_told, room_told


@pytest.mark.parametrize(
    ("mb", "told"),
    [(64, "64 MB"), (1023, "1023 MB"), (1024, "1 GB"), (1536, "1.5 GB"), (143_771, "140.4 GB")],
)
def test_memory_is_told_in_megabytes_and_gigabytes_of_1024(mb: int, told: str) -> None:
    assert memory_told(mb) == told


@pytest.mark.parametrize(
    ("gpus", "told"),
    [
        (0, "2 vCPU, 4 GB"),
        (1, "2 vCPU, 4 GB, 1 GPU"),
        (2.0, "2 vCPU, 4 GB, 2 GPUs"),
        (0.5, "2 vCPU, 4 GB, 0.5 of a GPU"),
    ],
)
def test_room_names_gpus_only_where_there_are_some(gpus: float, told: str) -> None:
    assert room_told(2.0, 4096, gpus) == told
