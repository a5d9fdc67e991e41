"""The software bill of materials names all that a release was tested with, with the hashes of the lock files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_pinned_package_is_in_the_bill_with_its_hashes(tmp_path: Path) -> None:
    target = tmp_path / "out" / "easel.cdx.json"
    subprocess.run([sys.executable, ROOT / "scripts" / "sbom.py", target], check=True, capture_output=True)
    bill = json.loads(target.read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    parts = {part["bom-ref"]: part for part in bill["components"]}
    assert len(parts) == len(bill["components"])
    lock = (ROOT / "requirements" / "dev.lock").read_text()
    pins = re.findall(r"^([\w.-]+)==([^\s;\\]+)", lock, re.MULTILINE)
    assert len(pins) > 100
    for name, version in pins:
        part = parts[f"pkg:pypi/{name.lower()}@{version}"]
        assert part["hashes"], name
    assert any(ref.startswith("pkg:pypi/torch@") for ref in parts)
    web = json.loads((ROOT / "web" / "package-lock.json").read_text())
    react = web["packages"]["node_modules/react"]["version"]
    assert f"pkg:npm/react@{react}" in parts
