"""Easel: a shared studio for machine learning."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from easel.version import __version__

if TYPE_CHECKING:
    from easel.metrics import log_metric, log_progress, log_tag
    from easel.sdk.async_client import AsyncClient
    from easel.sdk.client import Client
    from easel.sdk.decorate import job
    from easel.tune.by_run import Trial
    from easel.tune.minimise import maximise, minimise, run

_LAZY = {
    "AsyncClient": "easel.sdk.async_client",
    "Client": "easel.sdk.client",
    "Trial": "easel.tune.by_run",
    "job": "easel.sdk.decorate",
    "log_metric": "easel.metrics",
    "log_progress": "easel.metrics",
    "log_tag": "easel.metrics",
    "maximise": "easel.tune.minimise",
    "minimise": "easel.tune.minimise",
    "run": "easel.tune.minimise",
}
"""Public names and where they live: `import easel` costs nothing until one is used."""

__all__ = [
    "AsyncClient",
    "Client",
    "Trial",
    "__version__",
    "job",
    "log_metric",
    "log_progress",
    "log_tag",
    "maximise",
    "minimise",
    "run",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(_module_of(name), name)
    raise AttributeError(f"module 'easel' has no attribute {name!r}")


def _module_of(name: str) -> ModuleType:
    """Returns the module of a public name; where a package is not installed, says how it comes."""
    try:
        return import_module(_LAZY[name])
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "easel"):
            raise
        extra = "[optimise]" if _LAZY[name].startswith("easel.tune.") else ""
        told = f"easel.{name} needs the package {missing}: pip install 'easel-ml{extra}'"
        raise ModuleNotFoundError(told, name=error.name) from error


class _CallablePackage(ModuleType):
    """The subpackage `easel.run`, which is called like the function of the same name."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return _module_of("run").run(*arguments, **options)


class _Easel(ModuleType):
    """This package: importing `easel.run` puts the subpackage where the public function was."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "run" and isinstance(value, ModuleType):
            value.__class__ = _CallablePackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Easel
