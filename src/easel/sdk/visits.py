"""Coming in to a running job: a terminal in it, and copies of its files."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from easel.errors import InvalidInput, NotFound
from easel.sdk.connection import error_of, to_error
from easel.sdk.websocket import BINARY, TEXT, WebSocket

if TYPE_CHECKING:
    from easel.sdk.client import Client


class Terminal:
    """A program in a running job. `read` gives what it shows, None at its end; then `code` is its exit code."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self.code: int | None = None

    def read(self) -> bytes | None:
        found = self._socket.receive()
        if found is None:
            return None
        kind, data = found
        if kind == BINARY:
            return data
        told: dict[str, Any] = json.loads(data)
        if "error" in told:
            raise error_of(str(told["error"]), str(told["detail"]))
        self.code = int(told.get("exit", 1))
        return None

    def write(self, data: bytes) -> None:
        self._socket.send(data)

    def resize(self, rows: int, columns: int) -> None:
        self._socket.send(json.dumps({"rows": rows, "columns": columns}).encode(), TEXT)

    def close(self) -> None:
        self._socket.close()


def open_terminal(
    client: Client, job_id: str, command: Sequence[str] = (), *, rows: int = 24, columns: int = 80
) -> Terminal:
    """A shell in a running job, or `command`; for its owner and project admins."""
    query = urlencode([("rows", rows), ("columns", columns), *(("command", part) for part in command)])
    address = f"{client.connection.server.rstrip('/')}{client.root}/jobs/{job_id}/shell?{query}"
    token = client.connection.authorization
    return Terminal(WebSocket(address, {"Authorization": token}))


def copy_out(client: Client, job_id: str, path: str, target: Path) -> list[Path]:
    """Copy a file or folder of a running job here; returns the files. `target` may be a folder that is there."""
    address = f"{client.root}/jobs/{job_id}/files"
    name = path.rstrip("/").rpartition("/")[2]
    if not name or name in (".", ".."):
        raise InvalidInput("name a file or folder of the job: easel cp JOB:output/model.pt .")
    made: list[Path] = []
    with client.connection.http.stream("GET", address, params={"path": path}) as answer:
        if answer.is_error:
            answer.read()
            raise to_error(answer)
        reading: Any = _VisitReader(answer.iter_bytes())
        try:
            with tarfile.open(fileobj=reading, mode="r|") as archive:
                for member in archive:
                    inner = member.name.removeprefix("./")
                    rest = inner[len(path.strip("/")) :].lstrip("/")
                    base = target / name if target.is_dir() else target
                    member.name = str(Path(base.name) / rest) if rest else base.name
                    archive.extract(member, base.parent, filter="data")
                    if member.isfile():
                        made.append(base.parent / member.name)
        except tarfile.ReadError as error:
            raise NotFound(f"job {job_id} has no {path} that could be copied") from error
    return made


class _VisitReader:
    """Pieces as they come, read like a file."""

    def __init__(self, pieces: Any) -> None:
        self._pieces, self._rest = pieces, b""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._rest += piece
        found, self._rest = self._rest[:size], self._rest[size:]
        return found
