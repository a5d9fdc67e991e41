"""The files of an app's examples in the lake: their bytes, and a pair by its line."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from easel.declare.parse import parse_program
from easel.declare.program import Program, Tensor
from easel.errors import InvalidInput, NotFound
from easel.flow.lake import browse, upload
from easel.flow.lake.checkout import read_blob
from easel.flow.lake.upload import Lake
from easel.lake.digest import Digest
from easel.lake.manifest.node import Entry
from easel.match.curve import is_series
from easel.match.examples import ExampleError, Single
from easel.match.raw import open_value
from easel.match.read import read_object
from easel.records.app import App, FedExample
from easel.records.identity import Caller
from easel.records.lake import Location, UploadItem

THUMBNAIL = 160
MOST_HELD = 64 * 2**20


class AppFiles:
    """Reads files of the lake below the app's own folder; those announced as `entries` without a query each."""

    def __init__(self, lake: Lake, caller: Caller, app: App, entries: Iterable[Entry] = ()) -> None:
        self._lake, self._caller, self._app = lake, caller, app
        self._entries = {entry.path: entry for entry in entries}
        self._places: Mapping[bytes, Location] = {}
        if self._entries:
            with lake.store.read() as tx:
                self._places = browse.locate(tx, list(self._entries.values()))
        self._spans = _dense_spans(self._places.values())
        self._held: dict[bytes, bytes] = {}

    def chunks(self, path: str) -> Iterator[bytes]:
        """An announced file, piece by piece."""
        return read_blob(self._lake.blobs, self._places[self._entries[path].digest])

    def __call__(self, path: str) -> bytes:
        entry = self._entries.get(path)
        if entry is not None:
            return self._read(self._places[entry.digest])
        if not path.startswith(self._app.folder):
            raise ExampleError(f"{path[:200]}: files of this app lie below {self._app.folder}")
        try:
            with self._lake.store.read() as tx:
                found = browse.open_file(tx, self._caller, path)
        except NotFound as error:
            raise ExampleError(f"{path[:200]}: {error.message}") from None
        return b"".join(read_blob(self._lake.blobs, found.place))

    def _read(self, place: Location) -> bytes:
        """Small files lie packed in objects: what was announced of one is read once, in one piece. Files that follow
        each other often lie in different objects, so several are held.
        """
        span = self._spans.get(place.object)
        if span is None:
            return b"".join(read_blob(self._lake.blobs, place))
        start, end = span
        held = self._held.get(place.object)
        if held is None:
            held = b"".join(self._lake.blobs.read(Digest(place.object), start, end - start))
            while self._held and sum(map(len, self._held.values())) + len(held) > MOST_HELD:
                del self._held[next(iter(self._held))]
            self._held[place.object] = held
        return held[place.offset - start : place.offset - start + place.size]


def _dense_spans(places: Iterable[Location]) -> dict[bytes, tuple[int, int]]:
    """Returns of each object the part that holds announced files, where it is not large and they fill half of it."""
    spans: dict[bytes, tuple[int, int, int]] = {}
    for place in places:
        start, end, used = spans.get(place.object, (place.offset, 0, 0))
        spans[place.object] = (
            min(start, place.offset),
            max(end, place.offset + place.size),
            used + place.size,
        )
    return {
        packed: (start, end)
        for packed, (start, end, used) in spans.items()
        if end - start <= MOST_HELD and 2 * used >= end - start
    }


def bring_home(lake: Lake, caller: Caller, moves: Sequence[tuple[Entry, str]]) -> None:
    """The content of files of the lake under other paths, without sending a byte."""
    with lake.store.write() as tx:
        session = upload.start(tx, caller)
    items = [UploadItem(path, entry.size, entry.digest) for entry, path in moves]
    for start in range(0, len(items), upload.MAX_FILES):
        with lake.store.write() as tx:
            missing = upload.add_files(tx, caller, session.id, items[start : start + upload.MAX_FILES])
            if missing:
                raise InvalidInput("some of these files may not be read: ask an admin for a grant")
    with lake.store.write() as tx:
        upload.commit(tx, caller, session.id)


def read_pair(lake: Lake, caller: Caller, example: FedExample) -> tuple[Any, Any]:
    """Input and output as they were fed, as JSON."""
    if example.shard is None or example.start is None or example.length is None:
        raise NotFound(f"{example.digest} was fed before examples could be read back one by one")
    with lake.store.read() as tx:
        found = browse.open_file(tx, caller, example.shard)
    place = found.place
    chunks = lake.blobs.read(Digest(place.object), place.offset + example.start, example.length)
    row = json.loads(b"".join(chunks))
    return row["input"], row["output"]


def is_picture(program: Program) -> bool:
    """Whether its examples can be looked at."""
    first = program.input.fields[0]
    flat = isinstance(first, Tensor) and first.rank in (2, 3) and not program.input.pointers
    return flat and not is_series(program.input)


def thumbnail(lake: Lake, caller: Caller, app: App, example: FedExample) -> bytes:
    """A small PNG of an example whose input is a picture; the brightest value is white."""
    from PIL import Image

    program = parse_program(app.program)
    if not is_picture(program):
        raise InvalidInput(f"the examples of {app.name} are not pictures")
    raw, _ = read_pair(lake, caller, example)
    one = read_object(program.input, open_value(raw, AppFiles(lake, caller, app)), "input")
    assert isinstance(one, Single)
    pixels = np.asarray(one.values[0], dtype=np.float32)
    low, high = float(min(0.0, pixels.min())), float(pixels.max())
    top = 255.0 if low == 0.0 and 16.0 < high <= 255.0 else high
    scaled = ((pixels - low) / max(top - low, 1e-9) * 255.0).clip(0, 255).astype(np.uint8)
    if scaled.ndim == 3:
        scaled = scaled[..., 0] if scaled.shape[2] not in (3, 4) else scaled[..., :3]
    picture = Image.fromarray(scaled)
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()
