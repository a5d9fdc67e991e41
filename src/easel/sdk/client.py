"""`easel.Client`: one attribute a noun, imported when it is first used: a command needs few of them."""

from __future__ import annotations

from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from easel.errors import InvalidInput
from easel.sdk.connection import Connection, ask
from easel.sdk.credentials import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easel.sdk.apps import Apps
    from easel.sdk.audit import Audit
    from easel.sdk.events import Events
    from easel.sdk.identity import Invitations, Projects, ServiceAccounts, Tokens, Users
    from easel.sdk.jobs import Jobs
    from easel.sdk.lake import LakeClient
    from easel.sdk.messages import Messages
    from easel.sdk.operate import Operations, Storage
    from easel.sdk.pipelines import Pipelines
    from easel.sdk.prices import Bills, Profiles
    from easel.sdk.queues import Queues, Secrets
    from easel.sdk.studies import Studies
    from easel.sdk.workers import WorkerTokens
    from easel.wire.identity import Me
    from easel.wire.simulation import Happiness, PoolAdvice, Simulated
    from easel.wire.terms import TermLimits, Why


class Client:
    """Talks to one Easel server as one user.

    Without arguments it uses EASEL_SERVER, EASEL_TOKEN and EASEL_PROJECT, or what `easel login` remembered.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        project: str | None = None,
        *,
        attempts: int = 6,
    ) -> None:
        credentials = find(server, token, project)
        self.connection = Connection(credentials.server, credentials.token, attempts=attempts)
        self.server = credentials.server
        self._project = credentials.project

    @property
    def project(self) -> str:
        """The project that calls are about."""
        if self._project is None:
            self._project = self._only_project()
        return self._project

    def in_project(self, project: str) -> Client:
        """The same log-in, in another project."""
        other = object.__new__(Client)
        other.connection, other.server, other._project = self.connection, self.server, project
        return other

    @property
    def root(self) -> str:
        """The path under which this project's collections are."""
        return f"/api/v1/projects/{self.project}"

    def whoami(self) -> Me:
        from easel.wire.identity import Me

        return self.connection.get("/api/v1/me", Me)

    def currency(self) -> str:
        """The currency of every amount on this server."""
        return self.whoami().currency

    def why(self, what: str) -> Why:
        """What an app, a study or a job does or waits for, since when, and what would change it."""
        from easel.wire.terms import Why

        return self.connection.get(f"{self.root}/why/{what}", Why)

    def term_limits(self) -> TermLimits:
        """The most that members of this project may ask for."""
        from easel.wire.terms import TermLimits

        return self.connection.get(f"{self.root}/term-limits", TermLimits)

    def set_term_limits(self, max_weight: float | None = None, max_budget: float | None = None) -> TermLimits:
        """Set the most that members may ask for; None: no limit. Only an admin may."""
        from easel.wire.terms import TermLimits

        body = ask(TermLimits, max_weight=max_weight, max_budget=max_budget)
        return self.connection.put(f"{self.root}/term-limits", body, TermLimits)

    @cached_property
    def projects(self) -> Projects:
        from easel.sdk.identity import Projects

        return Projects(self)

    @cached_property
    def users(self) -> Users:
        from easel.sdk.identity import Users

        return Users(self)

    @cached_property
    def invitations(self) -> Invitations:
        from easel.sdk.identity import Invitations

        return Invitations(self)

    @cached_property
    def service_accounts(self) -> ServiceAccounts:
        from easel.sdk.identity import ServiceAccounts

        return ServiceAccounts(self)

    @cached_property
    def tokens(self) -> Tokens:
        from easel.sdk.identity import Tokens

        return Tokens(self)

    @cached_property
    def worker_tokens(self) -> WorkerTokens:
        from easel.sdk.workers import WorkerTokens

        return WorkerTokens(self)

    @cached_property
    def messages(self) -> Messages:
        from easel.sdk.messages import Messages

        return Messages(self)

    @cached_property
    def operations(self) -> Operations:
        from easel.sdk.operate import Operations

        return Operations(self)

    @cached_property
    def storage(self) -> Storage:
        from easel.sdk.operate import Storage

        return Storage(self)

    @cached_property
    def jobs(self) -> Jobs:
        from easel.sdk.jobs import Jobs

        return Jobs(self)

    @cached_property
    def profiles(self) -> Profiles:
        from easel.sdk.prices import Profiles

        return Profiles(self)

    @cached_property
    def bills(self) -> Bills:
        from easel.sdk.prices import Bills

        return Bills(self)

    @cached_property
    def pipelines(self) -> Pipelines:
        from easel.sdk.pipelines import Pipelines

        return Pipelines(self)

    @cached_property
    def queues(self) -> Queues:
        from easel.sdk.queues import Queues

        return Queues(self)

    @cached_property
    def apps(self) -> Apps:
        from easel.sdk.apps import Apps

        return Apps(self)

    @cached_property
    def studies(self) -> Studies:
        from easel.sdk.studies import Studies

        return Studies(self)

    @cached_property
    def secrets(self) -> Secrets:
        from easel.sdk.queues import Secrets

        return Secrets(self)

    @cached_property
    def lake(self) -> LakeClient:
        from easel.sdk.lake import LakeClient

        return LakeClient(self)

    @cached_property
    def audit(self) -> Audit:
        from easel.sdk.audit import Audit

        return Audit(self)

    @cached_property
    def events(self) -> Events:
        from easel.sdk.events import Events

        return Events(self)

    def simulate(self, /, **fields: Any) -> Simulated:
        """Replay the project's history under other `policies` and numbers of `devices`; see `wire.simulation`."""
        from easel.sdk.simulations import simulate

        return simulate(self, **fields)

    def pool_sizes(
        self, more: Sequence[int] = (1, 2, 4), *, days: float = 90.0, per_hour: float | None = None
    ) -> PoolAdvice:
        """Queue times, money and a recommendation for larger pools. For platform admins."""
        from easel.sdk.simulations import pool_sizes

        return pool_sizes(self, more, days=days, per_hour=per_hour)

    def happiness(self) -> Happiness:
        """The best score of each app of the project over time."""
        from easel.wire.simulation import Happiness

        return self.connection.get(f"{self.root}/happiness", Happiness)

    def _only_project(self) -> str:
        mine = [project.name for project in self.projects.list()]
        if len(mine) == 1:
            return mine[0]
        if not mine:
            raise InvalidInput("you are in no project yet: ask an admin, or create one")
        raise InvalidInput(
            f"which project? You are in {', '.join(mine[:10])}: use --project or EASEL_PROJECT"
        )

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
