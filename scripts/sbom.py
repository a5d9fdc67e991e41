"""A software bill of materials (CycloneDX 1.5) of the lock file and the dashboard's lock file."""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
import uuid
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def python_components(lock: str) -> list[dict[str, Any]]:
    """One for each pinned package; hashes where the lock file has them, licences where it is installed."""
    found: list[dict[str, Any]] = []
    for block in re.split(r"\n(?=\S)", lock.replace("\\\n", " ")):
        pin = _PIN.match(block.strip())
        if pin is None:
            continue
        name, version = pin[1].lower(), pin[2]
        purl = f"pkg:pypi/{name}@{version}"
        part: dict[str, Any] = {
            "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl
        }  # fmt: skip
        if hashes := _HASH.findall(block):
            part["hashes"] = [{"alg": "SHA-256", "content": each} for each in hashes]
        if licence := _licence(name):
            part["licenses"] = [{"license": {"name": licence}}]
        found.append(part)
    return found


def web_components(lock: dict[str, Any]) -> list[dict[str, Any]]:
    """What the dashboard is built with."""
    found = {}
    for path, about in lock.get("packages", {}).items():
        name = path.rpartition("node_modules/")[2]
        if not name or not about.get("version"):
            continue
        scope = "%40" + name[1:] if name.startswith("@") else name
        purl = f"pkg:npm/{scope}@{about['version']}"
        found[purl] = {
            "type": "library", "bom-ref": purl, "name": name, "version": about["version"], "purl": purl
        }  # fmt: skip
    return list(found.values())


def _licence(name: str) -> str | None:
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    text = about.get("License-Expression") or about.get("License") or ""
    return text.splitlines()[0][:100] if text.strip() else None


def bill() -> dict[str, Any]:
    """The whole document; the same for the same lock files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = project.get("version") or re.search(r'"(.+)"', (ROOT / "src/easel/version.py").read_text())[1]  # type: ignore[index]
    # torch is pinned apart from the others, because its build differs from machine to machine
    pins = [(ROOT / "requirements" / name).read_text() for name in ("dev.lock", "constraints.txt")]
    web = ROOT / "web" / "package-lock.json"
    parts = python_components("\n".join(pins))
    parts += web_components(json.loads(web.read_text())) if web.is_file() else []
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(parts, sort_keys=True))}",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": project["name"], "version": version}},
        "components": sorted(parts, key=lambda part: part["bom-ref"]),
    }


def main(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    made = bill()
    target.write_text(json.dumps(made, indent=2) + "\n")
    sys.stdout.write(f"{len(made['components'])} components in {target}\n")


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("target", type=Path, help="the file that is written")
    main(asked.parse_args().target)
