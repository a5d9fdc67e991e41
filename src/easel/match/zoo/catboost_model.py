"""CatBoost behind the few methods of an estimator; stored as `model.cbm`, which cannot execute."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from catboost import CatBoostClassifier, CatBoostRegressor, FeaturesData, Pool
from numpy.typing import NDArray


class CatBoostModel:
    """`categorical` marks the columns of the matrix that hold category numbers, NaN for missing or new ones."""

    def __init__(
        self,
        categorical: Sequence[bool],
        *,
        classify: bool,
        outputs: int,
        depth: int,
        trees: int,
        seed: int,
        balanced: bool = False,
    ) -> None:
        self.categorical, self.classify, self.trees, self.seed = tuple(categorical), classify, trees, seed
        settings: dict[str, Any] = {
            "iterations": trees,
            "depth": depth,
            "random_seed": seed,
            "thread_count": 1,
            "verbose": False,
            "allow_writing_files": False,
        }
        if classify:
            self.model: Any = CatBoostClassifier(
                **settings, auto_class_weights="Balanced" if balanced else None
            )
        else:
            self.model = CatBoostRegressor(**settings, loss_function="MultiRMSE" if outputs > 1 else "RMSE")

    @property
    def classes_(self) -> NDArray[Any]:
        return np.asarray(self.model.classes_)

    def _pool(self, x: NDArray[Any], y: NDArray[Any] | None = None) -> Pool:
        mask = np.asarray(self.categorical, dtype=bool)
        numbers = np.ascontiguousarray(x[:, ~mask], dtype=np.float32) if (~mask).any() else None
        words = None
        if mask.any():
            places = np.where(np.isnan(x[:, mask]), -1.0, x[:, mask]).astype(int)
            words = np.char.encode(places.astype(str), "ascii").astype(object)
        return Pool(FeaturesData(num_feature_data=numbers, cat_feature_data=words), label=y)

    def fit(self, x: NDArray[Any], y: NDArray[Any]) -> CatBoostModel:
        self.model.fit(self._pool(x, y))
        return self

    def grow(
        self,
        before: CatBoostModel | None,
        x: NDArray[Any],
        y: NDArray[Any],
        to: int,
        stop: Callable[[], bool],
    ) -> CatBoostModel:
        """Fits until there are `to` trees with those of `before`, or until `stop` says so after any of them.

        The learning rate is that which CatBoost chooses for all trees; later ones draw other lots than the first did.
        """
        so_far = 0 if before is None else before.grown
        if before is not None:
            rate = before.model.get_all_params()["learning_rate"]
            self.model.set_params(
                iterations=max(self.trees - so_far, 1), learning_rate=rate, random_seed=self.seed + so_far
            )
        earlier = None if before is None else before.model
        self.model.fit(self._pool(x, y), init_model=earlier, callbacks=[_StopAfter(to - so_far, stop)])
        return self

    @property
    def grown(self) -> int:
        """How many trees it has."""
        return int(self.model.tree_count_)

    def __sklearn_clone__(self) -> CatBoostModel:
        """Returns one that is not fitted, with the same settings."""
        fresh = copy.copy(self)
        fresh.model = type(self.model)(**self.model.get_params())
        return fresh

    def predict(self, x: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(self.model.predict(self._pool(x)), dtype=np.float64)

    def predict_proba(self, x: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(self.model.predict_proba(self._pool(x)), dtype=np.float64)

    def contributions(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """`(n, columns, outputs)`: what each column adds to the number or the log-odds."""
        found = np.asarray(self.model.get_feature_importance(self._pool(x), type="ShapValues"))
        found = found[:, None] if found.ndim == 2 else found
        mask = np.asarray(self.categorical, dtype=bool)
        # numbers come first in a pool, then categories
        order = np.concatenate([np.flatnonzero(~mask), np.flatnonzero(mask)])
        whole = np.zeros((len(x), len(mask), found.shape[1]))
        whole[:, order] = found[:, :, :-1].transpose(0, 2, 1)
        return whole

    def save(self, folder: Path) -> None:
        self.model.save_model(str(folder / "model.cbm"), format="cbm")
        described = {"categorical": self.categorical, "classify": self.classify}
        (folder / "catboost.json").write_text(json.dumps(described), encoding="utf-8")


class _StopAfter:
    """Called by CatBoost after every tree: goes on while it returns True."""

    def __init__(self, trees: int, stop: Callable[[], bool]) -> None:
        self._left, self._stop = trees, stop

    def after_iteration(self, told: Any) -> bool:
        self._left -= 1
        return self._left > 0 and not self._stop()


def load_catboost(folder: Path) -> CatBoostModel:
    described = json.loads((folder / "catboost.json").read_text(encoding="utf-8"))
    loaded = CatBoostModel(
        described["categorical"], classify=described["classify"], outputs=1, depth=6, trees=1, seed=0
    )
    loaded.model.load_model(str(folder / "model.cbm"), format="cbm")
    return loaded
