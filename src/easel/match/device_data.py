"""Examples where a training step finds them: on the GPU if they fit there, else streamed to it ahead of their use."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

Batch = Mapping[str, Tensor]
RESIDENT_SHARE = 0.4
"""Of the GPU's free memory, what examples may take; the rest is for the network and its steps."""
AHEAD = 4
"""Batches that are gathered before they are needed, where examples stay on the host."""


@dataclass(frozen=True)
class Data:
    """Inputs and targets, each a mapping from names to tensors whose first side is the example.

    `rows` are those that count, all where there are none: folds share the tensors, which may lie on the disk.
    """

    inputs: Batch
    targets: Batch
    rows: Tensor | None = None

    def __len__(self) -> int:
        return len(next(iter(self.targets.values()))) if self.rows is None else len(self.rows)

    def only(self, rows: Tensor) -> Data:
        """Returns the same tensors, of which only `rows` count."""
        return Data(self.inputs, self.targets, rows.to(self.device))

    @property
    def device(self) -> torch.device:
        return next(iter(self.targets.values())).device

    def take(self, places: Tensor, device: torch.device) -> tuple[Batch, Batch]:
        """Returns the inputs and the targets at these places, on `device`."""
        places = places.to(self.device)
        rows = places if self.rows is None else self.rows[places]
        return _pick(self.inputs, rows, device), _pick(self.targets, rows, device)

    def resident(self, device: torch.device) -> Data:
        """Returns the same data with all of it on `device`, or itself where it does not fit there."""
        if device == self.device or device.type == "cpu":
            return self
        tensors = [*self.inputs.values(), *self.targets.values()]
        needed = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        if needed > RESIDENT_SHARE * torch.cuda.mem_get_info(device)[0]:
            return self
        rows = None if self.rows is None else self.rows.to(device)
        return Data(_moved(self.inputs, device), _moved(self.targets, device), rows)


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

    def gather() -> None:
        try:
            for row in places:
                inputs, targets = data.take(row, torch.device("cpu"))
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
            yield _there(found[0], device), _there(found[1], device)
    finally:
        over.set()
        thread.join()


def _there(tensors: Batch, device: torch.device) -> Batch:
    return {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}
