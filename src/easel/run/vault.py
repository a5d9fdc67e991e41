"""Secrets of projects, in files that only the platform's own user may read. Never listed with their values."""

from __future__ import annotations

from pathlib import Path

from easel.declare.names import slug

MAX_BYTES = 64 * 1024


class Vault:
    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, project_id: str, name: str, value: str) -> None:
        path = self._path(project_id, name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_name(f".{path.name}.new")
        fresh.touch(mode=0o600)
        fresh.write_text(value)
        fresh.replace(path)

    def read(self, project_id: str, name: str) -> str | None:
        try:
            return self._path(project_id, name).read_text()
        except FileNotFoundError:
            return None

    def names(self, project_id: str) -> list[str]:
        folder = self._root / project_id
        return sorted(p.name for p in folder.iterdir() if p.name[0] != ".") if folder.is_dir() else []

    def remove(self, project_id: str, name: str) -> bool:
        path = self._path(project_id, name)
        existed = path.exists()
        path.unlink(missing_ok=True)
        return existed

    def _path(self, project_id: str, name: str) -> Path:
        return self._root / slug(project_id, "project") / slug(name, "secret")
