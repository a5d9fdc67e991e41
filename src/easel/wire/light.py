"""Wire models without pydantic, whose import takes longer than most commands: types are read, limits are not checked.

A command of the command line asks for it with `choose()` before the first wire model is imported; the server then
checks what it is sent, as it always does. Everything else (the server, the SDK in a program) uses pydantic.
"""

from __future__ import annotations

import functools
import json
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, Union

_chosen = False


def choose() -> bool:
    """Let wire models be light from now on; returns whether they are, which is too late once one is imported."""
    global _chosen
    if "easel.wire.model" not in sys.modules:
        _chosen = True
    return _chosen


def is_chosen() -> bool:
    return _chosen


MISSING: Any = object()
Convert = Callable[[Any], Any]
F = TypeVar("F", bound=Callable[..., Any])


def _cached(function: F) -> F:
    """Returns the function as it is for callers and type checkers, each answer worked out once."""
    return typing.cast(F, functools.cache(function))


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """What of pydantic's `Field` a client needs: its default. Limits and descriptions are the server's."""

    default: Any = MISSING
    default_factory: Callable[[], Any] | None = None


def Field(  # noqa: N802 - pydantic's name
    default: Any = MISSING, *, default_factory: Callable[[], Any] | None = None, **_: Any
) -> Any:
    return FieldInfo(default, default_factory)


@dataclass(frozen=True, slots=True)
class BeforeValidator:
    func: Convert


class ValidationError(ValueError):
    """A field is missing or unknown."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self._found = {"loc": (place,), "msg": message}

    def errors(self) -> list[dict[str, Any]]:
        return [self._found]


@dataclass(frozen=True, slots=True)
class _ReadField:
    """A field of a model: how its value is read, None where it stays as it is, and what it is when left out."""

    convert: Convert | None
    info: FieldInfo

    def default(self) -> Any:
        return self.info.default_factory() if self.info.default_factory else self.info.default


class BaseModel:
    """Fields by name, read from JSON by their annotations; `model_…` as in pydantic, as far as clients use it."""

    model_config: ClassVar[dict[str, Any]] = {}
    _arguments: ClassVar[dict[Any, Any]] = {}
    __fields_set: frozenset[str]

    def __init__(self, /, **values: Any) -> None:
        known = _fields_of(type(self))
        unknown = next((name for name in values if name not in known), None)
        if unknown is not None and self.model_config.get("extra") == "forbid":
            raise ValidationError(unknown, "Extra inputs are not permitted")
        state = self.__dict__
        for name, field in known.items():
            value = values.get(name, MISSING)
            if value is MISSING:
                value = field.default()
                if value is MISSING:
                    raise ValidationError(name, "Field required")
            elif field.convert is not None:
                value = field.convert(value)
            state[name] = value
        state["__set__"] = frozenset(values) & known.keys()

    def __class_getitem__(cls, item: Any) -> Any:
        return _bound(cls, item)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: make another with model_copy")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in _of(self).items())})"

    @classmethod
    def model_validate(cls, given: Any) -> Self:
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise ValidationError(cls.__name__, "Input should be an object")
        return cls(**given)

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        return cls.model_validate(json.loads(text))

    def model_dump(self, *, mode: str = "python", exclude_unset: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = _dumped(self, mode == "json", exclude_unset)
        return found

    def model_dump_json(self, *, indent: int | None = None) -> str:
        separators = (",", ":") if indent is None else None
        return json.dumps(
            self.model_dump(mode="json"), indent=indent, separators=separators, ensure_ascii=False
        )

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__ | dict(update))
        made.__dict__["__set__"] = self.__dict__["__set__"] | update.keys()
        return made


class _Fields:
    """`Model.model_fields`: its fields by name, in their order, each with its default."""

    def __get__(self, _: object, model: type[BaseModel]) -> dict[str, Any]:
        return {name: field.info for name, field in _fields_of(model).items()}


BaseModel.model_fields = _Fields()  # type: ignore[attr-defined]


@_cached
def _bound(model: type[BaseModel], item: Any) -> Any:
    """Returns a generic model with its type filled in, as `Page[Job]` is."""
    variable = next(
        each for base in model.__mro__ for each in getattr(base, "__parameters__", ()) if base is not object
    )
    return type(f"{model.__name__}[{item.__name__}]", (model,), {"_arguments": {variable: item}})


def _of(model: BaseModel) -> dict[str, Any]:
    return {name: value for name, value in model.__dict__.items() if name != "__set__"}


@_cached
def _fields_of(model: type[BaseModel]) -> dict[str, _ReadField]:
    """Returns the fields of a model, those of its bases first; annotations are evaluated here, once."""
    found: dict[str, _ReadField] = {}
    for base in reversed(model.__mro__):
        if base is BaseModel or not issubclass(base, BaseModel):
            continue
        for name, hint in _hints(base).items():
            default = base.__dict__.get(name, MISSING)
            info = default if isinstance(default, FieldInfo) else FieldInfo(default)
            if info.default is MISSING and info.default_factory is None:
                info = _inside(hint) or info
            found[name] = _ReadField(_converter(hint, model._arguments), info)
    return found


@_cached
def _hints(model: type) -> dict[str, Any]:
    """Returns the annotations of the class's own fields, evaluated where it was written."""
    names = vars(sys.modules[model.__module__])
    own = model.__dict__.get("__annotations__", {})  # noqa: RUF063 - inspect takes as long as all of this
    found = {name: eval(text, names) if isinstance(text, str) else text for name, text in own.items()}  # noqa: S307
    return {name: hint for name, hint in found.items() if typing.get_origin(hint) is not ClassVar}


def _inside(hint: Any) -> FieldInfo | None:
    """Returns a default that stands within `Annotated[…, Field(default=…)]`."""
    about = getattr(hint, "__metadata__", ())
    return next((each for each in about if isinstance(each, FieldInfo)), None)


def _converter(hint: Any, arguments: Mapping[Any, Any]) -> Convert | None:
    """Returns what makes a value of this type from plain JSON; None where JSON has it already."""
    if isinstance(hint, TypeVar):
        return _converter(arguments[hint], arguments)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        before = [each.func for each in hint.__metadata__ if isinstance(each, BeforeValidator)]
        then = _converter(inner[0], arguments)
        return _chain([*before, *([then] if then else [])])
    if origin in (Union, types.UnionType):
        return _of_several([each for each in inner if each is not types.NoneType], arguments)
    if origin in (list, tuple, set, frozenset) and inner:
        each = _converter(inner[0], arguments)
        make: Convert = origin
        if each is None:
            return None if origin is list else make
        return lambda values: make(map(each, values))
    if origin is dict:
        one = _converter(inner[1], arguments)
        return None if one is None else lambda values: {key: one(value) for key, value in values.items()}
    if not isinstance(hint, type):
        return None
    if issubclass(hint, BaseModel):
        return hint.model_validate
    if hint is float:
        return lambda value: float(value) if isinstance(value, int) else value
    if hint is datetime:
        return _moment
    if is_dataclass(hint):
        return functools.partial(_frozen, hint, frozenset(each.name for each in fields(hint)))
    return hint if issubclass(hint, Enum) else None


def _frozen(kind: Callable[..., Any], names: frozenset[str], value: Any) -> Any:
    """A frozen value from its fields; what a newer server tells besides is left out, as pydantic does."""
    if not isinstance(value, Mapping):
        return value
    return kind(**{name: each for name, each in value.items() if name in names})


def _chain(steps: list[Convert]) -> Convert | None:
    if len(steps) < 2:
        return steps[0] if steps else None
    return lambda value: functools.reduce(lambda each, step: step(each), steps, value)


def _of_several(hints: list[Any], arguments: Mapping[Any, Any]) -> Convert | None:
    """Returns what reads a value that may be nothing, or of one of several types: the first that takes it."""
    converters = [_converter(each, arguments) for each in hints]
    if not any(converters):
        return None
    models = [each for each in map(_bare, hints) if isinstance(each, type) and issubclass(each, BaseModel)]

    def read(value: Any) -> Any:
        if value is None or not isinstance(value, Mapping) or not models:
            only = converters[0] if len(converters) == 1 else None
            return value if value is None or only is None else only(value)
        fitting = next((model for model in models if _fits(model, value)), None)
        return value if fitting is None else fitting.model_validate(value)

    return read


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _fits(model: type[BaseModel], value: Mapping[str, Any]) -> bool:
    """Whether the value has what the model needs; a `Literal` such as a kind must be the same."""
    for name, field in _fields_of(model).items():
        if name not in value:
            if field.default() is MISSING:
                return False
            continue
        allowed = _literals(model, name)
        if allowed and value[name] not in allowed:
            return False
    return True


@_cached
def _literals(model: type[BaseModel], name: str) -> tuple[Any, ...]:
    hint = next((_bare(_hints(base)[name]) for base in model.__mro__ if name in _hints(base)), None)
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


def _moment(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _dumped(value: Any, as_json: bool, set_only: bool) -> Any:
    if isinstance(value, BaseModel):
        given = value.__dict__["__set__"] if set_only else value.__dict__
        return {name: _dumped(each, as_json, set_only) for name, each in _of(value).items() if name in given}
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _dumped(each, as_json, set_only) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        inside = [_dumped(each, as_json, set_only) for each in value]
        return inside if as_json or isinstance(value, list) else type(value)(inside)
    if as_json and isinstance(value, Enum):
        return value.value
    if as_json and isinstance(value, datetime):
        text = value.isoformat()
        return f"{text[:-6]}Z" if text.endswith("+00:00") else text
    return value
