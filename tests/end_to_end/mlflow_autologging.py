"""Training code that knows nothing of Easel: scikit-learn, LightGBM and PyTorch, logged by `mlflow.autolog()`."""

from __future__ import annotations

import lightgbm
import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

import mlflow

rng = np.random.default_rng(0)
x = rng.normal(size=(80, 3))
y = (x.sum(axis=1) > 0).astype(int)

mlflow.autolog(log_input_examples=False)
mlflow.lightgbm.autolog(log_models=False)
with mlflow.start_run():
    network = torch.nn.Linear(3, 1)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.5)
    inputs, target = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    mlflow.log_param("lr", 0.5)
    for step in range(5):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(network(inputs).squeeze(), target)
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        mlflow.log_metric("loss", loss.item(), step=step)
    mlflow.log_text("by a network", "notes.txt")
    with mlflow.start_run(run_name="sklearn", nested=True):
        LogisticRegression(C=0.5).fit(x, y)
    with mlflow.start_run(run_name="lightgbm", nested=True):
        data = lightgbm.Dataset(x, y)
        lightgbm.train(
            {"num_leaves": 4, "objective": "binary", "verbose": -1},
            data,
            num_boost_round=3,
            valid_sets=[data],
            valid_names=["train"],
        )
print("done")
