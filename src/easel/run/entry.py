"""Inside the sandbox: call the user's function and leave what it returns where the agent finds it."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def main(call: Path) -> None:
    body = json.loads(call.read_text())
    sys.path.insert(0, str(Path.cwd()))
    module, _, name = body["target"].partition(":")
    result = getattr(importlib.import_module(module), name)(**body["arguments"])
    if result is not None:
        Path(".easel-result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
