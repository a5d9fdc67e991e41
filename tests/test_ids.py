import random
from datetime import UTC, datetime, timedelta

from easel.ids import mint

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_ids_sort_by_the_time_they_were_made() -> None:
    rng = random.Random(1)
    made = [mint("job", START + timedelta(milliseconds=i), rng) for i in range(200)]
    assert made == sorted(made)


def test_ids_of_one_moment_differ() -> None:
    rng = random.Random(1)
    assert len({mint("job", START, rng) for _ in range(1000)}) == 1000
