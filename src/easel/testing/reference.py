"""The reference pages, made from the code: settings, command line, API, Python. `scripts/reference` writes them."""

from __future__ import annotations

import inspect
import os
import re
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

MADE = "<!-- Made by scripts/reference: change the code, not this page. -->\n"


def settings_page() -> str:
    from easel.serve.settings import Settings

    lines = [
        "# Settings",
        MADE,
        "Each setting is a variable (`EASEL_PORT=9000`) or a line of `easel.toml` in `EASEL_HOME` (`port = 9000`); "
        "the variable wins. `EASEL_CONFIG` names another file. Secrets are never printed.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else f"`{field.default}`"
        lines.append(f"| `EASEL_{name.upper()}` | {default} | {field.description} |")
    lines += [
        "",
        "For the SDK and the command line: `EASEL_SERVER`, `EASEL_TOKEN`, `EASEL_PROJECT`, which win over what "
        "`easel login` remembered.",
    ]
    return "\n".join(lines) + "\n"


def cli_page() -> str:
    import typer
    from typer.main import get_command

    from easel.cli.main import COMMANDS, EXIT_CODES, app

    lines = ["# Command line", MADE, "`--json` prints JSON for scripts. Exit codes: 0 success, 1 unforeseen,"]
    lines.append(", ".join(f"{code} {kind.kind}" for kind, code in EXIT_CODES) + ".\n")
    group = get_command(app)
    context = typer.Context(group, info_name="easel")
    for name in COMMANDS:
        command = group.get_command(context, name)  # type: ignore[attr-defined]
        lines += _command_lines(command, f"easel {name}")
    return "\n".join(lines) + "\n"


def _command_lines(command: Any, path: str) -> list[str]:
    children: dict[str, Any] = getattr(command, "commands", None) or {}
    if children:
        lines = [f"## `{path}`", "", (command.help or "").strip(), ""]
        for name, child in children.items():
            lines += _command_lines(child, f"{path} {name}")
        return lines
    depth = "##" if path.count(" ") == 1 else "###"
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    shown = " ".join(f"{p.name.upper()}" if p.required else f"[{p.name.upper()}]" for p in arguments)
    lines = [f"{depth} `{f'{path} {shown}'.strip()}`", "", (command.help or "").strip(), ""]
    lines += [
        f"- `{'`, `'.join([*option.opts, *option.secondary_opts])}`: {option.help or ''}"
        for option in options
    ]
    return [*lines, ""] if options else lines


def api_page() -> str:
    from easel.serve.app import api_routes, create_app, declared_level
    from easel.serve.settings import Settings
    from easel.store.engine import Store

    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{folder}/easel.sqlite")
        app = create_app(Settings(home=Path(folder)), store)
        store.close()
    lines = [
        "# API",
        MADE,
        "The running server describes itself at `/api/openapi.json`. Errors are problem documents (RFC 9457). "
        "Collections take `limit`, `cursor`, `sort` and `filter=field:operator:value`; creates take an "
        "`Idempotency-Key`.",
        "",
        "| call | who may | what |",
        "|---|---|---|",
    ]
    for route in sorted(api_routes(app), key=lambda r: r.path):
        level = declared_level(route)
        who = level.name.lower().replace("_", " ") if level is not None else "?"
        what = (route.description or "").split("\n")[0]
        lines += [f"| `{method} {route.path}` | {who} | {what} |" for method in sorted(route.methods or ())]
    return "\n".join(lines) + "\n"


def access_page() -> str:
    """Returns which role may make which call: what the server itself enforces, read from its routes."""
    from easel.flow.authenticate import Level
    from easel.serve.app import api_routes, create_app, declared_level
    from easel.serve.settings import Settings
    from easel.store.engine import Store

    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{folder}/easel.sqlite")
        app = create_app(Settings(home=Path(folder)), store)
        store.close()
    roles = {
        "nobody": Level.ANYONE,
        "signed in": Level.SIGNED_IN,
        "member": Level.MEMBER,
        "project admin": Level.PROJECT_ADMIN,
        "platform admin": Level.PLATFORM_ADMIN,
    }
    lines = [
        "# Who may call what",
        MADE,
        "A member and a project admin only within their own project: what is another project's answers 404. Inside a "
        "project, grants hide files, file sets and what names them (docs/design/lake.md), and only its owner or an "
        "admin changes or deletes a thing. Addresses under `/blobs` are signed: the address is the permission.",
        "",
        f"| call | {' | '.join(roles)} | worker |",
        f"|---|{'---|' * (len(roles) + 1)}",
    ]
    for route in sorted(api_routes(app), key=lambda r: r.path):
        level = declared_level(route)
        for method in sorted(route.methods or ()):
            is_worker = level is Level.WORKER
            marks = [
                "✓" if level is not None and not is_worker and has >= level else "" for has in roles.values()
            ]
            worker = "✓" if is_worker or level is Level.ANYONE else ""
            lines.append(f"| `{method} {route.path}` | {' | '.join(marks)} | {worker} |")
    return "\n".join(lines) + "\n"


def python_page() -> str:
    lines = [
        "# Python",
        MADE,
        "What scripts and notebooks may import. Everything else inside the package may change without notice.",
        "",
    ]
    faces = (
        ("easel", "The client, jobs and studies"),
        ("easel.study", "Declaring a study"),
        ("easel.testing", "Suites for your own stores, executors, policies and strategies"),
    )
    for face, about in faces:
        module = import_module(face)
        lines += [f"## `{face}`", "", f"{about}.", "", "| name | what |", "|---|---|"]
        for name in module.__all__:
            if not name.startswith("__"):
                one = (
                    module.__getattr__(name)
                    if name in vars(module).get("_LAZY", ())
                    else getattr(module, name)
                )
                lines.append(f"| `{name}{_signature(one)}` | {_first_line(one)} |")
        lines.append("")
        if face == "easel":
            lines += _client_lines()
    return "\n".join(lines) + "\n"


def _client_lines() -> list[str]:
    """Returns the methods of the client, group by group."""
    from easel.sdk.client import Client

    lines = ["## `easel.Client`", "", (inspect.getdoc(Client) or "").split("\n\n")[0], ""]
    with Client("http://localhost", "easel_x", "p") as client:
        for name in sorted(name for name in dir(client) if not name.startswith("_") and name != "connection"):
            one = getattr(client, name)
            methods = [m for m in vars(type(one)).items() if not m[0].startswith("_") and callable(m[1])]
            if not type(one).__module__.startswith("easel.sdk.") or not methods:
                continue
            lines += [f"### `client.{name}`", "", "| call | what |", "|---|---|"]
            lines += [f"| `{label}{_signature(call)}` | {_first_line(call)} |" for label, call in methods]
            lines.append("")
    return lines


def _signature(thing: Any) -> str:
    try:
        text = str(inspect.signature(thing)) if callable(thing) else ""
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"<(\w+\.\w+): [^>]*>", r"\1", re.sub(r"\(self(, )?", "(", text))
    text = re.sub(r"<function ([\w.<>]+) at 0x[0-9a-f]+>", r"\1", text)
    return text.replace("'", "").replace('"', "").replace("|", "\\|")


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n")[0].replace("|", "\\|")


PAGES = {
    "settings.md": settings_page,
    "cli.md": cli_page,
    "api.md": api_page,
    "python.md": python_page,
    "access.md": access_page,
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        (folder / name).write_text(make())


if __name__ == "__main__":
    os.environ.pop("EASEL_HOME", None)
    main(Path(sys.argv[1]))
