"""One error base. Each kind is named for its remedy, and its message says what to do next."""

from __future__ import annotations

from typing import Any, ClassVar


class EaselError(Exception):
    """Raised on purpose. `kind` is stable and travels over the wire; `details` are plain values."""

    kind: ClassVar[str] = "error"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class InvalidInput(EaselError):
    """The request itself is wrong: change it."""

    kind = "invalid-input"


class Unauthenticated(EaselError):
    """Nobody is logged in: log in."""

    kind = "unauthenticated"


class Denied(EaselError):
    """The caller may see the thing but not do this: ask somebody who may."""

    kind = "denied"


class NotFound(EaselError):
    """The thing does not exist, or not for this caller: check the name."""

    kind = "not-found"


class Conflict(EaselError):
    """The thing is not in a state that allows this: look at it again, then decide."""

    kind = "conflict"


class QuotaExhausted(EaselError):
    """A limit was reached: wait, or ask an admin to raise it."""

    kind = "quota-exhausted"


class TooLarge(EaselError):
    """More than is accepted at once: send less."""

    kind = "too-large"


class Fenced(EaselError):
    """Another controller has taken over: stop acting, and stand by."""

    kind = "fenced"


class TryLater(EaselError):
    """Something that we need is away for now: the same call may work in `retry_after` seconds."""

    kind = "try-later"

    def __init__(self, message: str, retry_after: float = 5.0, **details: Any) -> None:
        super().__init__(message, **details)
        self.retry_after = retry_after


class Misconfigured(EaselError):
    """The installation or its settings are wrong: an admin must mend them."""

    kind = "misconfigured"
