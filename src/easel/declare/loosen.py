"""Which changes of a program leave all that was fed and learned valid: values may be missing, classes are added."""

from __future__ import annotations

from dataclasses import replace

from easel.declare.program import Category, DataType, Field, Program, ProgramError, Tensor, write_field


def loosened(before: Program, after: Program) -> Program:
    """`after`, if every example that fits `before` fits it too; otherwise a `ProgramError` that says what does not."""
    for side, old, new in (("input", before.input, after.input), ("output", before.output, after.output)):
        _check(side, old, new)
    return after


def _check(side: str, old: DataType, new: DataType) -> None:
    if old.pointers != new.pointers or old.field_names != new.field_names:
        raise ProgramError(
            f"{side}: fields and pointers stay as they are ({', '.join(old.field_names)[:200]}); "
            "for other ones declare another app"
        )
    for name, one, other in zip(old.field_names, old.fields, new.fields, strict=True):
        if not _wider(one, other):
            raise ProgramError(
                f"{side}.{name}: {write_field(one)} cannot become {write_field(other)}: what was fed must still fit. "
                "A value may become optional, and classes may be added"
            )


def _wider(old: Field, new: Field) -> bool:
    """Whether every value of `old` is one of `new`."""
    if isinstance(old, Tensor) or isinstance(new, Tensor):
        return old == replace(new, name=old.name)
    if old.role != new.role:
        return False
    if type(old) is not type(new) or (old.optional and not new.optional):
        return False
    if isinstance(old, Category) and isinstance(new, Category):
        return not new.values or (bool(old.values) and set(old.values) <= set(new.values))
    return replace(old, name=None, optional=False) == replace(new, name=None, optional=False)
