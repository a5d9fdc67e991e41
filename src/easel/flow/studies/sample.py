"""The platform's own subsamples: stratified, and nested so that smaller samples lie inside larger ones.

Within each stratum the members stand in one order that depends on the data alone, and a share `f` of `n` members is
the first `⌈f·n⌉` of them: more never loses what less had, and no stratum is left empty.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from easel.declare.study import DataPlan
from easel.errors import InvalidInput
from easel.flow.lake import upload
from easel.flow.lake.checkout import fetcher
from easel.flow.lake.file_set import Resolved, add_version, entries_of, find_file, find_set, own_nodes
from easel.flow.lake.ingest import ingest_folder
from easel.flow.lake.upload import Lake
from easel.lake.digest import Digest
from easel.lake.manifest import tree
from easel.lake.manifest.node import Entry
from easel.lake.paths import parse_set
from easel.records.identity import Caller
from easel.records.study import StoredStudy
from easel.store import studies
from easel.store.lake.grants import rights_of

TABLES = {".csv": ",", ".tsv": "\t", ".jsonl": ""}
_MOST_ROWS_BYTES = 2 << 30


def take(members: Sequence[str], strata: Sequence[str], share: float) -> list[int]:
    """Positions of the members that belong to the sample, in their given order."""
    groups: dict[str, list[tuple[str, int]]] = {}
    for i, (member, stratum) in enumerate(zip(members, strata, strict=True)):
        order = hashlib.sha256(f"{member}\0{i}".encode(errors="surrogatepass")).hexdigest()
        groups.setdefault(stratum, []).append((order, i))
    if 2 * len(groups) > len(members):
        # Hardly two members share a label, as with numbers: there are no strata to keep in proportion.
        groups = {"": [member for group in groups.values() for member in group]}
    kept: list[int] = []
    for group in groups.values():
        kept += [i for _, i in sorted(group)[: math.ceil(share * len(group) - 1e-9)]]
    return sorted(kept)


def sample_for(lake: Lake, caller: Caller, study: StoredStudy, share: float) -> str | None:
    """The file set that a point on this share of the data reads; None for the whole input, or where there is none.

    Made once for each share; whoever comes second finds it.
    """
    whole = study.spec.job.input
    if whole is None or share >= 1.0:
        return None
    with lake.store.read() as tx:
        known = studies.sample(tx, study.id, share)
        if known is not None:
            return known
        source, _ = find_set(tx, caller, rights_of(tx, caller), parse_set(whole.removeprefix("/@")))
        entries = list(entries_of(tx, caller, str(source)))
    if study.spec.data.label is None:
        chosen = _files(entries, study.spec.data, share)
    else:
        chosen = _rows(lake, caller, study, entries, share)
    with lake.store.write() as tx:
        known = studies.sample(tx, study.id, share)
        if known is not None:
            return known
        nodes = own_nodes(tx)
        root = tree.build(nodes, iter(sorted(chosen)))
        nodes.flush()
        made = add_version(
            tx, caller, f"{study.name[:57]}-sample", Resolved((), root, frozenset({source.artifact.id}))
        )
        studies.add_sample(tx, study.id, share, str(made))
    return str(made)


def _files(entries: Sequence[Entry], plan: DataPlan, share: float) -> list[Entry]:
    """Whole files, alike from every folder."""
    kept = [entry for entry in entries if is_kept(entry.path, plan.keep)]
    drawn = [entry for entry in entries if not is_kept(entry.path, plan.keep)]
    folders = [str(PurePosixPath(entry.path).parent) for entry in drawn]
    return kept + [drawn[i] for i in take([entry.path for entry in drawn], folders, share)]


def is_kept(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, p if p.startswith(("/", "*")) else f"*/{p}") for p in patterns)


def _rows(
    lake: Lake, caller: Caller, study: StoredStudy, entries: Sequence[Entry], share: float
) -> list[Entry]:
    """Rows of tables, alike from every label. The sampled tables are files of their own, and stand in the set where
    the whole ones did, so that a script finds them under the same names."""
    plan = study.spec.data
    fetch = fetcher(lake)
    tables = [e for e in entries if PurePosixPath(e.path).suffix in TABLES and not is_kept(e.path, plan.keep)]
    if not tables:
        raise InvalidInput(
            f"data.label is {plan.label!r}, but the input has no table ({', '.join(TABLES)}) to draw rows from"
        )
    folder = f"/studies/{study.name}/{share:g}"
    with tempfile.TemporaryDirectory() as here:
        for entry in tables:
            if entry.size > _MOST_ROWS_BYTES:
                raise InvalidInput(f"{entry.path} is too large to draw rows from: split it into files")
            text = b"".join(fetch(entry.digest, entry.size)).decode("utf-8-sig")
            sampled = sample_table(text, entry.path, plan.label or "", share)
            path = Path(here) / entry.path.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(sampled, encoding="utf-8", newline="")
        session = ingest_folder(lake, caller, Path(here), f"{folder}/")
    with lake.store.write() as tx:
        upload.commit(tx, caller, session.id)
        rights = rights_of(tx, caller)
        found = [find_file(tx, caller, rights, folder + entry.path, None) for entry in tables]
    drawn = {
        entry.path: Entry(entry.path, made.version, made.id, made.size, Digest(made.digest))
        for entry, made in zip(tables, found, strict=True)
        if made.digest is not None
    }
    return [drawn.get(entry.path, entry) for entry in entries]


def sample_table(text: str, path: str, label: str, share: float) -> str:
    """The table with its header and a share of its rows; rows stay as they were written."""
    delimiter = TABLES[PurePosixPath(path).suffix]
    if not delimiter:
        lines = [line for line in text.splitlines() if line.strip()]
        return _joined(lines, [_json_label(line, label, path) for line in lines], share)
    header, *rows = list(_records(text)) or [""]
    names = next(csv.reader([header], delimiter=delimiter), [])
    if label not in names:
        raise InvalidInput(f"{path} has no column {label!r}; it has {', '.join(names)}")
    at = names.index(label)
    cells = [next(csv.reader(io.StringIO(row), delimiter=delimiter), []) for row in rows]
    labels = [cell[at] if at < len(cell) else "" for cell in cells]
    return header.rstrip("\r\n") + "\n" + _joined([row.rstrip("\r\n") for row in rows], labels, share)


def _joined(rows: Sequence[str], labels: Sequence[str], share: float) -> str:
    return "".join(f"{rows[i]}\n" for i in take(rows, labels, share))


def _records(text: str) -> Iterator[str]:
    """Rows as written; a quoted cell may hold line breaks."""
    pending = ""
    for line in text.splitlines(keepends=True):
        pending += line
        if pending.count('"') % 2 == 0:
            if pending.strip():
                yield pending
            pending = ""
    if pending.strip():
        yield pending


def _json_label(line: str, label: str, path: str) -> str:
    try:
        return str(json.loads(line)[label])
    except (json.JSONDecodeError, KeyError, TypeError):
        raise InvalidInput(f"{path} has a line without {label!r}: {line[:60]!r}") from None
