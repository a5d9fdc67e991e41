from easel.testing.store import StoreSuite


class TestStore(StoreSuite):
    """Over SQLite and PostgreSQL: the `store` fixture is parametrised."""
