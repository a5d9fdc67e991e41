"""Secrets of projects, encrypted at rest with the installation's key. Never listed with their values."""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from easel.declare.names import slug
from easel.errors import Misconfigured

MAX_BYTES = 64 * 1024
KEY_FILE = "secrets.key"


class SecretStore:
    """Files under `root`, each encrypted; the key lies beside it, in a file that only its owner may read.

    Values that an earlier release wrote in clear are read, and encrypted when they are next written.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, project_id: str, name: str, value: str) -> None:
        path = self._path(project_id, name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_private(path, self._cipher().encrypt(value.encode()))

    def read(self, project_id: str, name: str) -> str | None:
        try:
            data = self._path(project_id, name).read_bytes()
        except FileNotFoundError:
            return None
        if not data.startswith(b"gAAAA"):  # how what Fernet writes begins
            return data.decode()
        try:
            return self._cipher().decrypt(data).decode()
        except InvalidToken as error:
            raise Misconfigured(
                f"the secret {name!r} was encrypted with another key: bring {KEY_FILE} back, or set it again"
            ) from error

    def names(self, project_id: str) -> list[str]:
        folder = self._root / project_id
        return sorted(p.name for p in folder.iterdir() if p.name[0] != ".") if folder.is_dir() else []

    def remove(self, project_id: str, name: str) -> bool:
        path = self._path(project_id, name)
        existed = path.exists()
        path.unlink(missing_ok=True)
        return existed

    def encrypt_all(self) -> int:
        """Encrypt what still lies in clear; returns how many that were."""
        found = [path for path in self._root.glob("*/*") if path.is_file() and path.name[0] != "."]
        clear = [path for path in found if not path.read_bytes().startswith(b"gAAAA")]
        for path in clear:
            _write_private(path, self._cipher().encrypt(path.read_bytes()))
        return len(clear)

    def _cipher(self) -> Fernet:
        return Fernet(installation_key(self._root.parent))

    def _path(self, project_id: str, name: str) -> Path:
        return self._root / slug(project_id, "project") / slug(name, "secret")


def installation_key(home: Path) -> bytes:
    """The key of this home, made once. Two processes that start at once agree on the first."""
    path = home / KEY_FILE
    try:
        return path.read_bytes()
    except FileNotFoundError:
        fresh = home / f".{KEY_FILE}.{secrets.token_hex(4)}"
        _write_private(fresh, base64.urlsafe_b64encode(secrets.token_bytes(32)), final=fresh)
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
        return path.read_bytes()


def _write_private(path: Path, data: bytes, final: Path | None = None) -> None:
    """Readable by the owner alone from its first byte on."""
    fresh = final or path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    if final is None:
        fresh.replace(path)
