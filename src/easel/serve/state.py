"""What a running server is made of, handed to its routes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import Request

from easel.declare.sign_on import LdapSettings
from easel.flow.apps.infer import Models
from easel.flow.audit.log import AuditLog
from easel.flow.lake.upload import Lake
from easel.run.secret_store import SecretStore
from easel.serve.exchange_batcher import ExchangeBatcher
from easel.serve.exec_client import ExecClient
from easel.serve.lake import Addresses
from easel.serve.metrics import Metrics
from easel.serve.model_pool import ModelPool
from easel.serve.recent import Recent
from easel.serve.settings import Settings
from easel.serve.worker_visits import WorkerVisits
from easel.store.engine import Store as Store
from easel.store.engine import Tx as Tx  # for routes, which know nothing else of the store

if TYPE_CHECKING:
    from easel.flow.sign_on.oidc import OidcProvider
    from easel.records.identity import Caller
    from easel.serve.answers import Serving
    from easel.serve.failed_logins import FailedLogins
    from easel.serve.known_users import KnownUsers


@dataclass(slots=True)
class AppState:
    settings: Settings
    store: Store
    metrics: Metrics
    failed_logins: FailedLogins
    known_users: KnownUsers
    lake: Lake
    addresses: Addresses
    batcher: ExchangeBatcher
    visits: WorkerVisits
    exec_client: ExecClient
    audit: AuditLog
    model_files: Models
    models: ModelPool
    recent_callers: Recent[Caller]
    recent_models: Recent[Serving]
    models_ready: dict[tuple[str, str], asyncio.Task[None]] = field(default_factory=dict)
    """Models that were got ready before anybody asked them, by project and file set."""
    providers: Mapping[str, OidcProvider] = field(default_factory=dict)
    directories: Mapping[str, LdapSettings] = field(default_factory=dict)
    handover: str = ""
    """The socket at which programs on this machine hand over files; empty while there is none."""
    cordoned: str | None = None
    """Why `/readyz` says no though nothing is wrong; None while it does not."""
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the server is told to stop: streams end themselves, so that it need not wait for them."""

    @property
    def secrets(self) -> SecretStore:
        """What jobs may know and logs may not show."""
        return SecretStore(self.settings.folder / "secrets")


def app_state(request: Request) -> AppState:
    found: AppState = request.app.state.easel
    return found
