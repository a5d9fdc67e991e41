"""Container images as root folders: unpacked once, then run behind the same walls as every other command.

An image is only a file system and a few variables. No engine runs it: bubblewrap shows the job the unpacked image in
place of this machine's own system, so limits, logs and kills stay what they are for every job. `podman` or `docker`
fetch images; where neither may be installed, an admin lays an exported one on the shelf.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from easel.errors import EaselError
from easel.run.sandbox import INSIDE
from easel.run.tree import die_with

_TRANSPORTS = {
    "dir",
    "docker",
    "docker-archive",
    "docker-daemon",
    "oci",
    "oci-archive",
    "containers-storage",
    "sif",
}
TOOLS = ("podman", "docker")
_NAME = re.compile(
    r"(?:[a-z0-9][a-z0-9.-]*(?::[0-9]{1,5})?/)?"  # a registry
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
"""What registries call an image. Not `dir:/path` or `oci-archive:file`, which would read this machine's files."""
MAX_NAME = 255
_MOUNTS = (INSIDE.lstrip("/"), "tmp", "proc", "dev")


class NoImage(EaselError):
    """This device cannot have the image: says what an admin must do."""

    kind = "no-image"


@dataclass(frozen=True, slots=True)
class Image:
    """`root` is to be shown as `/`; `variables` are those that the image sets."""

    root: Path
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Images:
    """`shelf` holds exported images (`NAME.tar`, with `_` for `/` and `:`), `folder` what was unpacked of them."""

    shelf: Path
    folder: Path
    bwrap: str
    tools: Sequence[str] = TOOLS

    def get(self, name: str) -> Image:
        """Unpacked, fetched first where it is not here. Agents that want the same image wait for one another."""
        check_name(name)
        exported = self.shelf / f"{re.sub('[/:@]', '_', name)}.tar"
        if exported.is_file():
            about = exported.stat()
            key = _key(f"{exported.name} {about.st_mtime_ns} {about.st_size}")
            return self._unpacked(key, ["cat", str(exported)], {})
        tool = next((found for found in map(shutil.which, self.tools) if found), None)
        if tool is None:
            raise NoImage(
                f"this device has no image {name!r} and nothing to fetch it with: install podman "
                f"(apt install podman), or lay what `docker export` wrote of it at {exported}"
            )
        return self._fetched(tool, name)

    def _fetched(self, tool: str, name: str) -> Image:
        known = _run(tool, "image", "inspect", name)
        if known.returncode != 0:
            pulled = _run(tool, "pull", "--quiet", name)
            known = _run(tool, "image", "inspect", name)
            if pulled.returncode != 0 or known.returncode != 0:
                said = (pulled.stderr or known.stderr).strip().splitlines()[-1:] or ["no reason given"]
                raise NoImage(f"{Path(tool).name} cannot fetch the image {name!r}: {said[0][:300]}")
        about = json.loads(known.stdout)[0]
        variables = dict(pair.partition("=")[::2] for pair in about.get("Config", {}).get("Env") or ())
        key = _key(about["Id"])
        if (self.folder / key).is_dir():
            return Image(self.folder / key, variables)
        made = _run(tool, "create", name, "true")
        if made.returncode != 0:
            raise NoImage(f"{Path(tool).name} cannot open the image {name!r}: {made.stderr.strip()[-300:]}")
        container = made.stdout.strip().splitlines()[-1]
        try:
            return self._unpacked(key, [tool, "export", container], variables)
        finally:
            _run(tool, "rm", container)

    def _unpacked(self, key: str, source: Sequence[str], variables: Mapping[str, str]) -> Image:
        """The folder of `key`, filled from the tar that the command `source` writes."""
        root = self.folder / key
        with self._alone():
            if not root.is_dir():
                partial_ = self.folder / f"{key}.partial"
                shutil.rmtree(partial_, ignore_errors=True)
                partial_.mkdir(parents=True)
                self._extract(source, partial_)
                partial_.chmod(0o755)  # the image may say otherwise, and a job is not its owner
                for name in _MOUNTS:  # the image is shown read-only: what is mounted over must be there
                    (partial_ / name).mkdir(exist_ok=True)
                partial_.rename(root)
        return Image(root, variables)

    def _extract(self, source: Sequence[str], target: Path) -> None:
        """Extracts in a sandbox of its own: a tar can name any path, and links that lead out of the target."""
        walls = [self.bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc"]
        walls += ["--dev", "/dev", "--bind", str(target), "/mnt", "--cap-drop", "ALL", "--"]
        unpack = [*walls, "tar", "--extract", "--no-same-owner", "--exclude=dev/*", "--directory=/mnt"]
        dies = partial(die_with, os.getpid())
        with subprocess.Popen(  # noqa: S603
            source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=dies
        ) as tar:
            done = subprocess.run(  # noqa: S603
                unpack, stdin=tar.stdout, capture_output=True, text=True, check=False, preexec_fn=dies
            )
        if done.returncode != 0 or tar.returncode != 0:
            shutil.rmtree(target, ignore_errors=True)
            raise NoImage(f"the image could not be unpacked: {done.stderr.strip()[-300:]}")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def check_name(name: str) -> None:
    """Refuses what is not `registry/name:tag` or a part of it."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name) or name.partition(":")[0] in _TRANSPORTS:
        raise NoImage(f"{name[:80]!r} is no name of a container image")


def images_of(home: Path, bwrap: str | None) -> Images:
    """Returns the images of a worker's home."""
    if bwrap is None:
        raise NoImage("container images run behind bubblewrap: install it (apt install bubblewrap)")
    return Images(home / "images", home / "run" / "images", bwrap)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        preexec_fn=partial(die_with, os.getpid()),
    )
