"""Log in without pasting a token: in a browser of this machine that comes back to us (RFC 8252), or with a code that is
shown and typed into a browser that is logged in anywhere (RFC 8628)."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from easel.clock import Clock
from easel.errors import Denied, TryLater
from easel.sdk.connection import to_error
from easel.sdk.plain_http import tls_context
from easel.wire.sign_on import SignOnWays

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass(frozen=True, slots=True)
class Shown:
    """What the person needs: the code, the page to type it into, and the page that has it filled in."""

    code: str
    page: str
    complete: str


def sign_on_ways(http: httpx.Client) -> SignOnWays:
    answer = http.get("/api/v1/sign-on")
    if answer.is_error:
        raise to_error(answer)
    return SignOnWays.model_validate_json(answer.content)


def open_http(server: str) -> httpx.Client:
    return httpx.Client(base_url=server, timeout=30.0, verify=tls_context())


def device_login(http: httpx.Client, client: str, show: Callable[[Shown], None], clock: Clock) -> str:
    """The token, once somebody allowed it. `show` tells the person what to do."""
    begun = http.post("/api/v1/device/code", data={"client_id": client})
    if begun.is_error:
        raise to_error(begun)
    told = begun.json()
    show(Shown(told["user_code"], told["verification_uri"], told["verification_uri_complete"]))
    pause, ends = float(told["interval"]), clock.monotonic() + float(told["expires_in"])
    form = {"grant_type": _GRANT, "device_code": told["device_code"]}
    while clock.monotonic() < ends:
        clock.sleep(pause)
        answer = http.post("/api/v1/device/token", data=form)
        if answer.status_code == 200:
            return str(answer.json()["access_token"])
        why = answer.json().get("error") if answer.status_code == 400 else None
        if why == "slow_down":
            pause += 5
        elif why == "access_denied":
            raise Denied("the log-in was denied in the browser")
        elif why != "authorization_pending":
            break
    raise TryLater("the code was not typed in in time: begin again with `easel login`")


BACK_TO_SHELL = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Easel</title>
<h1>%s</h1><p>You may close this window and go back to the command line.</p></html>"""
_LOOPBACK_LASTS_S = 600.0


class _Waiter(HTTPServer):
    """Listens on this machine alone, for the one browser that knows the state."""

    def __init__(self, state: str) -> None:
        super().__init__(("127.0.0.1", 0), _BrowserBack)
        self.state, self.brought = state, {"": ""}


class _BrowserBack(BaseHTTPRequestHandler):
    server: _Waiter

    def do_GET(self) -> None:
        """Takes what the browser brings, if it brings our state; anybody else learns nothing."""
        told = {name: values[-1] for name, values in parse_qs(urlsplit(self.path).query).items()}
        known = secrets.compare_digest(told.get("state", "").encode(), self.server.state.encode())
        self.send_response(200 if known else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        if known:
            self.server.brought = told
            self.wfile.write(BACK_TO_SHELL % (b"Logged in" if told.get("code") else b"The log-in was denied"))

    def log_message(self, *_: object) -> None:
        """Says nothing: the terminal belongs to the command."""


def loopback_login(
    http: httpx.Client, client: str, open_browser: Callable[[str], bool], clock: Clock
) -> str | None:
    """The token, once a browser of this machine allowed it and came back here; None where no browser opens.

    The token itself never passes through the browser: it is given for the secret that only this process has together
    with the proof that the browser brings.
    """
    begun = http.post("/api/v1/device/code", data={"client_id": client, "loopback": "true"})
    if begun.is_error:
        raise to_error(begun)
    told, state = begun.json(), secrets.token_urlsafe(24)
    with _Waiter(state) as waiter:
        more = urlencode({"port": waiter.server_port, "state": state})
        if not open_browser(f"{told['verification_uri_complete']}&{more}"):
            return None
        ends = clock.monotonic() + min(_LOOPBACK_LASTS_S, float(told["expires_in"]))
        while "state" not in waiter.brought:
            waiter.timeout = ends - clock.monotonic()
            if waiter.timeout <= 0:
                raise TryLater("nobody answered in the browser in time: begin again with `easel login`")
            waiter.handle_request()
    if not waiter.brought.get("code"):
        raise Denied("the log-in was denied in the browser")
    form = {"grant_type": _GRANT, "device_code": told["device_code"], "code": waiter.brought["code"]}
    answer = http.post("/api/v1/device/token", data=form)
    if answer.status_code != 200:
        raise Denied("the browser brought back something that this server does not know: begin again")
    return str(answer.json()["access_token"])
