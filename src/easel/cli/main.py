"""`easel`: commands are imported only when used, so that help is instant."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from easel import errors
from easel.cli import direct
from easel.version import __version__
from easel.wire import light


class CommandEntry(NamedTuple):
    """Where a command lives: `module` has a Typer app called `attribute`."""

    help: str
    module: str
    attribute: str = "app"


COMMANDS: dict[str, CommandEntry] = {
    "up": CommandEntry("Start everything on this machine", "easel.cli.up", "up_app"),
    "serve": CommandEntry("Start only the API server", "easel.cli.up", "serve_app"),
    "controller": CommandEntry("Start only the loop that runs jobs", "easel.cli.up", "controller_app"),
    "worker": CommandEntry("Turn this machine into a device", "easel.cli.up", "worker_app"),
    "login": CommandEntry("Log in to a server and remember it", "easel.cli.login", "login_app"),
    "logout": CommandEntry("Forget the remembered log-in", "easel.cli.login", "logout_app"),
    "whoami": CommandEntry("Show who you are logged in as", "easel.cli.login", "whoami_app"),
    "projects": CommandEntry("List, create, archive, delete projects", "easel.cli.projects"),
    "users": CommandEntry("The people of a project", "easel.cli.users"),
    "invitations": CommandEntry("Codes with which people join", "easel.cli.invitations"),
    "service-accounts": CommandEntry("Programs with tokens of their own", "easel.cli.service_accounts"),
    "tokens": CommandEntry("Your tokens", "easel.cli.tokens"),
    "run": CommandEntry("Run a command as a job", "easel.cli.run", "run_app"),
    "logs": CommandEntry("What a job printed: easel logs -f JOB", "easel.cli.jobs", "logs_app"),
    "lab": CommandEntry("An interactive session: JupyterLab, code-server", "easel.cli.lab", "lab_app"),
    "shell": CommandEntry("A terminal in a running job", "easel.cli.shell", "shell_app"),
    "attach": CommandEntry("Follow a job that runs", "easel.cli.shell", "attach_app"),
    "cp": CommandEntry("Copy files out of a running job", "easel.cli.shell", "cp_app"),
    "rerun": CommandEntry("Run a job again on the same versions", "easel.cli.jobs", "rerun_app"),
    "reproduce": CommandEntry(
        "Lay a job's code, input and command out here", "easel.cli.reproduce", "reproduce_app"
    ),
    "jobs": CommandEntry("Jobs: list, show, follow, kill, rerun", "easel.cli.jobs"),
    "profiles": CommandEntry("Learn what a command takes, from a few runs", "easel.cli.profiles"),
    "estimate": CommandEntry(
        "What a profiled command would take and cost", "easel.cli.provision", "estimate_app"
    ),
    "provision": CommandEntry(
        "Run a profiled command on the best size", "easel.cli.provision", "provision_app"
    ),
    "promises": CommandEntry(
        "How often jobs started and ended as they were told", "easel.cli.provision", "promises_app"
    ),
    "bills": CommandEntry("What jobs cost; budgets and prices", "easel.cli.bills"),
    "pipelines": CommandEntry("Dependent jobs submitted as one", "easel.cli.pipelines"),
    "secrets": CommandEntry("What jobs may know and logs may not show", "easel.cli.secrets"),
    "queues": CommandEntry("Who waits, who runs; pause and reorder", "easel.cli.queues"),
    "devices": CommandEntry("The pool", "easel.cli.queues", "devices_app"),
    "shares": CommandEntry("Who used how much of the pool; weights, and what apps keep", "easel.cli.shares"),
    "messages": CommandEntry("Be told by mail, webhook, Slack or Matrix", "easel.cli.messages"),
    "drain": CommandEntry("Give a device no more work, and empty it", "easel.cli.queues", "drain_app"),
    "undrain": CommandEntry("Give a device work again", "easel.cli.queues", "undrain_app"),
    "reserve": CommandEntry("Keep a device for a project for a while", "easel.cli.queues", "reserve_app"),
    "reservations": CommandEntry("Devices kept for a project", "easel.cli.queues", "reservations_app"),
    "health": CommandEntry("What is well and what is wrong", "easel.cli.operate", "health_app"),
    "cordon": CommandEntry("Let a server's proxy send requests elsewhere", "easel.cli.operate", "cordon_app"),
    "uncordon": CommandEntry("Let a server take requests again", "easel.cli.operate", "uncordon_app"),
    "studies": CommandEntry("The best configuration of a job under a budget", "easel.cli.studies"),
    "workers": CommandEntry("Tokens with which machines join", "easel.cli.workers"),
    "learn": CommandEntry("From a table or pictures to a first model", "easel.cli.learn", "learn_app"),
    "apps": CommandEntry("Declare what to learn; see the models", "easel.cli.app_report"),
    "why": CommandEntry("Why an app, a study or a job waits", "easel.cli.terms", "why_app"),
    "open": CommandEntry("Open the page of a job, an app or a study", "easel.cli.open", "open_app"),
    "feed": CommandEntry("Give an app examples", "easel.cli.app_examples", "feed_app"),
    "refine": CommandEntry("Browse examples, switch them off and on", "easel.cli.app_examples", "refine_app"),
    "infer": CommandEntry("Ask an app's best model", "easel.cli.infer", "infer_app"),
    "score": CommandEntry("A whole file through an app's model, as a job", "easel.cli.score", "score_app"),
    "card": CommandEntry("A page about an app's model", "easel.cli.app_report", "card_app"),
    "checks": CommandEntry("What is odd about an app's examples", "easel.cli.app_report", "checks_app"),
    "generate": CommandEntry(
        "Write programs feed, refine, infer for an app", "easel.cli.infer", "generate_app"
    ),
    "infer-program": CommandEntry("Propose a program from data", "easel.cli.program", "infer_app"),
    "match": CommandEntry("Which template fires, which candidates", "easel.cli.program", "match_app"),
    "put": CommandEntry("Upload a file or a folder", "easel.cli.files", "put_app"),
    "get": CommandEntry("Download files or a file set", "easel.cli.files", "get_app"),
    "ls": CommandEntry("What is in a folder of the lake", "easel.cli.files", "ls_app"),
    "cat": CommandEntry("Write a file to standard output", "easel.cli.files", "cat_app"),
    "rm": CommandEntry("Mark files deleted", "easel.cli.files", "rm_app"),
    "mv": CommandEntry("Move files without sending a byte", "easel.cli.files", "mv_app"),
    "filesets": CommandEntry("Named, versioned lists of file versions", "easel.cli.filesets"),
    "tag": CommandEntry("Tag a file, a file set or a job", "easel.cli.artifacts", "tag_app"),
    "notes": CommandEntry("What people wrote about jobs, models, files", "easel.cli.notes"),
    "find": CommandEntry(
        "Find files, file sets or jobs by their metadata", "easel.cli.artifacts", "find_app"
    ),
    "trace": CommandEntry("What a file set was made from", "easel.cli.artifacts", "trace_app"),
    "grants": CommandEntry("Who may read and write what", "easel.cli.clean", "grants_app"),
    "gc": CommandEntry("Remove what nobody needs", "easel.cli.clean", "gc_app"),
    "quotas": CommandEntry("What a project and people in it may use", "easel.cli.quotas"),
    "storage": CommandEntry("Who holds how many bytes", "easel.cli.clean", "storage_app"),
    "events": CommandEntry("What happened, and what happens now", "easel.cli.events"),
    "audit": CommandEntry("Who did what: search, export, verify", "easel.cli.audit"),
    "simulate": CommandEntry("Replay history under other policies and pools", "easel.cli.simulate"),
    "backup": CommandEntry("Copy database and blobs while running", "easel.cli.backup", "backup_app"),
    "restore": CommandEntry("Fill an empty Easel from a backup", "easel.cli.backup", "restore_app"),
    "import": CommandEntry("Bring runs and models from MLflow", "easel.cli.mlflow", "import_app"),
    "export": CommandEntry("Write runs and models to MLflow", "easel.cli.mlflow", "export_app"),
    "doctor": CommandEntry("Check this installation and say what to fix", "easel.cli.doctor"),
}

ALIASES = {
    "study": "studies",
    "fileset": "filesets",
    "queue": "queues",
    "profile": "profiles",
    "bill": "bills",
}
"""Names of commands in version 0.1, accepted but not listed until version 0.3."""

CHECKING = frozenset(
    {
        *("up", "serve", "controller", "worker", "login", "backup", "restore", "doctor"),
        *("import", "export", "match", "infer-program"),
    }
)
"""Commands that are more than clients of a server: their wire models check what they are given (`easel.wire.light`)."""

EXIT_CODES: list[tuple[type[errors.EaselError], int]] = [
    (errors.InvalidInput, 2),
    (errors.NotFound, 3),
    (errors.Unauthenticated, 4),
    (errors.Denied, 4),
    (errors.Conflict, 5),
    (errors.QuotaExhausted, 5),
    (errors.TooLarge, 5),
    (errors.TryLater, 6),
    (errors.Misconfigured, 7),
]
"""Documented in docs/reference/cli.md; 0 is success, 1 anything unforeseen."""


class LazyGroup(TyperGroup):
    listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        if self.listing:
            return TyperCommand(name=cmd_name, help=entry.help)
        from easel.cli import forms

        part: typer.Typer = getattr(import_module(entry.module), entry.attribute)
        forms.offer_forms(part)
        part._add_completion = False  # completion is installed for `easel` as a whole
        command = typer.main.get_command(part)
        command.name = cmd_name
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.listing = False


ABOUT = "Easel: a shared studio for machine learning. Start with `easel up`."
AFTER = "Exit codes: 2 wrong input, 3 not found, 4 not allowed, 5 conflict or limit, 6 try later, 7 setup."
app = typer.Typer(
    cls=LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False, help=ABOUT, epilog=AFTER
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"easel {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version"
    ),
) -> None:
    """Easel: a shared studio for machine learning."""


def _run_directly(words: Sequence[str]) -> int | None:
    """Runs what needs no Typer and returns its exit code; None for completion, mistakes and whatever is unusual."""
    if any(name.endswith("_COMPLETE") for name in os.environ):
        return None
    if not words or words[0] in (direct.HELP, "help"):
        return _show_help(words)
    name = ALIASES.get(words[0], words[0])
    entry = COMMANDS.get(name)
    if entry is None:
        if not name.startswith("-"):
            raise errors.InvalidInput(_no_command(name))
        return None
    if name not in CHECKING:
        light.choose()
    return direct.run(getattr(import_module(entry.module), entry.attribute), name, words[1:])


def _show_help(words: Sequence[str]) -> int | None:
    """Shows what `easel`, `easel --help`, `easel help all` or `easel help COMMAND` asks for; returns the exit code."""
    from easel.cli import help_page

    listed = {name: entry.help for name, entry in COMMANDS.items()}
    if not words or list(words) == ["help"]:
        print(help_page.first_screen(listed, ABOUT))
        return 0 if words else 2
    if list(words) in ([direct.HELP], ["help", "all"]):
        print(help_page.of_easel(listed, ABOUT, AFTER))
        return 0
    if words[0] == "help":
        return _run_directly([*words[1:], direct.HELP])
    return None


def _no_command(name: str) -> str:
    from easel.declare.close import did_you_mean

    shown = name[:40]
    return f"easel has no command {shown!r}{did_you_mean(shown, COMMANDS) or ':'} `easel help all` lists them"


def main() -> int:
    try:
        done = _run_directly(sys.argv[1:])
        if done is not None:
            return done
        app()
    except errors.EaselError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("easel"):
            raise
        print(
            f"error: this command needs the package {error.name!r}: pip install 'easel-ml[server]' "
            "(or the extra that has it; docs/how-to/install.md)",
            file=sys.stderr,
        )
        return 7
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
