"""What a job reads: references pinned when it is submitted, and the files that they mean when it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from easel.errors import Conflict, EaselError
from easel.flow.lake.code import check_holds, root_of
from easel.flow.lake.file_set import entries_of, find_file, find_set
from easel.lake.manifest.node import Entry
from easel.lake.paths import FileRef, parse, parse_set
from easel.records.identity import Caller
from easel.records.job import StoredFile
from easel.records.lake import FileSetVersion
from easel.store.engine import Tx
from easel.store.lake import artifacts, blob_index
from easel.store.lake.grants import rights_of


def is_path(reference: str) -> bool:
    """Code may be one file of the lake, as in the paper: `/wordcount.zip`."""
    return reference.startswith("/") and "@" not in reference


def pin_set(tx: Tx, caller: Caller, reference: str) -> FileSetVersion:
    """The version that `name` or `name:version` means now. Its bytes must be there."""
    made, _ = find_set(tx, caller, rights_of(tx, caller), parse_set(reference.removeprefix("/@")))
    if made.artifact.dropped_at is not None:
        raise Conflict(f"the bytes of {made} were given up: `easel filesets replay {made}` brings them back")
    return made


@dataclass(frozen=True, slots=True)
class PinnedCode:
    """A version of the code; `set_id` is the file set's number in the catalogue, None for a single file."""

    reference: str
    set_id: int | None


def pin_code(tx: Tx, caller: Caller, reference: str, digest: str | None = None) -> PinnedCode:
    """The version that a reference to code means now; NotFound where a set holds something else than `digest` says."""
    if not is_path(reference):
        found_set = pin_set(tx, caller, reference)
        check_holds(found_set, digest)
        return PinnedCode(str(found_set), found_set.artifact.id)
    ref = parse(reference)
    if not isinstance(ref, FileRef):
        raise Conflict(f"{reference} names a folder: make it a file set, or name a file")
    found = find_file(tx, caller, rights_of(tx, caller), ref.path, ref.version)
    return PinnedCode(str(FileRef(found.name, found.version)), None)


def files_of(tx: Tx, caller: Caller, reference: str | None) -> tuple[StoredFile, ...]:
    """The files of a pinned reference, with the places of their bytes."""
    if reference is None:
        return ()
    if is_path(reference):
        ref = parse(reference)
        assert isinstance(ref, FileRef)
        found = find_file(tx, caller, rights_of(tx, caller), ref.path, ref.version)
        return _located(tx, [artifacts.entry(found)])
    return _located(tx, list(entries_of(tx, caller, reference)))


CHECKPOINT = "/checkpoint/"
"""The folder of a slice's output in which it left what the next one goes on from."""


def checkpoint_files(tx: Tx, caller: Caller, reference: str | None) -> tuple[StoredFile, ...]:
    """What a slice left for the next one, by their paths in its checkpoint folder; none where it is gone: the trial
    begins anew then."""
    if reference is None:
        return ()
    try:
        found = files_of(tx, caller, reference)
    except EaselError:
        return ()
    return tuple(
        replace(file, path=f"/{file.path.partition(CHECKPOINT)[2]}")
        for file in found
        if CHECKPOINT in file.path
    )


def _located(tx: Tx, entries: Sequence[Entry]) -> tuple[StoredFile, ...]:
    places = blob_index.locate(tx, list({entry.digest for entry in entries}))
    missing = next((entry.path for entry in entries if bytes(entry.digest) not in places), None)
    if missing is not None:
        raise Conflict(f"the bytes of {missing} are not stored any more: upload the file again")
    return tuple(
        StoredFile(
            entry.path,
            entry.digest.hex(),
            entry.size,
            places[entry.digest].object.hex(),
            places[entry.digest].offset,
        )
        for entry in entries
    )


def code_files(tx: Tx, caller: Caller, reference: str | None) -> tuple[StoredFile, ...]:
    """The files of pinned code, by their paths in the working folder.

    A folder that was packed is laid out as it was; other sets lose the folders that all their files share.
    """
    files = files_of(tx, caller, reference)
    if reference is not None and not is_path(reference):
        root = root_of(parse_set(reference).name)
        if all(file.path.startswith(root) for file in files):
            return tuple(replace(file, path=file.path[len(root) - 1 :]) for file in files)
    return without_common_folder(files)


def without_common_folder(files: Sequence[StoredFile]) -> tuple[StoredFile, ...]:
    """Code lies at the top of the working folder, wherever in the lake it was kept."""
    if not files:
        return ()
    folders = [PurePosixPath(file.path).parent.parts for file in files]
    depth = 0
    while all(len(parts) > depth for parts in folders) and len({parts[depth] for parts in folders}) == 1:
        depth += 1
    return tuple(replace(file, path="/" + "/".join(PurePosixPath(file.path).parts[depth:])) for file in files)
