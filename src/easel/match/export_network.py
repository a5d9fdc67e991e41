"""A bag of networks as one ONNX graph that averages them."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from easel.match.model import Model
from easel.match.network_body import NetworkBody
from easel.match.targets import Classes


class Committee(nn.Module):
    """The mean of the members' answers, as probabilities where the answer is a class."""

    def __init__(self, members: tuple[nn.Module, ...], classify: bool) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.classify = classify

    def forward(self, *inputs: Tensor) -> Tensor:
        answers = [member(*inputs) for member in self.members]
        if self.classify:
            answers = [torch.softmax(answer, dim=1) for answer in answers]
        return torch.stack(answers).mean(0)


def export_network(model: Model, arrays: dict[str, Any], path: Path) -> None:
    """Write the graph for inputs named as `arrays`, with a free number of rows."""
    body = model.body
    assert isinstance(body, NetworkBody)
    committee = Committee(body.networks, isinstance(model.target, Classes)).eval()
    inputs = tuple(torch.from_numpy(array) for array in arrays.values())
    rows = torch.export.Dim("rows", min=1)
    quiet = logging.getLogger("torch.onnx")
    quiet.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            committee,
            inputs,
            path,
            input_names=list(arrays),
            output_names=["answer"],
            dynamic_shapes=(tuple({0: rows} for _ in inputs),),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
