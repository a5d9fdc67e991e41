"""The loop that makes backups and gives up what is old, beside the controller that acts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from easel.errors import EaselError
from easel.flow.lake.upload import Lake
from easel.flow.operate.backups import Backing, back_up_if_due
from easel.flow.operate.retention import apply_rules
from easel.lake.blobs.address import ACCESS_KEY, SECRET_KEY, bucket_address
from easel.lake.place import Place, open_place
from easel.serve.settings import Settings
from easel.store.engine import Store

log = logging.getLogger("easel.housekeeping")
EVERY_S = 30.0


def place_of(settings: Settings, target: str) -> Place:
    """The folder or bucket that a person named, opened with this installation's credentials."""
    if not target.startswith("s3:"):
        return open_place(target)
    secret = settings.s3_secret_key.get_secret_value() if settings.s3_secret_key else ""
    environment = {ACCESS_KEY: settings.s3_access_key, SECRET_KEY: secret}
    return open_place(bucket_address(target, settings.s3_endpoint, settings.s3_region), environment)


def backing_of(settings: Settings, lake: Lake) -> Backing:
    return Backing(lake, settings.folder / "secrets", lambda target: place_of(settings, target))


def keep_house(
    store: Store,
    backing: Backing,
    leads: Callable[[], bool],
    stopping: threading.Event,
    every: float = EVERY_S,
) -> None:
    """Do what is due until `stopping` is set."""
    while not stopping.wait(every):
        if leads():
            keep_house_once(store, backing)


def keep_house_once(store: Store, backing: Backing) -> None:
    """One round. Trouble is logged and waited out."""
    try:
        made = back_up_if_due(store, backing)
        if made is not None:
            log.info("backup %s: %d rows, %d new blobs", made.name, made.rows, made.blobs)
        apply_rules(store)
    except EaselError as error:
        log.warning("housekeeping waits: %s", error)
    except Exception:
        log.exception("housekeeping failed; trying again")
