"""Series to series: an encoder, and a decoder that attends to the encoder's states (Bahdanau et al. 2015)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Seq2Seq(nn.Module):
    """`(n, channels, length), mask → (n, out_channels + 1, out_length)`; the last channel says "goes on".

    Each output step is fed the previous answer; in training the true one (`teacher`), shifted by a step.
    """

    def __init__(self, channels: int, out_channels: int, out_length: int, width: float) -> None:
        super().__init__()
        hidden = max(16, int(128 * width))
        self.out_length = out_length
        self.encoder = nn.GRU(channels, hidden // 2, batch_first=True, bidirectional=True)
        self.cell = nn.GRUCell(out_channels + 1 + hidden, hidden)
        self.begin = nn.Linear(hidden, hidden)
        self.query = nn.Linear(hidden, hidden)
        self.head = nn.Linear(2 * hidden, out_channels + 1)

    def forward(self, x: Tensor, mask: Tensor, teacher: Tensor | None = None) -> Tensor:
        states, _ = self.encoder(x.transpose(1, 2))
        weights = mask.unsqueeze(-1)
        hidden = torch.tanh(self.begin((states * weights).sum(1) / weights.sum(1).clamp(min=1.0)))
        previous = states.new_zeros(len(x), self.head.out_features)
        answers = []
        for step in range(self.out_length):
            scores = torch.einsum("nlh,nh->nl", states, self.query(hidden)) / hidden.shape[1] ** 0.5
            attention = torch.softmax(scores + (mask - 1.0) * 1e4, dim=1)
            context = torch.einsum("nl,nlh->nh", attention, states)
            hidden = self.cell(torch.cat([previous, context], dim=1), hidden)
            answer = self.head(torch.cat([hidden, context], dim=1))
            answers.append(answer)
            previous = answer if teacher is None else teacher[:, :, step]
        return torch.stack(answers, dim=2)
