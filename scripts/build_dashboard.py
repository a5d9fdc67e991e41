"""Hatch calls this before it packs a wheel: dashboard and documents are built, if that was not done already."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Dashboard(BuildHookInterface):  # type: ignore[type-arg]
    """Without Node the wheel is packed all the same; its server then says how to build the dashboard."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        self._documents(root, version)
        built = root / "src" / "easel" / "serve" / "static" / "index.html"
        npm = shutil.which("npm")
        if version == "editable" or built.is_file() or not (root / "web" / "package.json").is_file():
            return
        if npm is None:
            self.app.display_warning("npm is not here: this wheel has no dashboard")
            return
        for arguments in (["install", "--no-save", "--no-audit", "--no-fund"], ["run", "build"]):
            subprocess.run([npm, *arguments], cwd=root / "web", check=True)  # noqa: S603

    def _documents(self, root: Path, version: str) -> None:
        built = root / "src" / "easel" / "serve" / "site" / "index.html"
        if version == "editable" or built.is_file() or not (root / "mkdocs.yml").is_file():
            return
        try:
            subprocess.run([sys.executable, str(root / "scripts" / "build_site.py")], check=True)  # noqa: S603
        except subprocess.CalledProcessError:
            self.app.display_warning("mkdocs-material is not here: this wheel has no documents")
