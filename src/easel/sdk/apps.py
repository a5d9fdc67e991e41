"""Apps: declare a program, feed examples, always have the best model so far."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from easel.sdk.connection import ask
from easel.wire import app as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client

BATCH_BYTES = 1_000_000
"""Half of what a server accepts in one request."""


def _batches(pairs: Iterable[tuple[Any, Any]]) -> Iterator[list[wire.Pair]]:
    batch: list[wire.Pair] = []
    size = 0
    for source, target in pairs:
        pair = wire.Pair(input=source, output=target)
        length = len(pair.model_dump_json())
        if batch and size + length > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(pair)
        size += length
    if batch:
        yield batch


class Apps:
    """The apps of the client's project."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _path(self) -> str:
        return f"{self._client.root}/apps"

    def declare(self, name: str, program: str, *, metric: str | None = None) -> wire.App:
        body = ask(wire.DeclareApp, name=name, program=program, metric=metric)
        return self._client.connection.post(self._path, body, wire.App)

    def list(self) -> builtins.list[wire.App]:
        return self._client.connection.get(self._path, wire.AppList).items

    def get(self, name: str) -> wire.App:
        return self._client.connection.get(f"{self._path}/{name}", wire.App)

    def feed(self, name: str, pairs: Iterable[tuple[Any, Any]]) -> wire.Fed:
        """In batches; a feed that broke off may be repeated, since pairs fed before are left out."""
        fed = wire.Fed(new=0, known=0, total=0)
        for batch in _batches(pairs):
            body = ask(wire.FeedPairs, pairs=batch)
            more = self._client.connection.post(f"{self._path}/{name}/feed", body, wire.Fed)
            fed = wire.Fed(new=fed.new + more.new, known=fed.known + more.known, total=more.total)
        return fed

    def examples(self, name: str) -> builtins.list[wire.Example]:
        return self._client.connection.get(f"{self._path}/{name}/examples", wire.ExampleList).items

    def refine(self, name: str, digests: builtins.list[str], *, on: bool) -> builtins.list[str]:
        body = ask(wire.Refine, digests=digests, on=on)
        return self._client.connection.post(f"{self._path}/{name}/refine", body, wire.Refined).changed

    def undo(self, name: str) -> builtins.list[str]:
        """Take back the newest switch."""
        body = ask(wire.Refine, undo=True)
        return self._client.connection.post(f"{self._path}/{name}/refine", body, wire.Refined).changed

    def infer(self, name: str, objects: builtins.list[Any]) -> wire.Answers:
        body = ask(wire.Infer, objects=objects)
        return self._client.connection.post(f"{self._path}/{name}/infer", body, wire.Answers)
