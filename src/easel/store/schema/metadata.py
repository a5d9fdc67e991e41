"""What all tables share: naming of constraints, and how a moment is stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Dialect, Integer, MetaData, TypeDecorator

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

BigSerial = BigInteger().with_variant(Integer, "sqlite")
"""An auto-incrementing key: SQLite increments only a column declared INTEGER."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


class Moment(TypeDecorator[datetime]):
    """A UTC time as whole microseconds since 1970: sorts and compares alike on every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else self.whole_microseconds(value)

    @staticmethod
    def whole_microseconds(value: datetime) -> int:
        """Returns how a moment is stored."""
        # The last evening of the year 9999 west of Greenwich is no time in UTC: it becomes the last that is.
        return min(max((value - _EPOCH) // _MICROSECOND, _FIRST), _LAST)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else self.moment(value)

    @staticmethod
    def moment(microseconds: int) -> datetime:
        """Returns what is stored as so many microseconds."""
        return _EPOCH + timedelta(microseconds=microseconds)
