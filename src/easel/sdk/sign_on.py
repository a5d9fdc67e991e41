"""Log in without pasting a token: a code is shown, and typed into a browser that is logged in anywhere (RFC 8628)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
