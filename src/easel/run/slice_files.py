"""What one slice of a longer run leaves for the next: the files of its checkpoint folder, laid out and kept."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from easel.errors import EaselError
from easel.run.depot import Depot
from easel.run.order import Order


def lay_out_checkpoint(depot: Depot, order: Order, folder: Path) -> None:
    """Put what the slice before left into `folder`; a run whose checkpoint cannot be had begins anew.

    What an earlier attempt of the same slice left is newer, and stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not order.resume or any(folder.iterdir()):
        return
    try:
        depot.fetch(order.resume, folder, order.key, read_only=False)
    except (EaselError, OSError) as error:
        sys.stderr.write(f"the checkpoint could not be fetched, the run begins anew: {error}\n")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)


def keep_checkpoint(folder: Path, output: Path) -> None:
    """Copy it into the output without what is half-written; where there is no room, the next slice begins anew.

    What the run itself put there is removed, and links stay links: they might lead out of its folder.
    """
    try:
        if output.is_symlink() or output.is_file():
            output.unlink()
        elif output.exists():
            shutil.rmtree(output)
        shutil.copytree(folder, output, symlinks=True, ignore=shutil.ignore_patterns("*.partial"))
    except OSError as error:
        sys.stderr.write(f"the checkpoint could not be kept: {error}\n")
        shutil.rmtree(output, ignore_errors=True)
