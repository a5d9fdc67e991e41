"""Where the command line and notebooks remember a log-in: one file that only its owner may read."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from easel.errors import Unauthenticated

DEFAULT_SERVER = "http://127.0.0.1:8741"


@dataclass(frozen=True, slots=True)
class Credentials:
    server: str
    token: str
    project: str | None = None


def credentials_file() -> Path:
    base = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    return base / "easel" / "credentials.toml"


def remember(credentials: Credentials, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lines = [f"server = {_quoted(credentials.server)}", f"token = {_quoted(credentials.token)}"]
    if credentials.project:
        lines.append(f"project = {_quoted(credentials.project)}")
    partial = file.with_suffix(".partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write("\n".join(lines) + "\n")
    partial.replace(file)


def forget(file: Path) -> None:
    file.unlink(missing_ok=True)


def find(server: str | None, token: str | None, project: str | None) -> Credentials:
    """Arguments win over EASEL_SERVER, EASEL_TOKEN and EASEL_PROJECT, which win over the remembered log-in.

    A remembered token is sent only to the server that it was remembered for.
    """
    kept = _remembered(credentials_file())
    address = server or os.environ.get("EASEL_SERVER") or (kept.server if kept else DEFAULT_SERVER)
    address = address.rstrip("/")
    secret = token or os.environ.get("EASEL_TOKEN")
    same_server = kept is not None and kept.server == address
    if not secret and kept and same_server:
        secret = kept.token
    if not secret:
        raise Unauthenticated(f"no token for {address}: run `easel login`, or set EASEL_TOKEN")
    chosen = project or os.environ.get("EASEL_PROJECT") or (kept.project if kept and same_server else None)
    return Credentials(address, secret, chosen)


def _remembered(file: Path) -> Credentials | None:
    try:
        values = tomllib.loads(file.read_text())
        return Credentials(values["server"], values["token"], values.get("project"))
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return None


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
