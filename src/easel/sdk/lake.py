"""The lake: files, file sets, tags, search, provenance."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from easel.errors import InvalidInput, NotFound, TryLater
from easel.lake.digest import from_hex, verified
from easel.lake.folder import LocalFile, scan
from easel.lake.ignore import IgnoreRules
from easel.lake.paths import FileInSet, FileRef, file_path, parse
from easel.sdk.connection import ask
from easel.sdk.direct import Direct
from easel.sdk.transfer import Naming, Progress, Receiver, Sender, no_progress, own_path
from easel.wire import lake as wire
from easel.wire.model import BaseModel, Page

if TYPE_CHECKING:
    from easel.sdk.client import Client

M = TypeVar("M", bound=BaseModel)
KindName = Literal["file", "fileset", "job"]
TagValues = Mapping[str, str | float | datetime]


class LakeClient:
    def __init__(self, client: Client, threads: int = 4) -> None:
        self._client, self._threads = client, threads

    # Files ----------------------------------------------------------------------------------------------

    def upload(
        self,
        source: str | os.PathLike[str],
        target: str = "/",
        *,
        resume: str | None = None,
        ignore: bool = True,
        progress: Progress = no_progress,
    ) -> wire.Upload:
        """Upload a file or a folder and commit it: all new versions appear at once, or none.

        With `resume`, the id of a session that broke off, only what is missing is sent. What `.gitignore` and
        `.easelignore` in the folder name, and `.git`, `.env` and the like, stay here unless `ignore` is False.
        """
        files = scan(Path(source), target, ignore=IgnoreRules() if ignore else None)
        if not files:
            raise InvalidInput(f"{source} holds no files")
        return self.upload_files(files, resume=resume, progress=progress)

    def upload_files(
        self,
        files: Sequence[LocalFile],
        *,
        resume: str | None = None,
        progress: Progress = no_progress,
        name: Naming = own_path,
    ) -> wire.Upload:
        """Upload these files, as one commit; `name` says under which path, once their digests are known."""
        session = resume or self.start_upload().id
        with self._direct() as direct:
            sender = Sender(self._client.connection, self._client.root, direct, progress, self._threads, name)
            try:
                sender.send(session, files)
            except TryLater as error:
                raise TryLater(f"{error}; what arrived is kept: go on with --resume {session}") from error
        return self.commit_upload(session)

    def start_upload(self) -> wire.Upload:
        return self._post("uploads", wire.StartUpload(), wire.Upload)

    def commit_upload(self, upload_id: str) -> wire.Upload:
        return self._post(f"uploads/{upload_id}/commit", {}, wire.Upload)

    def abort_upload(self, upload_id: str) -> None:
        self._client.connection.delete(f"{self._client.root}/uploads/{upload_id}")

    def uploads(self) -> list[wire.Upload]:
        """Your sessions that are still open."""
        return list(self._client.connection.pages(f"{self._client.root}/uploads", wire.Upload))

    def committed(self, upload_id: str) -> Iterator[wire.FileItem]:
        """The versions that a session made, by path."""
        path = f"{self._client.root}/uploads/{upload_id}/versions"
        return self._client.connection.pages(path, wire.FileItem, {"limit": 2000})

    def download(
        self, ref: str, target: str | os.PathLike[str], *, progress: Progress = no_progress
    ) -> list[Path]:
        """Download a file, a folder or a file set (`/@HotpotQA:1`), checked byte for byte.

        A folder's files keep their paths below it; a single file goes to `target`, or into it if it is a folder.
        """
        root, named = Path(target), parse(ref)
        base = getattr(named, "folder", None)
        written: list[Path] = []

        def place(path: str) -> Path:
            checked = file_path(path)
            if base is not None:
                local = root / checked[len(base) :]
            else:
                local = root / checked.rpartition("/")[2] if root.is_dir() else root
            written.append(local)
            return local

        with self._direct() as direct:
            receiver = Receiver(direct, progress, self._threads)
            for page in self._fetch(ref):
                receiver.receive(page, place)
        if base is not None and not written:
            raise NotFound(f"there are no files in {ref}")
        return written

    def cat(self, ref: str) -> bytes:
        """The bytes of one file."""
        if not isinstance(parse(ref), FileRef | FileInSet):
            raise InvalidInput(f"{ref} does not name one file")
        (page,) = self._fetch(ref)
        (span,) = page.ranges
        with self._direct() as direct:
            chunks = direct.get(span.url, span.start, span.length)
            return b"".join(verified(chunks, from_hex(span.blobs[0].hash)))

    def read_range(self, ref: str, start: int, end: int) -> bytes:
        """Bytes `[start, end)` of one file; only whole files can be checked against their hash."""
        (page,) = self._fetch(ref)
        (span,) = page.ranges
        first, last = min(start, span.length), min(end, span.length)
        with self._direct() as direct:
            chunks = direct.get(span.url, span.start + first, max(0, last - first))
            whole = (first, last) == (0, span.length)
            return b"".join(verified(chunks, from_hex(span.blobs[0].hash)) if whole else chunks)

    def ls(self, ref: str = "/", *, recursive: bool = False) -> Iterator[wire.FileItem]:
        """Files and folders (whose path ends in `/`) in a folder of the lake or of a file set."""
        params = {"ref": ref, "recursive": recursive, "limit": 1000}
        return self._client.connection.pages(f"{self._client.root}/files", wire.FileItem, params)

    def versions(self, path: str) -> list[wire.FileVersion]:
        found = self._client.connection.pages(
            f"{self._client.root}/files/versions", wire.FileVersion, {"path": path}
        )
        return list(found)

    def mv(self, source: str, target: str) -> int:
        """Move a file or a folder without sending a byte; returns how many files."""
        return self._post("files/move", ask(wire.Move, source=source, target=target), wire.Count).files

    def rm(self, ref: str) -> int:
        """Mark a file, or all below a folder, deleted; returns how many."""
        answer = self._client.connection.request("DELETE", f"{self._client.root}/files", params={"ref": ref})
        return wire.Count.model_validate_json(answer.content).files

    # File sets -------------------------------------------------------------------------------------------

    def create_file_set(self, name: str, sources: Sequence[str]) -> wire.FileSet:
        """E.g. `create_file_set("MergedQA", ["/@HotpotQA", "/@ColdpotQA"])`."""
        body = ask(wire.CreateFileSet, name=name, sources=list(sources))
        return self._post("filesets", body, wire.FileSet)

    def file_set(self, ref: str) -> wire.FileSet:
        return self._client.connection.get(f"{self._client.root}/filesets/{ref}", wire.FileSet)

    def file_sets(self, prefix: str = "", *, automatic: bool = True) -> Iterator[wire.FileSet]:
        """The latest version of each; without `automatic` none of the outputs of jobs that nobody named."""
        params = {"prefix": prefix, "automatic": automatic}
        return self._client.connection.pages(f"{self._client.root}/filesets", wire.FileSet, params)

    def file_set_versions(self, name: str) -> list[wire.FileSet]:
        path = f"{self._client.root}/filesets/{name}/versions"
        return list(self._client.connection.pages(path, wire.FileSet))

    def diff(self, before: str, after: str) -> Iterator[wire.Difference]:
        path = f"{self._client.root}/filesets/{before}/diff"
        return self._client.connection.pages(path, wire.Difference, {"to": after})

    def delete_file_set(self, name: str) -> None:
        self._client.connection.delete(f"{self._client.root}/filesets/{name}")

    def checkout(self, ref: str, target: str | os.PathLike[str], *, progress: Progress = no_progress) -> int:
        """Download a whole file set (`HotpotQA:1`); returns how many files."""
        return len(self.download(f"/@{ref}", target, progress=progress))

    def drop(self, ref: str) -> wire.FileSet:
        """Give up the bytes of a set that a job made."""
        return self._post(f"filesets/{ref}/drop", {}, wire.FileSet)

    def replay_plan(self, ref: str) -> wire.ReplayPlan:
        return self._client.connection.get(f"{self._client.root}/filesets/{ref}/replay", wire.ReplayPlan)

    def replay(self, ref: str) -> wire.ReplayPlan:
        """Submit the next job that regenerates a dropped set; nothing is submitted once it is whole."""
        return self._post(f"filesets/{ref}/replay", {}, wire.ReplayPlan)

    # Tags, search, provenance ----------------------------------------------------------------------------

    def tag(
        self, kind: KindName, ref: str, tags: TagValues | None = None, *, remove: Sequence[str] = ()
    ) -> wire.Artifact:
        """Set and remove tags of a file version, a file-set version or a job."""
        values = {k: {"time": v} if isinstance(v, datetime) else v for k, v in (tags or {}).items()}
        body = ask(wire.SetTags, kind=kind, ref=ref, tags=values, remove=list(remove))
        return self._post("tags", body, wire.Artifact)

    def notes(self, kind: KindName, ref: str) -> list[wire.ArtifactNote]:
        """Returns what people wrote about a job, a file set (a model is one) or a file, oldest first."""
        found = self._client.connection.get(
            f"{self._client.root}/notes", wire.Notes, {"kind": kind, "ref": ref}
        )
        return found.items

    def write_note(self, kind: KindName, ref: str, text: str) -> wire.ArtifactNote:
        """Writes a note on a job, a file set or a file."""
        return self._post("notes", ask(wire.WriteNote, kind=kind, ref=ref, text=text), wire.ArtifactNote)

    def remove_note(self, kind: KindName, ref: str, note: str) -> None:
        """Removes a note: one's own, or as an admin of the project anybody's."""
        self._client.connection.request(
            "DELETE", f"{self._client.root}/notes/{note}", params={"kind": kind, "ref": ref}
        )

    def find(
        self, kind: KindName, query: str = "", *, sort: str = "", limit: int | None = None
    ) -> Iterator[wire.Artifact]:
        """E.g. `find("fileset", "job.creator = john and job.create_time = today and precision > 0.5")`."""
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            size = min(left or 200, 200)
            body = ask(wire.Find, kind=kind, query=query, sort=sort, limit=size, cursor=cursor)
            page = self._post("find", body, Page[wire.Artifact])
            yield from page.items
            left = None if left is None else left - len(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return

    def max(self, kind: KindName, key: str, query: str = "") -> wire.Artifact | None:
        """The artifact with the largest value of a key among those that fulfil the query."""
        return next(self.find(kind, query, sort=f"-{key}", limit=1), None)

    def min(self, kind: KindName, key: str, query: str = "") -> wire.Artifact | None:
        return next(self.find(kind, query, sort=key, limit=1), None)

    def trace(self, ref: str, *, forward: bool = False, one_step: bool = False) -> wire.Graph:
        """What a file set was made from, or with `forward` what was made of it."""
        direction = "forward" if forward else "backward"
        return self._graph({"ref": ref, "direction": direction, "one_step": one_step})

    def graph(self) -> wire.Graph:
        """The provenance of the whole project."""
        return self._graph({})

    def export_lineage(self, ref: str | None = None, format: str = "prov") -> Any:  # noqa: A002
        """W3C PROV-JSON, or with `openlineage` a list of OpenLineage events."""
        params = {"format": format, **({"ref": ref} if ref else {})}
        return self._client.connection.request(
            "GET", f"{self._client.root}/lineage/export", params=params
        ).json()

    # Access and cleaning ---------------------------------------------------------------------------------

    def grants(self) -> list[wire.Grant]:
        return list(self._client.connection.pages(f"{self._client.root}/grants", wire.Grant))

    def grant(self, principal: str, pattern: str, *, read: bool = True, write: bool = False) -> wire.Grant:
        """`principal`: user:ana, group:vision or everyone. `pattern`: a path, a folder, or a file set (`Hot*`)."""
        scope = "path" if pattern.startswith("/") else "fileset"
        body = ask(wire.PutGrant, scope=scope, pattern=pattern, principal=principal, read=read, write=write)
        return self._client.connection.put(f"{self._client.root}/grants", body, wire.Grant)

    def revoke(self, principal: str, pattern: str) -> None:
        scope = "path" if pattern.startswith("/") else "fileset"
        params = {"scope": scope, "pattern": pattern, "principal": principal}
        self._client.connection.request("DELETE", f"{self._client.root}/grants", params=params)

    def groups(self) -> list[wire.Group]:
        return list(self._client.connection.pages(f"{self._client.root}/groups", wire.Group))

    def set_group(self, name: str, members: Sequence[str]) -> wire.Group:
        body = ask(wire.SetGroup, members=list(members))
        return self._client.connection.put(f"{self._client.root}/groups/{name}", body, wire.Group)

    def unused(
        self, prefix: str = "/", older_than_days: float = 30.0, *, really: bool = False
    ) -> wire.Unused:
        """File versions that no job used and no file set holds; with `really` they are given up."""
        body = ask(wire.CollectUnused, prefix=prefix, older_than_days=older_than_days, really=really)
        return self._post("unused", body, wire.Unused)

    def gc(self) -> wire.Collected:
        """Remove what nobody needs, in all projects (platform admins)."""
        return self._client.connection.post("/api/v1/gc", {}, wire.Collected)

    # ------------------------------------------------------------------------------------------------------

    def _fetch(self, ref: str) -> Iterator[wire.Fetched]:
        cursor: str | None = None
        while True:
            page = self._post("files/fetch", ask(wire.Fetch, ref=ref, cursor=cursor), wire.Fetched)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    def _graph(self, params: Mapping[str, Any]) -> wire.Graph:
        nodes: dict[str, wire.Node] = {}
        edges: list[wire.Edge] = []
        cursor: str | None = None
        while True:
            page = self._client.connection.get(
                f"{self._client.root}/lineage", wire.Graph, {**params, "cursor": cursor}
            )
            nodes.update((node.id, node) for node in page.nodes)
            edges += page.edges
            cursor = page.next_cursor
            if cursor is None:
                return wire.Graph(nodes=list(nodes.values()), edges=edges)

    def _post(self, path: str, body: BaseModel | Mapping[str, Any], model: type[M]) -> M:
        return self._client.connection.post(f"{self._client.root}/{path}", body, model)

    @contextmanager
    def _direct(self) -> Iterator[Direct]:
        direct = Direct(self._client.connection)
        try:
            yield direct
        finally:
            direct.close()
