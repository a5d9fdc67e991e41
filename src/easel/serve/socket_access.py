"""Who may open a websocket, and who may see the pages of a session."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request, WebSocket
from starlette.requests import HTTPConnection

from easel.declare.verbs import Verb
from easel.errors import Denied, EaselError, NotFound, Unauthenticated
from easel.flow.authenticate import Act, Level, Secret, authenticate
from easel.flow.jobs.sessions import no_session, project_of
from easel.records.identity import Caller
from easel.serve.access import SESSION_COOKIE, Access, address_of, noting, presented_secret
from easel.serve.audit import note_refusal, note_route
from easel.serve.problems import status_of
from easel.serve.state import AppState, app_state

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_ACT = Act(Verb.RUN)
"""Coming in to a job is more than looking at it, whatever is done there."""


class SocketAccess(Access):
    """A member of the project who opens a websocket: by a token, or by a session whose page is ours (its origin)."""

    def __init__(self) -> None:
        super().__init__(Level.MEMBER)

    def project(self, connection: HTTPConnection) -> str | None:
        """The project that is asked for."""
        found: str | None = connection.path_params.get("project")
        return found

    def admit(self, state: AppState, secret: Secret, connection: HTTPConnection) -> Caller:
        return authenticate(
            state.store, secret, self.level, self.project(connection), _ACT, noting(connection)
        )

    def check_socket(self, socket: WebSocket) -> Caller:
        try:
            return self._check_socket(socket)
        except EaselError as error:
            note_refusal(status_of(error))
            raise

    def _check_socket(self, socket: WebSocket) -> Caller:
        state: AppState = socket.app.state.easel
        scheme, _, token = socket.headers.get("authorization", "").partition(" ")
        session = socket.cookies.get(SESSION_COOKIE)
        if scheme.lower() == "bearer" and token:
            secret = Secret(token.strip(), is_session=False)
        elif session:
            origin, host = socket.headers.get("origin", ""), socket.headers.get("host", "")
            if urlsplit(origin).netloc != host:
                raise Denied("this page is not ours: open it from Easel's own address")
            secret = Secret(session, is_session=True)
        else:
            raise Unauthenticated("this needs a token: `easel login`, or send 'Authorization: Bearer …'")
        try:
            return self.admit(state, secret, socket)
        except Unauthenticated:
            state.known_users.forget(socket)
            state.failed_logins.note(address_of(socket.scope))
            raise


class SessionAccess(SocketAccess):
    """A member of the project of the session that is asked for, by page or by websocket.

    A session's own pages know nothing of our CSRF header: a change must come from our origin.
    """

    def project(self, connection: HTTPConnection) -> str | None:
        state: AppState = connection.app.state.easel
        return project_of(state.store, connection.path_params["job"])

    def secret(self, request: Request) -> Secret | None:
        session = request.cookies.get(SESSION_COOKIE)
        if session and "authorization" not in request.headers:
            origin = request.headers.get("origin")
            if request.method not in _SAFE and urlsplit(origin or "").netloc != request.headers.get("host"):
                raise Denied("this page is not ours: open it from Easel's own address")
            return Secret(session, is_session=True)
        return presented_secret(request)

    def check(self, request: Request) -> Caller:
        note_route(request.scope["route"].path)
        try:
            secret = self.secret(request)
            if secret is None:
                raise Unauthenticated("log in to Easel first, then open the session's address again")
            return self.admit(app_state(request), secret, request)
        except EaselError:
            note_refusal()
            raise

    def admit(self, state: AppState, secret: Secret, connection: HTTPConnection) -> Caller:
        """Lets members in; others do not learn that there is such a session, nor in which project."""
        try:
            self.project(connection)
        except NotFound:  # whether there is such a session is told to nobody whom we do not know
            authenticate(state.store, secret, Level.SIGNED_IN, None, known=noting(connection))
            raise
        try:
            return super().admit(state, secret, connection)
        except NotFound:
            raise no_session(connection.path_params["job"]) from None
