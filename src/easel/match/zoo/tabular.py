"""Networks over tables: an MLP with periodic embeddings in the manner of RealMLP (Holzmüller, Grinsztajn & Steinwart
2024), and an ensemble that shares its weights in the manner of TabM (Gorishniy, Kotelnikov & Babenko 2025).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class TableInput(nn.Module):
    """`(n, numbers), (n, categories) → (n, width)`: every number beside a small periodic embedding of it, every
    category by an embedding of its own (few values: one place for each).
    """

    def __init__(self, numbers: int, sizes: Sequence[int], periods: int = 8, size: int = 3) -> None:
        super().__init__()
        self.numbers = numbers
        self.frequency = nn.Parameter(0.3 * torch.randn(numbers, periods))
        self.phase = nn.Parameter(math.pi * (2 * torch.rand(numbers, periods) - 1))
        self.mix = nn.Parameter(torch.randn(numbers, periods, size) / math.sqrt(periods))
        self.shift = nn.Parameter(torch.zeros(numbers, size))
        self.scale = nn.Parameter(torch.ones(numbers * (1 + size)))
        widths = [min(16, max(2, values if values <= 9 else round(1.6 * values**0.56))) for values in sizes]
        self.embed = nn.ModuleList(nn.Embedding(n, w) for n, w in zip(sizes, widths, strict=True))
        self.width = numbers * (1 + size) + sum(widths)

    def forward(self, x: Tensor, c: Tensor | None) -> Tensor:
        parts = []
        if self.numbers:
            waves = torch.cos(2 * math.pi * x.unsqueeze(-1) * self.frequency + self.phase)
            mixed = torch.einsum("ndp,dps->nds", waves, self.mix) + self.shift
            parts.append(torch.cat([x, mixed.flatten(1)], dim=1) * self.scale)
        if c is not None:
            parts += [embed(c[:, k]) for k, embed in enumerate(self.embed)]
        return torch.cat(parts, dim=1)


class RealMLP(nn.Module):
    """Three wide layers after `TableInput`."""

    def __init__(self, numbers: int, sizes: Sequence[int], outputs: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.input = TableInput(numbers, sizes)
        layers: list[nn.Module] = []
        width = self.input.width
        for _ in range(3):
            layers += [nn.Linear(width, hidden), nn.SiLU(), nn.Dropout(dropout)]
            width = hidden
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor, c: Tensor | None = None) -> Tensor:
        out: Tensor = self.head(self.layers(self.input(x, c)))
        return out


class SharedLinear(nn.Module):
    """`(n, members, in) → (n, members, out)`: one weight for all members, each with its own scales before and after."""

    def __init__(self, inside: int, outside: int, members: int, *, first: bool) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inside)
        self.weight = nn.Parameter(torch.empty(inside, outside).uniform_(-bound, bound))
        # The first layer's signs make the members differ; later ones begin alike.
        before = torch.randint(0, 2, (members, inside)) * 2.0 - 1.0 if first else torch.ones(members, inside)
        self.before = nn.Parameter(before)
        self.after = nn.Parameter(torch.ones(members, outside))
        self.bias = nn.Parameter(torch.empty(members, outside).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        return ((x * self.before) @ self.weight) * self.after + self.bias


class TabM(nn.Module):
    """`members(…)`: the answers of all members `(n, members, outputs)`; as a network it answers with their mean, of
    probabilities where `classify` says so.
    """

    def __init__(
        self,
        numbers: int,
        sizes: Sequence[int],
        outputs: int,
        hidden: int,
        count: int,
        *,
        classify: bool,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.count, self.classify = count, classify
        self.input = TableInput(numbers, sizes)
        self.first = SharedLinear(self.input.width, hidden, count, first=True)
        self.second = SharedLinear(hidden, hidden, count, first=False)
        self.dropout = nn.Dropout(dropout)
        self.weight = nn.Parameter(torch.randn(count, hidden, outputs) / math.sqrt(hidden))
        self.bias = nn.Parameter(torch.zeros(count, outputs))

    def members(self, x: Tensor, c: Tensor | None = None) -> Tensor:
        seen = self.input(x, c).unsqueeze(1).expand(-1, self.count, -1)
        hidden = self.dropout(torch.relu(self.first(seen)))
        hidden = self.dropout(torch.relu(self.second(hidden)))
        return torch.einsum("nkh,kho->nko", hidden, self.weight) + self.bias

    def forward(self, x: Tensor, c: Tensor | None = None) -> Tensor:
        answers = self.members(x, c)
        if not self.classify:
            return answers.mean(1)
        return torch.softmax(answers, dim=2).mean(1).clamp(min=1e-12).log()
