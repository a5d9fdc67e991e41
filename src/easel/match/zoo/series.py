"""Networks for series: RNN, LSTM, bi-LSTM, GRU and a convolutional one with inception blocks.

`forward(x: (n, channels, length), mask: (n, length)) → (n, outputs)`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Recurrent(nn.Module):
    """One recurrent layer (two for width ≥ 1); mean and maximum of its states over the series' own steps.

    Pooling over all states in place of taking the last one lets long series learn within minutes.
    """

    def __init__(self, kind: str, channels: int, outputs: int, width: float) -> None:
        super().__init__()
        hidden = max(8, int(96 * width))
        both = kind == "bilstm"
        cell = {"rnn": nn.RNN, "gru": nn.GRU}.get(kind, nn.LSTM)
        self.layer = cell(
            channels, hidden, num_layers=2 if width >= 1 else 1, batch_first=True, bidirectional=both
        )
        size = hidden * (2 if both else 1)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(2 * size, outputs))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        states, _ = self.layer(x.transpose(1, 2))
        weights = mask.unsqueeze(-1)
        mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)
        top = (states * weights + (weights - 1.0) * 1e4).amax(1)
        out: Tensor = self.head(torch.cat([mean, top], dim=1))
        return out


class InceptionBlock(nn.Module):
    """Convolutions of three lengths and a pooled branch, with a residual (Ismail Fawaz et al. 2019)."""

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv1d(channels, filters, 1, bias=False)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(filters, filters, k, padding=k // 2, bias=False) for k in (5, 11, 23)
        )
        self.pooled = nn.Sequential(
            nn.MaxPool1d(3, 1, padding=1), nn.Conv1d(channels, filters, 1, bias=False)
        )
        self.norm = nn.BatchNorm1d(4 * filters)
        self.shortcut = nn.Sequential(
            nn.Conv1d(channels, 4 * filters, 1, bias=False), nn.BatchNorm1d(4 * filters)
        )

    def forward(self, x: Tensor) -> Tensor:
        narrow = self.squeeze(x)
        parts = [*(convolution(narrow) for convolution in self.convolutions), self.pooled(x)]
        return torch.relu(self.norm(torch.cat(parts, dim=1)) + self.shortcut(x))


class ConvolutionalSeries(nn.Module):
    """Inception blocks, then averages over the series' own steps."""

    def __init__(self, channels: int, outputs: int, width: float, depth: int = 3) -> None:
        super().__init__()
        filters = max(4, int(32 * width))
        sizes = [channels] + [4 * filters] * depth
        self.blocks = nn.ModuleList(InceptionBlock(size, filters) for size in sizes[:-1])
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(4 * filters, outputs))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        weights = mask.unsqueeze(1)
        for block in self.blocks:
            x = block(x) * weights
        out: Tensor = self.head(x.sum(2) / weights.sum(2).clamp(min=1.0))
        return out
