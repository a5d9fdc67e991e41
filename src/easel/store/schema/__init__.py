"""Every table. Importing a domain's module here is what makes `metadata` complete."""

from easel.store.schema import events, identity, jobs, lake, price
from easel.store.schema.metadata import metadata

__all__ = ["events", "identity", "jobs", "lake", "metadata", "price"]
