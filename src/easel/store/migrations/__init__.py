"""Alembic's scripts. Each is written by hand, tested on a database of every released schema, never edited."""
