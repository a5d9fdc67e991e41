"""Which releases work with this schema; read and written by `store.migrate`."""

from __future__ import annotations

from sqlalchemy import Column, String, Table

from easel.store.schema.metadata import metadata

schema_support = Table("schema_support", metadata, Column("oldest", String(8), primary_key=True))
