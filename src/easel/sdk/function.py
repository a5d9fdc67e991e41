"""A plain Python function as a job: sent by its source, never pickled."""

from __future__ import annotations

import builtins
import inspect
import json
import os
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from easel.errors import InvalidInput

_MODULE = "easel_function"


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """`target` is the function as `module:name`; `root` the folder that its module is imported from.

    A function of a notebook or a prompt has no folder: `source` is the module that is written for it.
    """

    target: str
    root: Path | None
    source: str = ""
    set_name: str | None = None

    @contextmanager
    def folder(self, given: str | os.PathLike[str] | None) -> Iterator[Path]:
        """The folder to send: the caller's choice, the module's own, or one with the written module."""
        if given is not None:
            yield Path(given).expanduser()
        elif self.root is not None:
            yield self.root
        else:
            with tempfile.TemporaryDirectory(prefix="easel-function-") as place:
                (Path(place) / f"{_MODULE}.py").write_text(self.source)
                yield Path(place)


def prepare_call(function: Callable[..., Any]) -> PreparedCall:
    """How to run a function of the caller's own modules elsewhere; what cannot be sent by source is refused."""
    plain = inspect.unwrap(function)
    if not isinstance(plain, FunctionType):
        raise InvalidInput(f"{function!r} is no plain Python function: wrap it in one")
    name = plain.__qualname__
    if "<lambda>" in name or "<locals>" in name or "." in name:
        raise InvalidInput(
            f"{name} is a lambda, a method or a function inside another: only a function at the top of a module "
            "can be sent by its source"
        )
    module = sys.modules.get(plain.__module__)
    file = getattr(module, "__file__", None)
    if plain.__module__ == "__main__":
        if file is None or not file.endswith(".py"):
            return PreparedCall(f"{_MODULE}:{name}", None, written_module(plain), f"code-{name.lower()}")
        path = Path(file).resolve()
        if not path.stem.isidentifier():
            raise InvalidInput(f"{path.name} cannot be imported: give it a name such as train.py")
        return PreparedCall(f"{path.stem}:{name}", path.parent)
    if file is None:
        raise InvalidInput(f"{plain.__module__} has no file: put {name} into a module of yours")
    path = Path(file).resolve()
    depth = len(plain.__module__.split(".")) + (path.name == "__init__.py")
    root = path.parents[depth - 1]
    if "site-packages" in root.parts or root == Path(os.__file__).resolve().parent:
        raise InvalidInput(
            f"{plain.__module__} is an installed package, not code of yours: run a command, or wrap it in a function"
        )
    return PreparedCall(f"{plain.__module__}:{name}", root)


def call_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments by name, as the function itself would take them."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    given: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            given |= value
        elif kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            raise InvalidInput(f"argument {name!r} of {function.__qualname__} has no name to send it by")
        else:
            given[name] = value
    return given


def written_module(function: FunctionType) -> str:
    """The source of a function of a notebook, with the functions, modules and constants that it names."""
    imports: dict[str, str] = {}
    constants: dict[str, str] = {}
    functions: dict[str, str] = {}
    pending = [function]
    while pending:
        current = pending.pop()
        if current.__name__ in functions:
            continue
        functions[current.__name__] = _source(current)
        for name in sorted(_names(current.__code__)):
            if name not in current.__globals__ or hasattr(builtins, name):
                continue
            value = current.__globals__[name]
            if isinstance(value, ModuleType):
                imports[name] = f"import {value.__name__} as {name}"
            elif isinstance(value, FunctionType) and value.__module__ == current.__module__:
                pending.append(value)
            elif getattr(value, "__module__", None) not in (None, "__main__") and hasattr(
                value, "__qualname__"
            ):
                imports[name] = f"from {value.__module__} import {value.__qualname__} as {name}"
            else:
                constants[name] = _constant(name, value, function)
    parts = [
        "from __future__ import annotations",
        *imports.values(),
        *constants.values(),
        *functions.values(),
    ]
    return "\n\n".join(parts) + "\n"


def _names(code: CodeType) -> set[str]:
    """Names that a function looks up outside itself, also in the functions inside it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _source(function: FunctionType) -> str:
    try:
        lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    except (OSError, TypeError) as error:
        raise InvalidInput(
            f"the source of {function.__name__} is not to be had: put it into a file"
        ) from error
    start = next(i for i, line in enumerate(lines) if line.startswith(("def ", "async def ")))
    return "\n".join(lines[start:])  # without decorators, which were for here


def _constant(name: str, value: Any, function: FunctionType) -> str:
    try:
        text = json.dumps(value)
        if json.loads(text) != value:
            raise ValueError
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{function.__name__} uses {name}, a {type(value).__name__}, which cannot be sent by source: pass it as "
            "an argument, or put the function into a file"
        ) from None
    return f"{name} = {value!r}"
