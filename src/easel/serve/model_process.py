"""A process that holds models and answers for them, started by the server and spoken to over one socket.

It has no database, no lake and no network, and reads only Python's libraries and the folder of models. Whatever waits
when it has answered is answered together, by one call of each model. Models are loaded beside that, so that those that
are loaded answer meanwhile; the one asked longest ago leaves when memory is short.

to it       length, number, length of the order; the order (JSON: which model); the body of the request
from it     length, number, whether it is refused; the answer, or why there is none (JSON)
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import socket
import struct
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from easel.declare.program import Program
    from easel.declare.styles import Styles
    from easel.match.answer import Question
    from easel.match.model import Model

ASKED = struct.Struct("<IQI")
TOLD = struct.Struct("<IQB")
MB = 1 << 20
ROOM = 2048 * MB
"""What the interpreter and its libraries may take beside the models before loading is refused."""
MOST_AT_ONCE = 256
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class ModelOrder:
    """Which model is asked, and how its app reads and measures. `form`: how the request is written; `styles`: how the
    app's examples write numbers and dates, as JSON.
    """

    folder: str
    program: str
    metric: str
    form: str
    styles: str = "{}"


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    number: int
    order: ModelOrder
    body: bytes


class Unloadable(Exception):
    """A model that cannot be held here, in words."""


@lru_cache(1024)
def order_of(told: bytes) -> ModelOrder:
    return ModelOrder(**json.loads(told))


@lru_cache(256)
def program_of(text: str) -> Program:
    from easel.declare.parse import parse_program

    return parse_program(text)


@lru_cache(256)
def styles_of(text: str) -> Styles:
    from easel.declare.styles import read_styles

    return read_styles(json.loads(text))


class Held:
    """Loaded models, the one asked last at the end, within `limit` bytes of this process."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._models: OrderedDict[str, Model] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, folder: str) -> Model | None:
        with self._lock:
            found = self._models.get(folder)
            if found is not None:
                self._models.move_to_end(folder)
        return found

    def load(self, folder: str) -> Model:
        from easel.match.model import load_model

        described = next(Path(folder).rglob("model.json"), None)
        if described is None:
            raise Unloadable("the files of the model are gone: ask again")
        try:
            model = load_model(described.parent)
        except MemoryError:
            self._forget_all()
            raise Unloadable(self._too_large()) from None
        with self._lock:
            self._models[folder] = model
        while self.is_full and self._forget_oldest(but=folder):
            pass
        if self.is_full:
            with self._lock:
                self._models.pop(folder, None)
            raise Unloadable(self._too_large())
        return model

    @property
    def is_full(self) -> bool:
        return memory() > self._limit

    def _too_large(self) -> str:
        return (
            f"the model does not fit into the {self._limit // MB} MB of a model process: "
            "an admin may raise model_memory_mb"
        )

    def _forget_oldest(self, but: str) -> bool:
        """Forget the model asked longest ago; False if there is none but this one."""
        with self._lock:
            oldest = next((each for each in self._models if each != but), None)
            if oldest is None:
                return False
            del self._models[oldest]
        _give_memory_back()
        return True

    def _forget_all(self) -> None:
        with self._lock:
            self._models.clear()
        _give_memory_back()


def memory() -> int:
    """Bytes that this process holds in memory."""
    with open("/proc/self/statm", "rb") as told:  # noqa: PTH123 - asked often
        return int(told.read().split()[1]) * resource.getpagesize()


def _give_memory_back() -> None:
    gc.collect()
    trim = getattr(_LIBC, "malloc_trim", None)
    if trim is not None:
        trim(0)


class Answering:
    """Reads questions from the socket and answers them, until the server closes it."""

    def __init__(self, stream: socket.socket, held: Held) -> None:
        self._stream, self._held = stream, held
        self._got = bytearray()
        self._sending = threading.Lock()
        self._loading: dict[str, list[ModelQuestion]] = {}
        self._loads = threading.Lock()

    def run(self) -> None:
        while asked := self._next():
            for folder, some in _by_model(asked).items():
                model = self._held.get(folder)
                if model is None:
                    self._load_beside(folder, some)
                else:
                    self._answer(model, some)

    def _next(self) -> list[ModelQuestion]:
        """All that has come, at least one; nothing at the end."""
        found: list[ModelQuestion] = []
        while not found:
            data = self._stream.recv(4 * MB)
            if not data:
                return []
            self._got += data
            at = 0
            while len(self._got) - at >= ASKED.size:
                length, number, first = ASKED.unpack_from(self._got, at)
                start, end = at + ASKED.size, at + ASKED.size + length
                if len(self._got) < end:
                    break
                order = order_of(bytes(self._got[start : start + first]))
                found.append(ModelQuestion(number, order, bytes(self._got[start + first : end])))
                at = end
            del self._got[:at]
        return found

    def _load_beside(self, folder: str, some: list[ModelQuestion]) -> None:
        with self._loads:
            if folder in self._loading:
                self._loading[folder] += some
                return
            self._loading[folder] = some
        threading.Thread(target=self._load, args=(folder,), daemon=True).start()

    def _load(self, folder: str) -> None:
        try:
            model, why = self._held.get(folder) or self._held.load(folder), None
        except Unloadable as error:
            model, why = None, ("misconfigured", str(error))
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            model, why = None, ("try-later", f"the model cannot be loaded: {type(error).__name__}: {error}")
        with self._loads:
            waiting = self._loading.pop(folder)
        if model is not None:
            self._answer(model, waiting)
        elif why is not None:
            self._send([(one.number, 1, _refusal(*why)) for one in waiting])
            if self._held.is_full:
                os._exit(0)  # what was let go did not come free: the server starts another process

    def _answer(self, model: Model, asked: Sequence[ModelQuestion]) -> None:
        """Answer those of one model, in batches; an error of one question is not the others' error."""
        from easel.serve.model_forms import READY, read_request

        told: list[tuple[int, int, bytes]] = []
        batches: dict[str, list[tuple[ModelQuestion, Question]]] = {}
        for one in asked:
            if one.order.form == READY:
                told.append((one.number, 0, b""))
                continue
            try:
                question = read_request(
                    one.order.form, program_of(one.order.program), one.body, styles_of(one.order.styles)
                )
                batches.setdefault(one.order.metric, []).append((one, question))
            except Exception as error:  # noqa: BLE001 - whoever asked is told
                told.append((one.number, 1, _why(error)))
        for metric, batch in batches.items():
            for some in _in_parts(batch):
                told += _answered(model, some, metric)
        self._send(told)

    def _send(self, told: Sequence[tuple[int, int, bytes]]) -> None:
        data = b"".join(TOLD.pack(len(body), number, state) + body for number, state, body in told)
        with self._sending:
            self._stream.sendall(data)


def _by_model(asked: Sequence[ModelQuestion]) -> dict[str, list[ModelQuestion]]:
    found: dict[str, list[ModelQuestion]] = {}
    for one in asked:
        found.setdefault(one.order.folder, []).append(one)
    return found


def _in_parts(batch: Sequence[tuple[ModelQuestion, Question]]) -> list[list[tuple[ModelQuestion, Question]]]:
    """The questions in order, so many that a part has at most `MOST_AT_ONCE` objects, or one question."""
    parts: list[list[tuple[ModelQuestion, Question]]] = [[]]
    size = 0
    for one in batch:
        if parts[-1] and size + one[1].count > MOST_AT_ONCE:
            parts.append([])
            size = 0
        parts[-1].append(one)
        size += one[1].count
    return parts


def _answered(
    model: Model, batch: Sequence[tuple[ModelQuestion, Question]], metric: str
) -> list[tuple[int, int, bytes]]:
    from easel.match.answer import answer
    from easel.serve.model_forms import write_answer

    try:
        found = answer(model, [question for _, question in batch], metric)
        return [
            (one.number, 0, write_answer(one.order.form, model.program, one.body, answers, notes))
            for (one, _), (answers, notes) in zip(batch, found, strict=True)
        ]
    except Exception as error:  # noqa: BLE001 - whoever asked is told
        if len(batch) == 1:
            return [(batch[0][0].number, 1, _why(error))]
        return [each for one in batch for each in _answered(model, [one], metric)]


def _why(error: Exception) -> bytes:
    from easel.errors import EaselError

    if isinstance(error, EaselError):
        return _refusal(error.kind, error.message, **error.details)
    if isinstance(error, MemoryError):
        return _refusal("invalid-input", "there is not enough memory to answer this at once: ask about less")
    return _refusal("try-later", f"the model could not answer: {type(error).__name__}: {error}")


def _refusal(kind: str, message: str, **details: Any) -> bytes:
    return json.dumps({"kind": kind, "message": message, "details": details}).encode()


def walls(home: Path, models: Path) -> None:
    """Lets this process read only the system, Python and the folder of models, without a network."""
    from easel.run import landlock
    from easel.run.trial_walls import system_rules, wall_in

    wall_in([*system_rules(home), (models, landlock.READ)])
    os.umask(0o077)


def main() -> None:
    """`python -m easel.serve.model_process DESCRIPTOR HOME MODELS MEMORY_MB`"""
    descriptor, home, models, memory_mb = sys.argv[1:]
    stream = socket.socket(fileno=int(descriptor))
    walls(Path(home), Path(models))
    limit = int(memory_mb) * MB
    resource.setrlimit(resource.RLIMIT_DATA, (limit + ROOM, limit + ROOM))
    # What nearly every model needs, before the first is asked for.
    import easel.match.answer
    import easel.serve.model_forms  # noqa: F401

    Answering(stream, Held(limit)).run()


if __name__ == "__main__":
    main()
