"""Examples where a training step finds them: on the GPU if they fit there, else streamed to it ahead of their use."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from easel.match.device import own_free_bytes

log = logging.getLogger("easel.match")
Batch = Mapping[str, Tensor]
RESIDENT_SHARE = 0.4
"""Of the GPU's memory that is free for us, what examples may take; the rest is for the network and its steps."""
AHEAD = 4
"""Batches that are gathered before they are needed, where examples stay on the host."""


@dataclass(frozen=True)
class ByteScale:
    """What a byte of each channel stands for: `values` `(channels, 256)`, as an encoder would have made them.

    Where they lie on a line, which normalisation by mean and deviation gives, they are worked out and not looked up.
    """

    values: Tensor

    def __call__(self, pixels: Tensor) -> Tensor:
        """`(…, channels, height, width)` in bytes → the same in float32."""
        values = self.values
        start, slope = values[:, 0], (values[:, 255] - values[:, 0]) / 255
        if self.straight:
            return torch.addcmul(start.view(-1, 1, 1), pixels.float(), slope.view(-1, 1, 1))
        channel = 256 * torch.arange(len(values), device=pixels.device).view(-1, 1, 1)
        return values.flatten()[pixels.long() + channel]

    @cached_property
    def straight(self) -> bool:
        steps = torch.arange(256, dtype=torch.float64) / 255
        values = self.values.double().cpu()
        line = values[:, :1] + (values[:, 255:] - values[:, :1]) * steps
        return bool((line - values).abs().max() < 1e-5)

    def to(self, device: torch.device) -> ByteScale:
        _ = self.straight  # asked on the host, once, and never while a step is recorded
        moved = ByteScale(self.values.to(device))
        moved.__dict__["straight"] = self.straight
        return moved


@dataclass(frozen=True)
class Data:
    """Inputs and targets, each a mapping from names to tensors whose first side is the example.

    `rows` are those that count, all where there are none: folds share the tensors, which may lie on the disk. Inputs
    named in `scales` are bytes, a quarter of what numbers take, and become numbers where a step needs them.
    """

    inputs: Batch
    targets: Batch
    rows: Tensor | None = None
    scales: Mapping[str, ByteScale] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.targets.values()))) if self.rows is None else len(self.rows)

    def equals(self, other: Data) -> bool:
        """Whether both hold the same numbers, whichever of them count."""
        if self.inputs is other.inputs and self.targets is other.targets:
            return True
        pairs = ((self.inputs, other.inputs), (self.targets, other.targets), (_values(self), _values(other)))
        return all(a.keys() == b.keys() and all(_equal(a[name], b[name]) for name in a) for a, b in pairs)

    def only(self, rows: Tensor) -> Data:
        """Returns the same tensors, of which only `rows` count."""
        return replace(self, rows=rows.to(self.device))

    @property
    def device(self) -> torch.device:
        return next(iter(self.targets.values())).device

    def take(self, places: Tensor, device: torch.device) -> tuple[Batch, Batch]:
        """Returns the inputs and the targets at these places, on `device`, as numbers."""
        inputs, targets = self.stored(places, device)
        return self.decoded(inputs), targets

    def stored(self, places: Tensor, device: torch.device) -> tuple[Batch, Batch]:
        """Returns the same as they are kept: what travels to a GPU travels in bytes."""
        places = places.to(self.device)
        rows = places if self.rows is None else self.rows[places]
        return _pick(self.inputs, rows, device), _pick(self.targets, rows, device)

    def decoded(self, inputs: Batch) -> Batch:
        """Returns inputs as numbers, where they are."""
        if not self.scales:
            return inputs
        return {
            name: self.scales[name](tensor) if name in self.scales else tensor
            for name, tensor in inputs.items()
        }

    def resident(self, device: torch.device) -> Data:
        """Returns the same data with all of it on `device`; itself, to be streamed, where it does not fit."""
        if device == self.device or device.type == "cpu":
            return self
        tensors = [*self.inputs.values(), *self.targets.values()]
        needed = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        if needed > RESIDENT_SHARE * own_free_bytes(device):
            return self
        rows = None if self.rows is None else self.rows.to(device)
        try:
            scales = {name: scale.to(device) for name, scale in self.scales.items()}
            return Data(_moved(self.inputs, device), _moved(self.targets, device), rows, scales)
        except torch.cuda.OutOfMemoryError:
            log.warning("somebody else took the GPU's memory meanwhile: examples stay on the host")
        torch.cuda.empty_cache()
        return self


def _values(data: Data) -> Batch:
    return {name: scale.values for name, scale in data.scales.items()}


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and one.device == other.device and torch.equal(one, other)


def _pick(tensors: Batch, rows: Tensor, device: torch.device) -> Batch:
    return {name: tensor[rows].to(device, non_blocking=True) for name, tensor in tensors.items()}


def _moved(tensors: Batch, device: torch.device) -> Batch:
    """Returns the tensors on `device`, copied in pieces through two pinned buffers in turn."""
    moved = {}
    for name, tensor in tensors.items():
        there = torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
        step = max(1, (64 << 20) // max(1, tensor[:1].numel() * tensor.element_size()))
        shape = (min(step, len(tensor)), *tensor.shape[1:])
        buffers = [torch.empty(shape, dtype=tensor.dtype, pin_memory=True) for _ in range(2)]
        copied = [torch.cuda.Event(), torch.cuda.Event()]  # type: ignore[no-untyped-call, unused-ignore]
        for number, start in enumerate(range(0, len(tensor), step)):
            piece, buffer = tensor[start : start + step], buffers[number % 2]
            copied[number % 2].synchronize()
            buffer[: len(piece)].copy_(piece)
            there[start : start + step].copy_(buffer[: len(piece)], non_blocking=True)
            copied[number % 2].record()  # type: ignore[no-untyped-call, unused-ignore]
        moved[name] = there
    return moved


def batches(data: Data, places: Tensor, device: torch.device) -> Iterator[tuple[Batch, Batch]]:
    """Yields the inputs and targets of each row of `places` `(steps, batch)`, on `device`, in order.

    What lies on the host is gathered by a thread into pinned memory, some batches ahead of the GPU.
    """
    if device.type == "cpu" or data.device.type != "cpu":
        for row in places:
            yield data.take(row, device)
        return
    ready: queue.Queue[tuple[Batch, Batch] | BaseException | None] = queue.Queue(AHEAD)
    over = threading.Event()
    data_there = replace(data, scales={name: scale.to(device) for name, scale in data.scales.items()})

    def gather() -> None:
        try:
            for row in places:
                inputs, targets = data.stored(row, torch.device("cpu"))
                pinned = tuple(
                    {name: tensor.pin_memory() for name, tensor in part.items()} for part in (inputs, targets)
                )
                while not over.is_set():
                    try:
                        ready.put((pinned[0], pinned[1]), timeout=0.2)
                        break
                    except queue.Full:
                        continue
                if over.is_set():
                    return
            ready.put(None)
        except BaseException as error:  # noqa: BLE001  handed to the training thread, which raises it
            ready.put(error)

    thread = threading.Thread(target=gather, name="batches", daemon=True)
    thread.start()
    try:
        while (found := ready.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield data_there.decoded(_there(found[0], device)), _there(found[1], device)
    finally:
        over.set()
        thread.join()


def _there(tensors: Batch, device: torch.device) -> Batch:
    return {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}
