"""What git knows about a folder: the commit, the branch, where it came from, and what is not committed."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from easel.errors import InvalidInput

MAX_DIFF = 4 << 20
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class GitState:
    """`top` is the repository's folder; `diff` is what differs from the commit, of the files that git knows."""

    top: Path
    commit: str
    branch: str
    remote: str
    diff: bytes


def git_state(folder: Path) -> GitState | None:
    """Returns commit, branch, remote and difference; None where there is no repository, no commit yet, or no git."""
    if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        return None
    what = ["diff", "HEAD", "--no-color", "--no-ext-diff", "--binary", "--relative"]
    questions = (
        ("rev-parse", "--show-toplevel", "HEAD", "--abbrev-ref", "HEAD"),
        ("config", "--get", "remote.origin.url"),
        (*what, "--", ".", ":(exclude)*.env"),
    )
    with ThreadPoolExecutor(len(questions)) as pool:  # side by side: each is a process that starts
        found, remote, diff = pool.map(lambda question: _git(folder, *question), questions)
    if found is None:
        return None
    remote, diff = remote or b"", diff or b""
    top, commit, branch = found.decode(errors="replace").splitlines()[:3]
    if len(diff) > MAX_DIFF:
        diff = diff[:MAX_DIFF] + b"\n[cut off here: the difference is longer]\n"
    named = "" if branch == "HEAD" else branch
    return GitState(Path(top), commit, named, without_password(remote.decode(errors="replace").strip()), diff)


def without_password(url: str) -> str:
    """An address without the name and token that some people keep in it."""
    parts = urlsplit(url)
    if parts.scheme in ("http", "https") and "@" in parts.netloc:
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return url


def clone(address: str, folder: Path) -> str:
    """Check `git+URL@REV` out below `folder`; returns the URL without password. The revision may be left out."""
    url, revision = split_address(address)
    shown = without_password(url)
    folder.mkdir(parents=True, exist_ok=True)
    _must(folder, shown, "init", "--quiet")
    _must(folder, shown, "remote", "add", "origin", "--", url)
    wanted = revision or "HEAD"
    # A server may refuse to give a commit by its id: then everything is fetched and looked through.
    if _git(folder, "fetch", "--quiet", "--depth", "1", "origin", wanted, seconds=600) is None:
        _must(folder, shown, "fetch", "--quiet", "--tags", "origin", "+refs/heads/*:refs/remotes/origin/*")
        if _git(folder, "checkout", "--quiet", "--detach", wanted) is None:
            _must(folder, shown, "checkout", "--quiet", "--detach", f"origin/{wanted}")
    else:
        _must(folder, shown, "checkout", "--quiet", "--detach", "FETCH_HEAD")
    return shown


def split_address(address: str) -> tuple[str, str]:
    """(URL, revision) of `git+URL@REV`; an `@` before the host or path is part of the URL."""
    body = address.removeprefix("git+")
    match = re.fullmatch(r"(.*[^/@])@([^@:/][^@:]*)", body)
    url, revision = (match.group(1), match.group(2)) if match and _names_place(match.group(1)) else (body, "")
    if not url or url.startswith("-") or revision.startswith("-"):
        raise InvalidInput(f"{address!r} is not of the form git+URL@REV")
    return url, revision


def _names_place(url: str) -> bool:
    """Whether this is a whole address, not just the `https://user` before an `@`."""
    return bool(urlsplit(url).path.strip("/")) if "://" in url else True


def _must(folder: Path, shown: str, *arguments: str) -> bytes:
    done = _run(folder, *arguments, seconds=600)
    if done is None:
        raise InvalidInput("git is not installed here: install it, or name a folder")
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
        raise InvalidInput(f"git cannot {arguments[0]} {shown}: {said[0][:300]}")
    return done.stdout


def _git(folder: Path, *arguments: str, seconds: float = _SECONDS) -> bytes | None:
    done = _run(folder, *arguments, seconds=seconds)
    return done.stdout if done is not None and done.returncode == 0 else None


def _run(folder: Path, *arguments: str, seconds: float) -> subprocess.CompletedProcess[bytes] | None:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        return subprocess.run(  # noqa: S603 - git's own name, arguments of ours
            ["git", *arguments],  # noqa: S607
            cwd=folder,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
