"""Two people in two projects and a table to learn, for the tests of apps."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from easel.declare.roles import Role
from easel.sdk.client import Client
from easel.testing.server import ServerProcess

TABLE = "input: {size: number, weight: optional number, town: category}\noutput: {sold: [no, yes]}"


def make_people(server: ServerProcess) -> dict[str, Client]:
    """Returns ana of project astro and eve of project bio, made on a new server."""
    root = server.client()
    made = {}
    for name, project in (("ana", "astro"), ("eve", "bio")):
        root.projects.create(project)
        secret = root.in_project(project).users.create(name, Role.MEMBER).token.secret
        assert secret is not None
        made[name] = server.client(secret).in_project(project)
    return made


def write_csv(path: Path, count: int) -> None:
    """Writes a table of which one column decides whether it was sold."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "weight", "town", "sold"])
        for size in rng.normal(size=count):
            weight = "" if size > 1.5 else f"{size * 2:.3f}"
            writer.writerow([f"{size:.6f}", weight, "Bern", "yes" if size > 0 else "no"])
