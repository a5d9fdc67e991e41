"""Trees, bits and words: N-ary Tree-LSTM, bit-level RNN, bit-level auto-encoder, a small text network."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TreeLSTM(nn.Module):
    """N-ary Tree-LSTM, Tai et al. 2015 §3.2; `(n, nodes, width), children → (n, outputs)`.

    Every pointer has its own weights, so that left and right are told apart.

    Nodes come with parents before children, so one sweep from the last node to the first meets every child
    before its parent. Slot `nodes` is a node of zeros that stands for "no child".
    """

    def __init__(self, width: int, pointers: int, outputs: int, scale: float) -> None:
        super().__init__()
        self.hidden = max(8, int(64 * scale))
        self.slots = nn.ModuleList(nn.Linear(self.hidden, self.hidden) for _ in range(pointers))
        self.embed = nn.Linear(width, self.hidden)
        self.gates = nn.Linear(2 * self.hidden, 3 * self.hidden)
        self.forget = nn.Linear(2 * self.hidden, self.hidden)
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(self.hidden, outputs))

    def forward(self, x: Tensor, children: Tensor) -> Tensor:
        n, nodes, _ = x.shape
        embedded = torch.relu(self.embed(x))
        zero = embedded.new_zeros(n, self.hidden)
        h = [zero] * (nodes + 1)
        c = [zero] * (nodes + 1)
        rows = torch.arange(n, device=x.device)
        for node in range(nodes - 1, -1, -1):
            later_h, later_c = torch.stack(h[node + 1 :], 1), torch.stack(c[node + 1 :], 1)
            total = zero
            kept = zero
            for slot, own in enumerate(self.slots):
                place = children[:, node, slot] - (node + 1)
                child_h, child_c = own(later_h[rows, place]), later_c[rows, place]
                total = total + child_h
                kept = kept + torch.sigmoid(self.forget(torch.cat([embedded[:, node], child_h], 1))) * child_c
            i, o, u = self.gates(torch.cat([embedded[:, node], total], 1)).chunk(3, dim=1)
            c[node] = torch.sigmoid(i) * torch.tanh(u) + kept
            h[node] = torch.sigmoid(o) * torch.tanh(c[node])
        out: Tensor = self.head(h[0])
        return out


WORD_BITS = 32


class BitRNN(nn.Module):
    """`(n, length)` bits, read in words of 32 by a GRU → `(n, outputs)`."""

    def __init__(self, outputs: int, width: float) -> None:
        super().__init__()
        hidden = max(16, int(128 * width))
        self.words = nn.Linear(WORD_BITS, hidden)
        self.layer = nn.GRU(hidden, hidden, batch_first=True)
        self.head = nn.Linear(2 * hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        words = (2.0 * x - 1.0).reshape(len(x), -1, WORD_BITS)
        states, _ = self.layer(torch.relu(self.words(words)))
        out: Tensor = self.head(torch.cat([states.mean(1), states[:, -1]], dim=1))
        return out


class BitAutoEncoder(nn.Module):
    """Bits of the input → a narrow code → the logits of the output's bits."""

    def __init__(self, length: int, out_length: int, width: float) -> None:
        super().__init__()
        hidden, code = max(32, int(512 * width)), max(16, int(128 * width))
        self.layers = nn.Sequential(
            nn.Linear(length, hidden),
            nn.ReLU(),
            nn.Linear(hidden, code),
            nn.ReLU(),
            nn.Linear(code, hidden),
            nn.ReLU(),
            nn.Linear(hidden, out_length),
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(2.0 * x - 1.0)
        return out


class TextNetwork(nn.Module):
    """Word embeddings, convolutions over 3 words, maximum and mean over the text → `(n, outputs)`.

    The embeddings are trained from the corpus, or given (a GloVe file) and then left as they are, so that words
    which no example holds keep their place among those that the network learned from.
    """

    def __init__(self, words: int, outputs: int, width: float, embedding: int = 100) -> None:
        super().__init__()
        hidden = max(16, int(128 * width))
        self.embed = nn.Embedding(words, embedding, padding_idx=0)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.convolution = nn.Conv1d(embedding, hidden, 3, padding=1)
        self.head = nn.Sequential(nn.Dropout(0.3), nn.Linear(hidden + embedding, outputs))

    def forward(self, x: Tensor) -> Tensor:
        mask = (x > 0).unsqueeze(-1).to(self.embed.weight.dtype)
        embedded = self.embed(x) * mask
        found = torch.relu(self.convolution(embedded.transpose(1, 2))).amax(2)
        mean = embedded.sum(1) / mask.sum(1).clamp(min=1.0)
        out: Tensor = self.head(torch.cat([found, mean], dim=1))
        return out
