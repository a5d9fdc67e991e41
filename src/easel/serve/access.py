"""Every route declares who may call it, by depending on one of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from anyio import to_thread
from fastapi import Depends, Request
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute

from easel.declare.verbs import Verb
from easel.errors import Denied, EaselError, Unauthenticated
from easel.flow.authenticate import LOOK, Act, Level, Secret, authenticate
from easel.flow.secrets import csrf_token, hashed, same
from easel.flow.workers.tokens import check as check_worker
from easel.records.identity import Caller
from easel.serve.audit import note_caller, note_credential, note_refusal, note_route, note_worker
from easel.serve.known_users import SESSION_COOKIE as SESSION_COOKIE
from easel.serve.known_users import address_of as address_of
from easel.serve.state import AppState, app_state
from easel.store.identity import Credential

CSRF_HEADER = "x-csrf-token"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_WRITES, _MANAGES = Act(Verb.WRITE), Act(Verb.MANAGE)


class Access:
    """A dependency that yields the caller, or refuses. `level` is read by the test that walks all routes."""

    def __init__(self, level: Level) -> None:
        self.level = level

    def __call__(self, request: Request) -> Caller:
        return self.check(request)

    def secret(self, request: Request) -> Secret | None:
        """What the caller shows of themselves."""
        return presented_secret(request)

    def check(self, request: Request) -> Caller:
        state = app_state(request)
        note_route(request.scope["route"].path)
        try:
            secret = self.secret(request)
        except Denied:  # the CSRF header
            note_refusal()
            raise
        try:
            if secret is None:
                raise Unauthenticated("this needs a token: `easel login`, or send 'Authorization: Bearer …'")
            act = act_of(request.scope["route"], request.method, self.level)
            project = request.path_params.get("project")
            return authenticate(state.store, secret, self.level, project, act, noting(request))
        except EaselError as error:
            note_refusal()
            if isinstance(error, Unauthenticated) and secret is not None:
                state.known_users.forget(request)
                state.failed_logins.note(address_of(request.scope))
            raise


class QuickAccess(Access):
    """The same for what is asked a thousand times a second: a caller who was just let in is let in again, until
    anything is changed here and for no longer than a second."""

    async def __call__(self, request: Request) -> Caller:  # type: ignore[override]
        state = app_state(request)
        secret = self.secret(request) if "authorization" in request.headers else None
        key = (secret, request.path_params.get("project"), request.scope["route"].path, request.method)
        known = None if secret is None else state.recent_callers.get(key)
        if known is not None:
            note_route(key[2])
            note_caller(known)
            return known
        mark = state.recent_callers.mark()
        caller = await to_thread.run_sync(self.check, request)
        if secret is not None:
            state.recent_callers.keep(key, caller, mark)
        return caller


F = TypeVar("F", bound=Callable[..., Any])


def acts(verb: Verb, *, even_archived: bool = False) -> Callable[[F], F]:
    """Declares what a route does, where its method and level do not tell; stands below the router's line."""

    def mark(endpoint: F) -> F:
        endpoint.act = Act(verb, even_archived)  # type: ignore[attr-defined]
        return endpoint

    return mark


def act_of(route: BaseRoute, method: str, level: Level) -> Act:
    """What a call of a route does: as declared, else a GET reads, admins manage, and others write."""
    declared: Act | None = getattr(getattr(route, "endpoint", None), "act", None)
    if declared is not None:
        return declared
    if method in _SAFE:
        return LOOK
    return _MANAGES if level in (Level.SIGNED_IN, Level.PROJECT_ADMIN, Level.PLATFORM_ADMIN) else _WRITES


class Anyone:
    """Declares that a route needs no log-in."""

    level = Level.ANYONE

    async def __call__(self) -> None:
        return None


def presented_secret(request: Request) -> Secret | None:
    """A bearer token, or a session cookie whose page proved with the CSRF header that it is ours."""
    found = secret_in(request)
    if found is None or not found.is_session or request.method in _SAFE:
        return found
    if not same(request.headers.get(CSRF_HEADER, ""), csrf_token(found.text)):
        raise Denied("the CSRF header is missing or wrong: reload the page and try again")
    return found


def secret_in(connection: HTTPConnection) -> Secret | None:
    """The bearer token, else the session's cookie; whether a page of ours sent it is not asked here."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        return Secret(token.strip(), is_session=False)
    session = connection.cookies.get(SESSION_COOKIE)
    return Secret(session, is_session=True) if session else None


def noting(connection: HTTPConnection) -> Callable[[Credential], None]:
    """What is done with a credential that is right, whether or not it may do this: the audit and the queue of requests
    learn whose it is."""

    def note(found: Credential) -> None:
        note_credential(found)
        connection.app.state.easel.known_users.remember(connection, found.user.id)

    return note


class WorkerAccess(Access):
    """Yields the hash of a worker's secret. A worker that was just served is known; others are looked up."""

    def __init__(self) -> None:
        super().__init__(Level.WORKER)

    async def __call__(self, request: Request) -> str:  # type: ignore[override]
        state = app_state(request)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthenticated("this is for workers: `easel worker --server URL --token-file FILE`")
        secret_hash = hashed(token.strip())
        note_route(request.scope["route"].path)
        note_worker(secret_hash)
        if secret_hash not in state.batcher.trusted:
            try:
                await to_thread.run_sync(check_worker, state.store, secret_hash)
            except Unauthenticated:
                state.failed_logins.note(address_of(request.scope))
                raise
        return secret_hash


signed_in = Access(Level.SIGNED_IN)
member = Access(Level.MEMBER)
project_admin = Access(Level.PROJECT_ADMIN)
platform_admin = Access(Level.PLATFORM_ADMIN)
quick_member = QuickAccess(Level.MEMBER)
anyone = Depends(Anyone())

SignedIn = Annotated[Caller, Depends(signed_in)]
Member = Annotated[Caller, Depends(member)]
ProjectAdmin = Annotated[Caller, Depends(project_admin)]
PlatformAdmin = Annotated[Caller, Depends(platform_admin)]
QuickMember = Annotated[Caller, Depends(quick_member)]
WorkerHash = Annotated[str, Depends(WorkerAccess())]


async def _here(request: Request) -> AppState:
    """A coroutine, because a plain function would be sent to another thread and back for one attribute."""
    return app_state(request)


State = Annotated[AppState, Depends(_here)]
