"""SQL tables, migrations and queries, over SQLite and PostgreSQL."""
