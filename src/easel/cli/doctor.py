"""`easel doctor`: what this installation has, lacks and should fix."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from easel.cli.output import AsJson, console, say
from easel.cli.plain import size
from easel.declare.counted import counted
from easel.errors import EaselError, Unauthenticated
from easel.version import __version__

app = typer.Typer()

READ_BYTES = 20 * 2**30
ORPHANS = "Upload these files again, replay what made them, or bring a backup back (`easel restore`)"
State = Literal["ok", "missing", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`wrong` must be fixed; `missing` matters only to who wants what it is for."""

    what: str
    state: State
    detail: str


EXTRAS = {
    "server": ("sqlalchemy", "fastapi", "uvicorn", "blake3"),
    "apps": ("torch", "sklearn", "lightgbm", "onnx"),
    "postgres": ("psycopg",),
    "s3": ("boto3",),
    "ray": ("ray",),
    "sign-on": ("authlib", "joserfc", "ldap3"),
    "traces": ("opentelemetry",),
    "reports": ("fpdf",),
}
PROGRAMS = {
    "bwrap": "jobs of users run in a sandbox (Debian: bubblewrap)",
    "sbatch": "jobs can go to Slurm (Debian: slurm-client)",
    "nvidia-smi": "GPUs of this machine become devices",
}


FORBIDDEN = (
    "it is installed and does not work for this user, so jobs are refused: let ordinary users make user namespaces "
    "(sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)"
)


@app.command()
def doctor(
    as_json: AsJson = False,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="First make the home and its keys private, and forget where damaged bytes lie, so that uploading "
            "them again heals them",
        ),
    ] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every stored byte, however many there are")
    ] = False,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Try every known way out of the sandbox on this machine")
    ] = False,
) -> None:
    """Check this installation and say what to fix. Exits 1 if something is wrong."""
    if sandbox:
        _try_sandbox(as_json)
        return
    if fix:
        _make_private()
    findings = [finding for check in CHECKS for finding in check()]
    findings += _stored(fix=fix, deep=deep)
    findings += _faults()
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        marks = {"ok": "[green]✓[/]", "missing": "[yellow]–[/]", "wrong": "[red]✗[/]"}
        for finding in findings:
            console().print(f"{marks[finding.state]} [bold]{finding.what}[/]", end="  ")
            console().print(finding.detail, markup=False, highlight=False)
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


def _make_private() -> None:
    """The home can be entered, and keys and the database be read, by their owner alone."""
    from easel.flow.operate.faults import PRIVATE
    from easel.serve.settings import load

    folder = load().folder
    if not folder.is_dir():
        return
    kept = [folder, *(path for name in PRIVATE for path in folder.glob(name))]
    for path in kept:
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            path.chmod(mode & 0o700)
            say(f"{path} was open to others and is private now")


def _try_sandbox(as_json: bool) -> None:
    from easel.run.sandbox import NO_SANDBOX, probe
    from easel.testing.sandbox_escapes import try_all

    bwrap = probe()
    if bwrap is None:
        say(f"✗ {NO_SANDBOX}")
        raise typer.Exit(1)
    ways = try_all(bwrap)
    left = [way for way in ways if not way.closed]
    if as_json:
        print(json.dumps([asdict(way) for way in ways], indent=2))
    else:
        for way in left:
            console().print(f"[red]✗[/] [bold]{way.name}[/]", end="  ")
            console().print(way.said, markup=False, highlight=False)
        print(f"{len(ways)} ways out tried, {len(ways) - len(left)} closed")
    if left:
        raise typer.Exit(1)


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    yield Finding(
        "python", "ok" if good else "wrong", f"{version}, easel {__version__}; 3.11 or newer is needed"
    )


def _extras() -> Iterator[Finding]:
    for extra, modules in EXTRAS.items():
        absent = [module for module in modules if importlib.util.find_spec(module) is None]
        if absent:
            remedy = f"pip install 'easel-ml[{extra}]' to add it (lacks {', '.join(absent)})"
            yield Finding(f"extra {extra}", "missing", remedy)
        else:
            yield Finding(f"extra {extra}", "ok", "installed")


def _programs() -> Iterator[Finding]:
    for program, use in PROGRAMS.items():
        found = shutil.which(program)
        if found and program == "bwrap" and not _walls_stand():
            yield Finding(program, "wrong", FORBIDDEN)
            continue
        yield Finding(program, "ok" if found else "missing", use if found else f"not found; with it {use}")


def _walls_stand() -> bool:
    """Whether bubblewrap works for this very user: the kernel may forbid it."""
    if importlib.util.find_spec("psutil") is None:  # without the server's parts no jobs run here
        return True
    from easel.run.sandbox import probe

    return probe() is not None


def _kernel() -> Iterator[Finding]:
    from easel.run.trial_walls import can_wall_in

    found = can_wall_in()
    lacks = "not in this kernel (5.19 or newer, among its security modules): no trials of apps run here"
    yield Finding(
        "Landlock", "ok" if found else "missing", "trials of apps are walled in" if found else lacks
    )


def _home() -> Iterator[Finding]:
    if importlib.util.find_spec("sqlalchemy") is None:
        return
    from easel.serve.settings import load

    try:
        settings = load()
    except EaselError as error:
        yield Finding("settings", "wrong", error.message)
        return
    folder = settings.folder
    if not folder.exists():
        yield Finding("home", "missing", f"{folder} does not exist yet: `easel up` makes it")
        return
    yield Finding("home", "ok", str(folder))
    yield from _database(settings.database)


def _database(url: str) -> Iterator[Finding]:
    from easel.store.engine import Store
    from easel.store.migrate import SchemaFit, head, look_at_schema

    engine = url.split(":", 1)[0]
    try:
        store = Store(url)
        found, fit = look_at_schema(store)
        store.close()
    except EaselError as error:
        yield Finding("database", "wrong", f"{engine}: {error.message}")
        return
    if found is None:
        yield Finding("database", "missing", f"{engine}, empty: `easel up` makes it")
    else:
        detail = f"{engine}, schema {found}" + (
            "" if fit is SchemaFit.CURRENT else f"; this release has {head()}"
        )
        if fit is SchemaFit.TOO_NEW:
            yield Finding("database", "wrong", f"{detail}: install the release that wrote it")
        else:
            yield Finding("database", "missing" if fit is SchemaFit.OLDER else "ok", detail)


def _stored(*, fix: bool, deep: bool) -> Iterator[Finding]:
    """Damaged bytes, rows that name what is not there, mounts that are left: of an installation that is here."""
    if importlib.util.find_spec("sqlalchemy") is None:
        return
    from easel.flow.lake.examine import examine_lake
    from easel.run.leftovers import stale_mounts
    from easel.serve.lake import open_lake
    from easel.serve.settings import load
    from easel.store.engine import Store
    from easel.store.migrate import SchemaFit, look_at_schema

    try:
        settings = load()
        if not settings.folder.is_dir():
            return
        store = Store(settings.database)
        if look_at_schema(store)[1] not in (SchemaFit.CURRENT, SchemaFit.NEWER):
            store.close()
            return
        found = examine_lake(open_lake(settings, store), None if deep else READ_BYTES, forget=fix)
        store.close()
    except EaselError:
        return  # `_home` has said what is wrong
    amount = f"{counted(found.blobs, 'blob')}, {size(found.size)}"
    part = "" if found.read >= found.size else f"; {size(found.read)} were read (--deep reads all)"
    if found.damaged:
        names = [name for each in found.damaged.values() for name in each][:5]
        remedy = (
            "upload them again, or restore a backup"
            if fix
            else "run `easel doctor --fix`, then upload them again"
        )
        detail = (
            f"{len(found.damaged)} of {amount} are damaged ({', '.join(names) or 'of no file'}): {remedy}"
        )
        yield Finding("stored bytes", "wrong", detail + part)
    else:
        yield Finding("stored bytes", "ok", amount + part)
    for kind, where in found.orphans.items():
        yield Finding("orphan rows", "wrong", f"{kind}: {', '.join(where[:5])}. {ORPHANS}")
    if not found.orphans:
        yield Finding("orphan rows", "ok", "none")
    left = stale_mounts(settings.folder, Path("/proc/self/mounts").read_text().splitlines())
    if left:
        said = ", ".join(map(str, left[:5]))
        yield Finding("stale mounts", "wrong", f"{said}: umount them (umount -l where they are busy)")
    else:
        yield Finding("stale mounts", "ok", "none")


STATES: dict[str, State] = {"ok": "ok", "warning": "missing", "failed": "wrong"}


def _faults() -> Iterator[Finding]:
    """Disk, file modes, clock, lost workers, backups and tokens of an installation that is here."""
    if importlib.util.find_spec("sqlalchemy") is None:
        return
    from easel.flow.operate.faults import examine_installation
    from easel.serve.housekeeping import place_of
    from easel.serve.settings import load
    from easel.store.engine import Store
    from easel.store.migrate import SchemaFit, look_at_schema

    try:
        settings = load()
        if not settings.folder.is_dir():
            return
        store = Store(settings.database)
        try:
            if look_at_schema(store)[1] in (SchemaFit.CURRENT, SchemaFit.NEWER):
                free = shutil.disk_usage(settings.folder).free
                for check in examine_installation(
                    store,
                    settings.folder,
                    settings.least_free_mb << 20,
                    free,
                    lambda target: place_of(settings, target),
                ):
                    yield Finding(check.name, STATES[check.severity.value], check.detail)
        finally:
            store.close()
    except EaselError:
        return  # `_home` has said what is wrong


def _server() -> Iterator[Finding]:
    from easel.sdk.client import Client

    try:
        with Client(attempts=1) as client:
            me = client.whoami()
        yield Finding("server", "ok", f"{client.server}, logged in as {me.user.name}")
    except Unauthenticated as error:
        yield Finding(
            "server", "wrong", f"{error.message}; your token has expired or was revoked: `easel login`"
        )
    except EaselError as error:
        yield Finding("server", "missing", error.message)


CHECKS: list[Callable[[], Iterator[Finding]]] = [_python, _extras, _programs, _kernel, _home, _server]
