"""`@easel.job`: a function that runs here when called and in the pool when submitted."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from easel.sdk.function import call_arguments

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.sdk.jobs import JobHandle

P = ParamSpec("P")
R = TypeVar("R")


class JobFunction(Generic[P, R]):
    """`train(lr=0.1)` runs here; `train.submit(lr=0.1)` is a job with the fields that the decorator named."""

    def __init__(self, function: Callable[P, R], fields: Mapping[str, Any]) -> None:
        self._function, self._fields = function, dict(fields)
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle:
        """Queue a call with the remembered log-in."""
        from easel.sdk.client import Client

        return self.submit_to(Client(), *args, **kwargs)

    def submit_to(self, client: Client, *args: P.args, **kwargs: P.kwargs) -> JobHandle:
        """Queue a call as this client."""
        arguments = call_arguments(self._function, args, kwargs)
        return client.jobs.submit(self._function, arguments=arguments, **self._fields)


@overload
def job(function: Callable[P, R]) -> JobFunction[P, R]: ...
@overload
def job(**fields: Any) -> Callable[[Callable[P, R]], JobFunction[P, R]]: ...


def job(function: Callable[..., Any] | None = None, **fields: Any) -> Any:
    """Make a function a job: `@easel.job(resources={"vcpu": 2})`. Fields are those of `client.jobs.submit`."""
    if function is not None:
        return JobFunction(function, fields)
    return lambda given: JobFunction(given, fields)
