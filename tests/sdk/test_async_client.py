"""The asynchronous twin: every verb of its nouns is there, with the same arguments."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest

from easel.sdk import async_client as twins
from easel.sdk.async_client import AsyncClient, Twin, awaited, iterated
from easel.sdk.client import Client

NOUNS = sorted(
    (
        kind
        for kind in vars(twins).values()
        if isinstance(kind, type) and issubclass(kind, Twin) and kind is not Twin
    ),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("twin", [kind for kind in NOUNS if kind is not AsyncClient])
def test_every_verb_of_a_noun_has_its_twin(twin: type[Twin[object]]) -> None:
    [base] = [b for b in getattr(twin, "__orig_bases__", ()) if getattr(b, "__origin__", None) is Twin]
    [sync] = base.__args__
    verbs = {name for name, _ in inspect.getmembers(sync, inspect.isfunction) if not name.startswith("_")}
    assert verbs - {"copy"} <= {name for name in dir(twin) if not name.startswith("_")}
    for name in verbs - {"copy"}:
        assert list(inspect.signature(getattr(sync, name)).parameters) == list(
            inspect.signature(getattr(twin, name)).parameters
        )


def test_every_noun_of_the_twin_is_one_of_the_client() -> None:
    client = AsyncClient("http://127.0.0.1:9", "t", "astro")
    nouns = [name for name, value in vars(client).items() if isinstance(value, Twin)]
    assert "jobs" in nouns
    assert all(hasattr(Client, name) for name in nouns)
    assert client.in_project("bio").jobs.sync._client.project == "bio"


class Counting:
    """Something synchronous."""

    def double(self, number: int) -> int:
        return 2 * number

    def up_to(self, number: int) -> Iterator[int]:
        yield from range(number)


class AsyncCounting(Twin[Counting]):
    double = awaited(Counting.double)
    up_to = iterated(Counting.up_to)


def test_calls_are_awaited_side_by_side_and_iterators_give_one_item_after_another() -> None:
    async def main() -> tuple[list[int], list[int]]:
        twin = AsyncCounting(Counting())
        doubled = await asyncio.gather(*(twin.double(number) for number in range(3)))
        return list(doubled), [number async for number in twin.up_to(3)]

    assert asyncio.run(main()) == ([0, 2, 4], [0, 1, 2])
