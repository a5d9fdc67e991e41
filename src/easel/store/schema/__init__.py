"""Every table. Importing a domain's module here is what makes `metadata` complete."""

from easel.store.schema import apps, events, identity, jobs, lake, pool, price, studies
from easel.store.schema.metadata import metadata

__all__ = ["apps", "events", "identity", "jobs", "lake", "metadata", "pool", "price", "studies"]
