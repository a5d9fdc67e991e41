"""Every table. Importing a domain's module here is what makes `metadata` complete."""

from easel.store.schema import (
    apps,
    audit,
    events,
    identity,
    jobs,
    lake,
    messages,
    operate,
    price,
    shares,
    studies,
    support,
    tenants,
    tracking,
    workers,
)
from easel.store.schema.metadata import metadata

__all__ = [
    "apps",
    "audit",
    "events",
    "identity",
    "jobs",
    "lake",
    "messages",
    "metadata",
    "operate",
    "price",
    "shares",
    "studies",
    "support",
    "tenants",
    "tracking",
    "workers",
]
