"""`easel://project/path` for fsspec, so that pandas, pyarrow and dask read the lake directly.

pandas.read_csv("easel://astro/data/train.csv")
pandas.read_csv("easel://astro/data/train.csv@HotpotQA:1")
"""

from __future__ import annotations

import io
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from easel.errors import InvalidInput, NotFound
from easel.sdk.client import Client
from easel.wire.lake import FileItem


class EaselFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Paths are `project/folder/file`, with `@set:version` or `:version` behind as in the path language."""

    protocol = "easel"
    root_marker = ""

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        *,
        client: Client | None = None,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self._client = client or Client(server, token)
        if client is None:  # fsspec has no way to close a file system
            weakref.finalize(self, self._client.close)

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        return str(path).removeprefix("easel://").lstrip("/").rstrip("/")

    def ls(self, path: str, detail: bool = True, **more: Any) -> list[Any]:
        project, ref = self._split(path, folder=True)
        lake = self._client.in_project(project).lake
        items = list(lake.ls(ref))
        if not items:
            items = [self._file(project, self._split(path, folder=False)[1])]
        at = ref.partition("@")
        suffix = f"@{at[2]}" if at[1] else ""
        found = [self._about(project, item, suffix) for item in items]
        return found if detail else [each["name"] for each in found]

    def info(self, path: str, **more: Any) -> dict[str, Any]:
        project, ref = self._split(path, folder=False)
        if ref != "/":
            try:
                suffix = f"@{ref.partition('@')[2]}" if "@" in ref else ""
                return self._about(project, self._file(project, ref), suffix)
            except (FileNotFoundError, InvalidInput):
                pass
        _, folder = self._split(path, folder=True)
        lake = self._client.in_project(project).lake
        try:
            next(iter(lake.ls(folder)))
        except (StopIteration, NotFound):
            raise FileNotFoundError(path) from None
        return {"name": self._strip_protocol(path), "size": 0, "type": "directory"}

    def _file(self, project: str, ref: str) -> FileItem:
        try:
            return next(iter(self._client.in_project(project).lake.ls(ref)))
        except (NotFound, StopIteration):
            raise FileNotFoundError(f"{project}{ref}") from None

    def _about(self, project: str, item: FileItem, suffix: str) -> dict[str, Any]:
        name = f"{project}{item.path.rstrip('/')}{suffix}"
        if item.path.endswith("/"):
            return {"name": name, "size": 0, "type": "directory"}
        return {
            "name": name,
            "size": item.size,
            "type": "file",
            "version": item.version,
            "hash": item.hash,
        }

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **more: Any) -> bytes:
        project, ref = self._split(path, folder=False)
        lake = self._client.in_project(project).lake
        try:
            if start is None and end is None:
                return lake.cat(ref)
            size = self.info(path)["size"]
            first, last, _ = slice(start, end).indices(size)
            return lake.read_range(ref, first, last)
        except NotFound as error:
            raise FileNotFoundError(path) from error

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: Any = None,
        **more: Any,
    ) -> Any:
        if mode == "rb":
            return _Reading(self, path, mode, block_size or 2**22, cache_options=cache_options, **more)
        if mode == "wb":
            return _Writing(self, path)
        raise InvalidInput(f"mode {mode!r} is not possible: versions are immutable, use 'rb' or 'wb'")

    def rm_file(self, path: str) -> None:
        project, ref = self._split(path, folder=False)
        self._client.in_project(project).lake.rm(ref)

    def mv(self, path1: str, path2: str, **more: Any) -> None:
        project, source = self._split(path1, folder=False)
        other, target = self._split(path2, folder=False)
        if project != other:
            raise InvalidInput("files are moved inside one project: download and upload between two")
        self._client.in_project(project).lake.mv(source, target)

    def walk_files(self, path: str) -> Iterator[str]:
        """Every file below a folder, without asking folder by folder."""
        project, ref = self._split(path, folder=True)
        for item in self._client.in_project(project).lake.ls(ref, recursive=True):
            yield f"{project}{item.path}"

    def put_content(self, path: str, source: Path) -> None:
        project, ref = self._split(path, folder=False)
        self._client.in_project(project).lake.upload(source, ref)

    def read_block(self, path: str, start: int, end: int) -> bytes:
        project, ref = self._split(path, folder=False)
        return self._client.in_project(project).lake.read_range(ref, start, end)

    def _split(self, path: str, *, folder: bool) -> tuple[str, str]:
        """The project, and the reference inside it."""
        plain = self._strip_protocol(path)
        project, _, rest = plain.partition("/")
        if "@" in project:  # easel://project@set: the root of a set
            project, _, of = project.partition("@")
            rest = f"@{of}"
        if not project:
            raise InvalidInput(f"{path!r} names no project: write easel://project/path")
        inside, at, of = rest.partition("@")
        if folder:
            inside = f"{inside.rstrip('/')}/" if inside.strip("/") else ""
        return project, f"/{inside}{at}{of}"


class _Reading(AbstractBufferedFile):  # type: ignore[misc]
    def _fetch_range(self, start: int, end: int) -> bytes:
        found: bytes = self.fs.read_block(self.path, start, end)
        return found


class _Writing(io.BufferedWriter):
    """Gathers in a temporary file; closing uploads it as the next version."""

    def __init__(self, fs: EaselFileSystem, path: str) -> None:
        self._fs, self._path = fs, path
        self._folder = tempfile.TemporaryDirectory(prefix="easel-")
        self._local = Path(self._folder.name) / "content"
        super().__init__(io.FileIO(self._local, "wb"))

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        try:
            self._fs.put_content(self._path, self._local)
        finally:
            self._folder.cleanup()

    def discard(self) -> None:
        """Closed without an upload: nothing becomes visible."""
        super().close()
        self._folder.cleanup()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()
