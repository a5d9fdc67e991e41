"""The API's own description as a file, from which the dashboard's typed client is made (`scripts/reference`)."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from easel.serve.app import create_app
from easel.serve.settings import Settings
from easel.store.engine import Store


def description() -> str:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{folder}/easel.sqlite")
        found = create_app(Settings(home=Path(folder)), store).openapi()
        store.close()
    found["info"]["version"] = "0"  # a release does not change the client
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(description())
