"""Word vectors for a text app: a GloVe file of the lake becomes one of the app's own files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from easel.declare.parse import parse_program
from easel.errors import InvalidInput
from easel.flow.apps.feed_files import files_of
from easel.flow.apps.files import AppFiles, bring_home
from easel.flow.lake.file_set import create_file_set
from easel.flow.lake.upload import Lake
from easel.match.embeddings import vector_size
from easel.match.registry import families_for
from easel.match.templates import match_program
from easel.records.app import App
from easel.records.identity import Caller
from easel.store import apps
from easel.store.upsert import lock


def give_vectors(lake: Lake, caller: Caller, name: str, reference: str) -> App:
    """Adds candidates that start from these word vectors to the app's; the file is kept with its examples."""
    with lake.store.read() as tx:
        app = apps.find(tx, caller.project_id, name)
        entries = files_of(tx, caller, reference)
    template = match_program(parse_program(app.program))
    if not any(family.takes_vectors for family in families_for(template.kind, template.task)):
        raise InvalidInput(f"word vectors are for apps that read text; {app.name} does not")
    if len(entries) != 1:
        raise InvalidInput(f"{reference} is {len(entries)} files: name the one file of word vectors")
    (entry,) = entries
    size = vector_size(_lines(AppFiles(lake, caller, app, entries).chunks(entry.path)), entry.path)
    path = f"{app.folder}vectors/{entry.digest.hex()[:24]}.txt"
    bring_home(lake, caller, [(entry, path)])
    made = None
    if app.examples_set is not None:
        made = str(create_file_set(lake.store, caller, f"{app.name}-examples", [app.folder]))
    with lake.store.write() as tx:
        lock(tx, f"app {app.id}")
        newest = apps.find(tx, caller.project_id, app.id).examples_set
        # A feed that came between made a later version, which holds this file too.
        latest = max(filter(None, (made, newest)), key=_version, default=None)
        apps.give_vectors(tx, app.id, path, size, latest)
        body = {"vectors": path, "size": size}
        tx.emit("app.vectors", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
        return apps.find(tx, caller.project_id, app.id)


def _version(reference: str) -> int:
    return int(reference.rpartition(":")[2] or 0)


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of a file that comes in pieces: of a large one only the first pieces are ever read."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > 2**20:
            raise InvalidInput("a line is longer than a megabyte: this is not a file of word vectors")
        yield from (line for line in lines if line.strip())
    if rest.strip():
        yield rest
