"""Guides that are followed literally: blocks of docs/how-to that are marked `<!-- test: kind -->`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from easel.testing.server import ServerProcess


def blocks(guide: Path, kind: str) -> list[str]:
    """The shell blocks that are marked with this kind, without their indentation."""
    found = re.findall(rf"<!-- test: {kind} -->\s*```sh\n(.*?)```", guide.read_text(), re.DOTALL)
    if not found:
        raise ValueError(f"{guide} has nothing marked {kind}")
    return [re.sub(r"^ {3}", "", block, flags=re.MULTILINE) for block in found]


def settings(guide: Path) -> dict[str, str]:
    """What the guide exports, as settings of a server."""
    (block,) = blocks(guide, "settings")
    return {
        name.lower(): value for name, value in re.findall(r"^export EASEL_(\w+)=(.*)$", block, re.MULTILINE)
    }


def follow(server: ServerProcess, guide: Path, project: str) -> list[str]:
    """Run the guide's commands as a person would; what each printed."""
    environment = {
        **os.environ,
        "EASEL_SERVER": server.address,
        "EASEL_TOKEN": server.admin_token,
        "EASEL_PROJECT": project,
    }
    told = []
    for line in blocks(guide, "run"):
        words = shlex.split(line)
        if words[0] != "easel":
            raise ValueError(f"{guide} runs {words[0]}, which nobody checks")
        done = subprocess.run(
            [sys.executable, "-m", "easel.cli.main", *words[1:]],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{line} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        told.append(done.stdout)
    return told
