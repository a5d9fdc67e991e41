"""Code goes along: a folder becomes a version of a file set, and only what changed since the last time is sent."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from easel.errors import InvalidInput, NotFound, TooLarge
from easel.lake.code_folder import MAX_BYTES, CodeFile, CodeFolder, scan_code, write_private
from easel.lake.digest import Digest, digest_of
from easel.lake.folder import LocalFile
from easel.sdk.connection import ask
from easel.sdk.git import GitState, clone, git_state, split_address
from easel.wire import job as wire_job
from easel.wire import lake as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client

DIFF = ".easel/uncommitted.diff"
"""Where the code set keeps what was not committed."""
LIMIT = "EASEL_CODE_MAX_MB"
NO_ENVIRONMENT = "none"
"""As `environment.requirements`: run with the device's own packages, whatever the folder holds."""
REQUIREMENTS = ("uv.lock", "requirements.lock", "requirements.txt", "environment.yml")
"""Files that say what a folder's code needs; the first one that is there counts."""
CARRIED_FILES, CARRIED_BYTES = 50, 200 << 10
"""Changes up to so much go along in the request that saves the version: one request in place of seven."""
_REMEMBERED = 50


class NoCode(InvalidInput):
    """The folder holds nothing that could be sent: run elsewhere, or without code."""


@dataclass(frozen=True, slots=True)
class SentCode:
    """Code that a job can name: `reference` is a version of a file set, `left_out` what could not be taken along."""

    reference: str
    origin: wire_job.CodeOrigin
    left_out: tuple[str, ...] = ()
    sent: int = 0
    requirements: str | None = None
    """The file at its top that names the packages it needs, if there is one."""
    digest: str = ""
    """What the version holds; a server that has something else under this name by now refuses the job."""
    on_trust: bool = False
    """Whether the server was not asked if it still has it: the request that names it has to say `digest`."""


def is_folder(code: str | os.PathLike[str]) -> bool:
    """Whether `code` names a folder or a file here, rather than a file set or a file of the lake."""
    if isinstance(code, os.PathLike):
        return True
    if code.startswith("git+"):
        return False
    written_as_path = code in (".", "..") or code.startswith(("./", "../", "~", os.sep))
    return written_as_path and Path(code).expanduser().exists()


def send(
    client: Client,
    code: str | os.PathLike[str],
    *,
    leave_out: Sequence[str] = (),
    name: str | None = None,
    trust: bool = False,
    remember: bool = True,
) -> SentCode:
    """Send a folder here, or what `git+URL@REV` names; nothing is sent that the server has.

    With `trust` the version that was sent last is not looked up where the folder did not change since.
    """
    if isinstance(code, str) and code.startswith("git+"):
        with tempfile.TemporaryDirectory(prefix="easel-code-") as place:
            folder = Path(place) / (_basename(split_address(code)[0]) or "code")
            remote = clone(code, folder)
            sent = _send_folder(client, folder, leave_out, name, cache=None)
            return replace(sent, origin=sent.origin.model_copy(update={"remote": remote, "folder": ""}))
    folder = Path(code).expanduser().absolute()
    if folder.is_file():
        return _send_file(client, folder, name)
    cache = _cache_folder(folder) if remember else None
    return _send_folder(client, folder, leave_out, name, cache, trust)


def _send_folder(
    client: Client,
    folder: Path,
    leave_out: Sequence[str],
    name: str | None,
    cache: Path | None,
    trust: bool = False,
) -> SentCode:
    with ThreadPoolExecutor(1) as pool:  # git looks at the folder while we do
        asked = pool.submit(git_state, folder)
        found = scan_code(
            folder,
            memory=cache / "files.json" if cache else None,
            top=_repository(folder),
            leave_out=tuple(leave_out),
            max_bytes=_max_bytes(),
        )
        git = asked.result()
    if not found.files:
        raise NoCode(f"{folder} holds no code: run in the folder of your program, or use --no-code")
    chosen = name or set_name(folder, git)
    origin = _origin(folder, found, git)
    with tempfile.TemporaryDirectory(prefix="easel-code-") as place:
        with_diff = _with_diff(found, git, Path(place))
        return _send(client, with_diff, chosen, origin, cache, trust)


def _send_file(client: Client, file: Path, name: str | None) -> SentCode:
    """One file of its own: the whole code is that."""
    about = file.stat()
    if about.st_size > _max_bytes():
        raise TooLarge(f"{file} is larger than code may be: put it into the lake (easel put)")
    digest = digest_of(file.read_bytes()).hex()
    executable = os.access(file, os.X_OK)
    found = CodeFolder((CodeFile(file.name, str(file), about.st_size, digest, executable),))
    git = git_state(file.parent)
    origin = _origin(file.parent, found, git)
    return _send(client, found, name or set_name(file.with_suffix(""), None), origin, None)


def _send(
    client: Client,
    found: CodeFolder,
    name: str,
    origin: wire_job.CodeOrigin,
    cache: Path | None,
    trust: bool = False,
) -> SentCode:
    known = _Known.read(cache, client, name)
    tree = found.tree
    version = known.versions.get(tree)
    on_trust = trust and version is not None and version == known.base
    sent = SentCode("", origin, found.left_out, requirements=_requirements(found), on_trust=on_trust)
    if version is not None and (on_trust or _is_there(client, version)):
        return replace(sent, reference=version.reference, digest=version.digest)
    digests = {file.path: file.digest for file in found.files}
    base, before = (known.base, known.files) if known.base else (None, {})
    fresh = [file for file in found.files if before.get(file.path) != file.digest]
    removed = [path for path in before if path not in digests]
    try:
        made = _save(client, name, base, fresh, removed)
    except NotFound:
        if base is None:
            raise
        # The server has not what was sent before: nothing that is remembered of it counts.
        known.versions.clear()
        fresh = list(found.files)
        made = _save(client, name, None, fresh, [])
    version = SentVersion(f"{made.name}:{made.version}", made.digest)
    known.remember(tree, version, digests)
    size = sum(file.size for file in fresh)
    return replace(sent, reference=version.reference, digest=version.digest, sent=size)


def requirements_of(environment: wire_job.Environment, sent: SentCode | None) -> str | None:
    """Returns the file that names a job's packages: the one it says, else the folder's own where it can be used.

    An interpreter by its path and an image have their packages; a version of Python has none yet.
    """
    named, python = environment.requirements, environment.python
    if named == NO_ENVIRONMENT:
        return None
    has_its_own = environment.image or (python and Path(python).is_absolute())
    if named or sent is None or has_its_own:
        return named
    if python and sent.requirements and sent.requirements.endswith((".yml", ".yaml")):
        raise InvalidInput(
            f"{sent.requirements} of the folder names its own Python: leave --python {python} out, or name another "
            "file (--requirements requirements.txt; none: no packages)"
        )
    return sent.requirements


def _requirements(found: CodeFolder) -> str | None:
    paths = {file.path for file in found.files}
    return next((name for name in REQUIREMENTS if name in paths), None)


def _is_there(client: Client, version: SentVersion) -> bool:
    try:
        found = client.lake.file_set(version.reference)
    except NotFound:
        return False
    return found.dropped_at is None and found.digest == version.digest


def _save(
    client: Client, name: str, base: SentVersion | None, fresh: Sequence[CodeFile], removed: Sequence[str]
) -> wire.FileSet:
    root = f"/code/{name}/"
    without = [root + path for path in removed]
    on = {"base": base.reference, "base_digest": base.digest or None} if base else {}

    def save(**added: Any) -> wire.FileSet:
        body = ask(wire.SaveCode, name=name, without=without, **on, **added)
        return client.connection.post(f"{client.root}/filesets/code", body, wire.FileSet)

    if not fresh:
        return save()
    if len(fresh) <= CARRIED_FILES and sum(file.size for file in fresh) <= CARRIED_BYTES:
        files = [{"path": root + file.path, "content": _content(file)} for file in fresh]
        try:
            return save(files=files)
        except InvalidInput:
            pass  # an older server, which takes uploads only; or the same refusal comes again
    return save(upload=_upload(client, root, fresh))


def _content(file: CodeFile) -> str:
    """Returns a small file's bytes in base64, as they were when the folder was looked at."""
    try:
        data = file.local.read_bytes()
    except FileNotFoundError as error:
        raise InvalidInput(f"{file.local} went away while it was read: try again") from error
    if digest_of(data).hex() != file.digest:
        raise _changed(file.local)
    return b64encode(data).decode()


def _changed(local: Path) -> InvalidInput:
    return InvalidInput(
        f"{local} changed while it was sent: try again, or name it in .easelignore if it is no code"
    )


def _upload(client: Client, root: str, fresh: Sequence[CodeFile]) -> str:
    expected = {root + file.path: file.digest for file in fresh}

    def checked(file: LocalFile, digest: Digest) -> str:
        if digest.hex() != expected[file.path]:
            raise _changed(file.local)
        return file.path

    files = [LocalFile(root + file.path, file.local, file.size) for file in fresh]
    return client.lake.upload_files(files, name=checked).id


@dataclass(frozen=True, slots=True)
class SentVersion:
    """A version of a file set and the digest of what it held when it was sent; empty from an older server."""

    reference: str
    digest: str


@dataclass(slots=True)
class _Known:
    """What was sent of a folder to one project of one server: versions by the folder's content, the last one `base`.

    The server may have been set back since, or another one may answer at its address. So nothing of this is used
    without the version's digest, which the server compares.
    """

    file: Path | None = None
    versions: dict[str, SentVersion] = field(default_factory=dict)
    base: SentVersion | None = None
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, cache: Path | None, client: Client, name: str) -> _Known:
        if cache is None:
            return cls()
        where = hashlib.sha256(f"{client.server} {client.project} {name}".encode()).hexdigest()[:16]
        file = cache / f"sent-{where}.json"
        try:
            data: Mapping[str, Any] = json.loads(file.read_bytes())
            versions = {tree: SentVersion(*version) for tree, version in data["versions"].items()}
            return cls(file, versions, SentVersion(*data["base"]), dict(data["files"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(file)

    def remember(self, tree: str, version: SentVersion, files: Mapping[str, str]) -> None:
        if self.file is None:
            return
        older = [(key, value) for key, value in self.versions.items() if key != tree]
        versions = {key: astuple(each) for key, each in [*older[1 - _REMEMBERED :], (tree, version)]}
        data = {"versions": versions, "base": astuple(version), "files": dict(files)}
        write_private(self.file, json.dumps(data))


def set_name(folder: Path, git: GitState | None) -> str:
    """The file set of a folder's code: after the repository where the folder is one, else after the folder."""
    text = folder.name
    if git is not None and git.remote and git.top == folder.resolve():
        text = _basename(git.remote) or folder.name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_") or "folder"
    return f"code-{plain}"[:60].rstrip("-_")


def _basename(url: str) -> str:
    return re.split(r"[/:]", url.rstrip("/"))[-1].removesuffix(".git")


def _origin(folder: Path, found: CodeFolder, git: GitState | None) -> wire_job.CodeOrigin:
    executable = [file.path for file in found.files if file.executable][:1000]
    if git is None:
        return wire_job.CodeOrigin(folder=str(folder), executable=executable)
    return wire_job.CodeOrigin(
        folder=str(folder),
        commit=git.commit,
        branch=git.branch,
        remote=git.remote,
        changed=bool(git.diff),
        executable=executable,
    )


def _with_diff(found: CodeFolder, git: GitState | None, place: Path) -> CodeFolder:
    if git is None or not git.diff:
        return found
    local = place / "uncommitted.diff"
    local.write_bytes(git.diff)
    diff = CodeFile(DIFF, str(local), len(git.diff), digest_of(git.diff).hex(), False)
    return CodeFolder(tuple(sorted((*found.files, diff), key=lambda file: file.path)), found.left_out)


def _repository(folder: Path) -> Path | None:
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


def _cache_folder(folder: Path) -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return base / "easel" / "code" / hashlib.sha256(str(folder).encode()).hexdigest()[:24]


def _max_bytes() -> int:
    text = os.environ.get(LIMIT, "")
    if not text:
        return MAX_BYTES
    try:
        return int(float(text) * (1 << 20))
    except ValueError:
        raise InvalidInput(f"{LIMIT}={text!r} is no number of megabytes") from None
