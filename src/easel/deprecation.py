"""Marks what will go: calls still work for a release and say what to use instead."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def deprecated(instead: str, *, gone_in: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns a decorator that warns at every call: use `instead`; this is gone in version `gone_in`."""

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        said = f"{function.__qualname__} is deprecated and will be gone in {gone_in}: use {instead}"

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            warnings.warn(said, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        return call

    return mark
