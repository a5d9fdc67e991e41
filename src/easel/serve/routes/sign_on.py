"""Sign on elsewhere, and log in on machines without a browser."""

from __future__ import annotations

import html
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated
from urllib.parse import parse_qs

from anyio import to_thread
from fastapi import Path, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse

from easel.declare.verbs import Verb
from easel.errors import NotFound, Unauthenticated
from easel.flow.issue_token import IssuedToken
from easel.flow.log_in import SESSION_LASTS
from easel.flow.sign_on import browser, device, providers
from easel.flow.sign_on.device import Wait
from easel.records.identity import Caller
from easel.serve.access import SESSION_COOKIE, SignedIn, State, acts, address_of, anyone
from easel.serve.audit import note_caller
from easel.serve.lake import signing_key
from easel.serve.router import Router
from easel.serve.state import AppState, Store
from easel.wire import sign_on as wire

if TYPE_CHECKING:
    from easel.flow.sign_on.oidc import OidcProvider

router = Router(prefix="/api/v1", tags=["sign-on"])
PREFIX = "/api/v1/sign-on"
STATE_COOKIE = "easel_sign_on"
Provider = Annotated[str, Path(max_length=40)]
_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@router.get("/sign-on", response_model=wire.SignOnWays, dependencies=[anyone])
def ways(state: State) -> wire.SignOnWays:
    """Where people may log in besides with a token."""
    found = [
        wire.SignOnWay(name=each.settings.name, label=each.settings.shown, password=False)
        for each in state.providers.values()
    ]
    found += [
        wire.SignOnWay(name=each.name, label=each.shown, password=True) for each in state.directories.values()
    ]
    return wire.SignOnWays(items=found)


@router.get(
    "/sign-on/{provider}/start", response_class=RedirectResponse, status_code=302, dependencies=[anyone]
)
def start(
    request: Request,
    state: State,
    provider: Provider,
    next_page: Annotated[
        str, Query(alias="next", max_length=2000, description="A path of this server")
    ] = "/",
) -> Response:
    """Send the browser to the provider."""
    found = _provider(state, provider)
    url, secret = browser.start(state.store, found, next_page, _redirect_uri(request, state, provider))
    answer = RedirectResponse(url, status_code=302)
    answer.set_cookie(
        STATE_COOKIE,
        secret,
        max_age=int(browser.LASTS.total_seconds()),
        httponly=True,
        samesite="lax",  # it must come along when the provider sends the browser back
        secure=state.settings.https,
        path=PREFIX,
    )
    return answer


@router.get("/sign-on/{provider}/callback", response_class=HTMLResponse, dependencies=[anyone])
def callback(request: Request, state: State, provider: Provider) -> Response:
    """The browser is back: check what the provider says, and open a session."""
    found = _provider(state, provider)
    answer = {name: value for name, value in request.query_params.items() if len(value) <= 4000}
    cookie = request.cookies.get(STATE_COOKIE, "")
    try:
        made = browser.finish(state.store, found, answer, cookie, _redirect_uri(request, state, provider))
    except Unauthenticated:
        _failed(request, state)
        raise
    where = html.escape(made.next, quote=True)
    page = f'<!doctype html><meta http-equiv="refresh" content="0;url={where}"><p>Logged in.</p>'
    # A page of ours and not a redirect: a strict cookie is not sent along a way that began elsewhere.
    response = HTMLResponse(page)
    response.delete_cookie(STATE_COOKIE, path=PREFIX)
    _open(response, state, made)
    return response


@router.post("/sign-on/{provider}/password", response_model=wire.SignedOn, dependencies=[anyone])
def password(
    request: Request, response: Response, state: State, provider: Provider, body: wire.Password
) -> wire.SignedOn:
    """Log in at a directory with name and password."""
    rules = state.directories.get(provider)
    if rules is None:
        raise NotFound(f"there is no directory {provider!r} here")
    from easel.flow.sign_on.ldap import check_password

    account, given = f"{provider} {body.user}", body.password.get_secret_value()
    with state.failed_logins.guessing(address_of(request.scope), account, "passwords", wrong=Unauthenticated):
        person = check_password(rules, body.user, given)
    made = browser.open_session(state.store, rules, person, "/")
    _open(response, state, made)
    return wire.SignedOn(name=made.caller.user.name)


@router.get("/log-out-address", response_model=wire.LogOutAddress)
def log_out_address(request: Request, state: State, caller: SignedIn) -> wire.LogOutAddress:
    """Where the browser logs out of the provider too; null where it need not."""
    with state.store.read() as tx:
        name = providers.provider_of(tx, caller)
    found = state.providers.get(name or "")
    if found is None:
        return wire.LogOutAddress(url=None)
    return wire.LogOutAddress(url=found.log_out_url(_origin(request, state) + "/"))


@router.post("/sign-on/{provider}/log-out", include_in_schema=False, dependencies=[anyone])
async def back_channel_log_out(request: Request, state: State, provider: Provider) -> Response:
    """The provider says that somebody logged out there: their sessions here end (Back-Channel Logout 1.0)."""
    found = _provider(state, provider)
    fields = await _form(request)
    try:
        await to_thread.run_sync(
            browser.log_out_by_provider, state.store, found, fields.get("logout_token", "")
        )
    except Unauthenticated as error:
        _failed(request, state)
        told = {"error": "invalid_request", "error_description": error.message}
        return JSONResponse(told, 400, headers={"cache-control": "no-store"})
    return Response(headers={"cache-control": "no-store"})


@router.post("/device/code", include_in_schema=False, dependencies=[anyone])
async def device_code(request: Request, state: State) -> Response:
    """Begin a log-in on a machine without a browser (RFC 8628, section 3.1)."""
    fields = await _form(request)
    client = fields.get("client_id", "a command line")
    address = request.client.host if request.client else "unknown"
    loopback = fields.get("loopback") == "true"
    made = await to_thread.run_sync(_begin, state.store, client, address, loopback)
    page = f"{_origin(request, state)}/device"
    shown = f"{made.user_code[:4]}-{made.user_code[4:]}"
    answer = {
        "device_code": made.device_code,
        "user_code": shown,
        "verification_uri": page,
        "verification_uri_complete": f"{page}?code={shown}",
        "expires_in": int(device.LASTS.total_seconds()),
        "interval": int(device.INTERVAL.total_seconds()),
    }
    return JSONResponse(answer, headers={"cache-control": "no-store"})


@router.post("/device/token", include_in_schema=False, dependencies=[anyone])
async def device_token(request: Request, state: State) -> Response:
    """Ask whether somebody allowed it (RFC 8628, section 3.4)."""
    fields = await _form(request)
    if fields.get("grant_type") != _GRANT or not fields.get("device_code"):
        return JSONResponse({"error": "invalid_request"}, 400)
    found = await to_thread.run_sync(_poll, state, fields["device_code"], fields.get("code", ""))
    if isinstance(found, Wait):
        return JSONResponse({"error": found.value}, 400)
    left = None if found.token.expires_at is None else found.token.expires_at - state.store.clock.now()
    answer = {"access_token": found.secret, "token_type": "Bearer"}
    return JSONResponse(answer if left is None else {**answer, "expires_in": int(left.total_seconds())})


@router.get("/device/{user_code}", response_model=wire.DeviceLogin)
def look_at_device(
    request: Request, state: State, caller: SignedIn, user_code: Annotated[str, Path(max_length=20)]
) -> wire.DeviceLogin:
    """What waits for this code."""
    with _guessing(request, state, caller), state.store.read() as tx:
        return wire.DeviceLogin.model_validate(device.look(tx, user_code))


@router.post("/device/{user_code}", response_model=wire.DeviceLogin)
@acts(Verb.MANAGE)
def answer_device(
    request: Request,
    state: State,
    caller: SignedIn,
    user_code: Annotated[str, Path(max_length=20)],
    body: wire.AnswerDevice,
) -> wire.DeviceLogin:
    """Allow or deny the log-in of a command line."""
    with _guessing(request, state, caller), state.store.write() as tx:
        found = wire.DeviceLogin.model_validate(device.answer(tx, caller, user_code, body.allow))
    proof = device.proof(signing_key(state.settings.folder), user_code) if body.allow else None
    return found.model_copy(update={"code": proof})


def _begin(store: Store, client: str, address: str, loopback: bool) -> device.DeviceCode:
    with store.write() as tx:
        return device.begin(tx, client, address, loopback=loopback)


def _poll(state: AppState, code: str, brought: str) -> IssuedToken | Wait:
    with state.store.write() as tx:
        return device.poll(tx, code, brought, signing_key(state.settings.folder))


def _provider(state: AppState, name: str) -> OidcProvider:
    found = state.providers.get(name)
    if found is None:
        raise NotFound(f"there is no provider {name!r} here")
    return found


def _open(response: Response, state: AppState, made: browser.Opened) -> None:
    note_caller(made.caller)
    response.set_cookie(
        SESSION_COOKIE,
        made.secret,
        max_age=int(SESSION_LASTS.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=state.settings.https,
        path="/",
    )


def _guessing(request: Request, state: AppState, caller: Caller) -> AbstractContextManager[None]:
    """Around a look for a short code: who guesses them must wait."""
    return state.failed_logins.guessing(address_of(request.scope), caller.user.id, "codes", wrong=NotFound)


def _failed(request: Request, state: AppState) -> None:
    state.failed_logins.note(address_of(request.scope))


def _origin(request: Request, state: AppState) -> str:
    return (state.settings.public_url or str(request.base_url)).rstrip("/")


def _redirect_uri(request: Request, state: AppState, provider: str) -> str:
    return f"{_origin(request, state)}{PREFIX}/{provider}/callback"


async def _form(request: Request) -> dict[str, str]:
    try:
        text = (await request.body()).decode()
        return {name: values[-1] for name, values in parse_qs(text, max_num_fields=20).items()}
    except ValueError:
        return {}
