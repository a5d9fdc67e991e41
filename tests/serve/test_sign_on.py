"""Sign on elsewhere: a real provider, a hostile one, groups that come and go, and machines without a browser."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from fastapi.testclient import TestClient
from joserfc import jwt
from joserfc.jwk import RSAKey
from pydantic import SecretStr
from tests.serve.conftest import World
from tests.serve.oidc import CLIENT, HostileProvider, running
from tests.serve.test_people import ASTRO, ok

from easel.clock import SystemClock
from easel.declare.roles import Role
from easel.declare.sign_on import GroupRules, OidcSettings
from easel.flow.first_start import create_platform_admin
from easel.flow.sign_on.rules import rights_by
from easel.sdk.sign_on import loopback_login
from easel.serve.app import create_app
from easel.serve.settings import Settings
from easel.store.engine import Store

RULES = {
    "allowed_group": "staff",
    "admin_group": "admins",
    "groups": {"lab": "astro:member", "leads": "astro:admin"},
}


@pytest.fixture(scope="module")
def provider_server() -> Iterator[HostileProvider]:
    with running() as made:
        yield made


@pytest.fixture
def provider(provider_server: HostileProvider) -> HostileProvider:
    """The same server, honest again."""
    fresh = HostileProvider(port=provider_server.port, signs_with=_KEY)
    provider_server.__dict__.update(fresh.__dict__)
    return provider_server


_KEY = RSAKey.generate_key(2048, {"kid": "one"})


@pytest.fixture
def site(sqlite_store: Store, tmp_path: Path, provider: HostileProvider) -> Iterator[World]:
    uni = OidcSettings(name="uni", issuer=provider.issuer, client_id=CLIENT, **RULES)  # type: ignore[arg-type]
    lab = OidcSettings(name="lab", issuer=provider.issuer, client_id=CLIENT)
    settings = Settings(home=tmp_path / "home", sign_on=(uni, lab), failed_logins_per_minute=100)
    admin = create_platform_admin(sqlite_store)
    assert admin is not None
    app = create_app(settings, sqlite_store)
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as http:
        made = World(app, http, {"root": admin})
        ok(made.call("root", "POST", "/api/v1/projects", json={"name": "astro"}), 201)
        yield made


def depart(site: World, provider: HostileProvider, way: str = "uni") -> dict[str, str]:
    """Send the browser off; what it must bring back."""
    answer = site.http.get(f"/api/v1/sign-on/{way}/start")
    assert answer.status_code == 302, answer.text
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    assert query["code_challenge_method"] == ["S256"]
    provider.nonce = query["nonce"][0]
    return {"state": query["state"][0], "code": f"code-{provider.nonce}"}


def come_back(site: World, back: dict[str, str], way: str = "uni") -> Any:
    return site.http.get(f"/api/v1/sign-on/{way}/callback", params=back)


def log_in(site: World, provider: HostileProvider, way: str = "uni") -> Any:
    return come_back(site, depart(site, provider, way), way)


def test_an_honest_answer_opens_a_session_with_the_rights_of_its_groups(
    site: World, provider: HostileProvider
) -> None:
    provider.groups = ["staff", "lab"]
    answer = log_in(site, provider)
    assert answer.status_code == 200, answer.text
    assert 'content="0;url=/"' in answer.text
    me = ok(site.http.get("/api/v1/me"))
    assert (me["user"]["name"], me["user"]["platform_admin"]) == ("ana", False)
    member = ok(site.http.get(f"{ASTRO}/users/ana"))
    assert (member["role"], member["source"]) == ("member", "uni")
    ways = ok(site.http.get("/api/v1/sign-on"))["items"]
    assert [each["name"] for each in ways] == ["uni", "lab"]


def test_groups_are_taken_anew_at_every_log_in(site: World, provider: HostileProvider) -> None:
    provider.groups = ["staff", "leads", "admins"]
    log_in(site, provider)
    assert ok(site.http.get("/api/v1/me"))["user"]["platform_admin"] is True
    provider.groups = ["staff"]
    log_in(site, provider)
    assert ok(site.http.get("/api/v1/me"))["user"]["platform_admin"] is False
    assert site.http.get(ASTRO).status_code == 404
    provider.groups = []
    csrf = ok(site.http.get("/api/v1/me"))["csrf_token"]
    token = site.http.post("/api/v1/tokens", json={"name": "cli"}, headers={"X-CSRF-Token": csrf}).json()
    assert token["expires_at"] is not None  # no token outlives the groups by more than a day
    assert log_in(site, provider).status_code == 403
    site.tokens["cli"] = token["secret"]
    assert site.call("cli", "GET", "/api/v1/me").status_code == 401  # left the allowed group: nothing works


def test_no_chain_of_tokens_outlives_the_log_in_that_it_began_with(
    site: World, provider: HostileProvider
) -> None:
    """Whoever left a group must log in again, however many tokens they made with tokens meanwhile."""
    provider.groups = ["staff", "lab"]
    log_in(site, provider)
    csrf = {"X-CSRF-Token": ok(site.http.get("/api/v1/me"))["csrf_token"]}
    first = ok(site.http.post("/api/v1/tokens", json={"name": "one"}, headers=csrf), 201)
    site.tokens["one"] = first["secret"]
    second = ok(site.call("one", "POST", "/api/v1/tokens", json={"name": "two"}), 201)
    assert second["expires_at"] == first["expires_at"]
    # The way over a device code is no other.
    site.tokens["node7"] = device_token(
        site, lambda path: ok(site.call("one", "POST", path, json={"allow": True}))
    )
    third = next(
        each for each in ok(site.call("node7", "GET", "/api/v1/tokens"))["items"] if "login" in each["name"]
    )
    assert third["expires_at"] == first["expires_at"]
    # Nor is an admin who makes one for them.
    admin = site.call("root", "POST", f"{ASTRO}/users/ana/tokens", json={"name": "three"})
    assert admin.status_code == 403
    assert "signs on elsewhere" in admin.json()["detail"]


def test_a_device_that_was_let_in_by_a_token_which_ended_since_gets_nothing(world: World) -> None:
    made = ok(world.call("astro-member", "POST", "/api/v1/tokens", json={"name": "short"}), 201)
    world.tokens["short"] = made["secret"]

    def allow_and_end(path: str) -> None:
        ok(world.call("short", "POST", path, json={"allow": True}))
        assert world.call("astro-member", "DELETE", f"/api/v1/tokens/{made['id']}").status_code == 204

    assert device_token(world, allow_and_end) == "access_denied"


def device_token(world: World, answer: Callable[[str], object]) -> str:
    """What a machine without a browser gets: its token, or why not."""
    begun = ok(world.http.post("/api/v1/device/code", data={"client_id": "easel on node7"}))
    answer(f"/api/v1/device/{begun['user_code']}")
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": begun["device_code"],
    }
    got = world.http.post("/api/v1/device/token", data=form).json()
    return str(got.get("access_token") or got["error"])


def test_a_disabled_person_stays_out_and_the_local_admin_token_gets_in(
    site: World, provider: HostileProvider
) -> None:
    log_in(site, provider)
    user = ok(site.http.get("/api/v1/me"))["user"]["id"]
    ok(site.call("root", "POST", f"/api/v1/users/{user}/disable", json={}))
    assert log_in(site, provider).status_code == 403
    ok(site.call("root", "GET", "/api/v1/me"))  # whatever the provider says


def test_logging_out_ends_the_session_and_leads_to_the_providers_log_out(
    site: World, provider: HostileProvider
) -> None:
    log_in(site, provider)
    url = ok(site.http.get("/api/v1/log-out-address"))["url"]
    assert url.startswith(f"{provider.issuer}/end?client_id=easel")
    csrf = ok(site.http.get("/api/v1/me"))["csrf_token"]
    assert site.http.delete("/api/v1/session", headers={"X-CSRF-Token": csrf}).status_code == 204
    assert site.http.get("/api/v1/me").status_code == 401


def test_a_rotated_key_is_fetched(site: World, provider: HostileProvider) -> None:
    assert log_in(site, provider).status_code == 200
    provider.signs_with = RSAKey.generate_key(2048, {"kid": "two"})
    provider.header = {"kid": "two"}
    assert log_in(site, provider).status_code == 200


def lie(**changes: object) -> Callable[[HostileProvider], None]:
    def tell(provider: HostileProvider) -> None:
        for name, value in changes.items():
            setattr(provider, name, value)

    return tell


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _forged(provider: HostileProvider, algorithm: str) -> str:
    claims = {"iss": provider.issuer, "aud": CLIENT, "sub": "s-1", "nonce": provider.nonce}
    header = {"alg": algorithm, "kid": "one"}
    return f"{_part(header)}.{_part({**claims, 'groups': ['staff'], 'iat': 1, 'exp': 2**33})}"


def _confused_algorithm(provider: HostileProvider) -> None:
    """The provider's public key, which everybody has, used as if it were a shared secret."""
    signed = _forged(provider, "HS256")
    mac = hmac.new(_KEY.as_pem(private=False), signed.encode(), hashlib.sha256).digest()
    provider.raw_token = f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def _foreign_key(provider: HostileProvider) -> None:
    provider.keys = [_KEY]
    provider.signs_with = RSAKey.generate_key(2048, {"kid": "one"})


def _no_signature(provider: HostileProvider) -> None:
    provider.raw_token = f"{_forged(provider, 'none')}."


HOSTILE: dict[str, Callable[[HostileProvider], None]] = {
    "nonce of another log-in": lie(claims={"nonce": "other"}),
    "no nonce": lie(without=frozenset({"nonce"})),
    "another issuer": lie(claims={"iss": "https://evil.example"}),
    "another audience": lie(claims={"aud": "other-client"}),
    "several audiences, made for another": lie(claims={"aud": [CLIENT, "other"], "azp": "other"}),
    "several audiences, made for nobody": lie(claims={"aud": [CLIENT, "other"]}),
    "expired": lie(claims={"exp": 1_000_000_000, "iat": 999_999_000}),
    "no expiry": lie(without=frozenset({"exp"})),
    "from the future": lie(claims={"iat": 2**33, "nbf": 2**33, "exp": 2**33 + 300}),
    "alg none": _no_signature,
    "public key used as a secret": _confused_algorithm,
    "signed with a key that is not published": _foreign_key,
    "names nobody": lie(claims={"sub": ""}),
    "a subject that is no text": lie(claims={"sub": {"$ne": None}}),
    "no ID token": lie(without=frozenset({"id_token"})),
    "something that is no token": lie(raw_token="not.a.jwt"),
    "an error from the token endpoint": lie(token_status=400, token_body=b'{"error": "invalid_grant"}'),
    "a page instead of JSON": lie(token_body=b"<html>"),
    "keys that cannot be read": lie(jwks_body=b'{"keys": "none"}'),
    "at_hash of another access token": lie(claims={"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}),
    "somebody else's user info": lie(without=frozenset({"groups"})),
    "groups that are no list": lie(claims={"groups": {"admins": True}}),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_hostile_answer_is_refused(site: World, provider: HostileProvider, attack: str) -> None:
    back = depart(site, provider)
    HOSTILE[attack](provider)
    answer = come_back(site, back)
    assert 400 <= answer.status_code < 500, answer.text
    assert site.http.get("/api/v1/me").status_code == 401


def test_the_page_of_results_lists_every_hostile_answer() -> None:
    page = (Path(__file__).parents[2] / "docs" / "results" / "sign_on.md").read_text()
    listed = re.findall(r"^\| (.+?) \| 401 \|", page, re.MULTILINE)
    assert listed[: len(HOSTILE)] == list(HOSTILE)
    assert f"**{len(HOSTILE)} of {len(HOSTILE)}**" in page


def test_a_state_counts_once_in_the_browser_and_for_the_provider_it_was_made_for(
    site: World, provider: HostileProvider
) -> None:
    back = depart(site, provider)
    assert come_back(site, {**back, "state": "made up"}).status_code == 401  # begun elsewhere
    assert come_back(site, back, "lab").status_code == 401  # mix-up: another provider's callback
    back = depart(site, provider)
    cookie = site.http.cookies["easel_sign_on"]
    assert come_back(site, back).status_code == 200
    site.http.cookies.set("easel_sign_on", cookie, path="/api/v1/sign-on")
    assert come_back(site, back).status_code == 401  # replay, with the cookie
    again = depart(site, provider)
    assert come_back(site, {**again, "code": back["code"]}).status_code == 401  # a code used twice
    stolen = depart(site, provider)
    site.http.cookies.delete("easel_sign_on", path="/api/v1/sign-on")
    assert come_back(site, stolen).status_code == 401  # another browser


def test_an_answer_that_names_another_issuer_is_refused(site: World, provider: HostileProvider) -> None:
    assert come_back(site, {**depart(site, provider), "iss": "https://evil.example"}).status_code == 401
    provider.metadata = {"authorization_response_iss_parameter_supported": True}
    for each in site.app.state.easel.providers.values():
        each._metadata = None
    assert come_back(site, depart(site, provider)).status_code == 401  # it promised to say, and does not
    assert come_back(site, {**depart(site, provider), "iss": provider.issuer}).status_code == 200


def test_a_provider_that_calls_itself_otherwise_is_not_used(site: World, provider: HostileProvider) -> None:
    provider.metadata = {"issuer": "https://evil.example"}
    assert site.http.get("/api/v1/sign-on/uni/start").status_code == 401


@pytest.mark.parametrize(
    "page", ["https://evil.example", "//evil.example", "/\\evil.example", "evil", "/a\r\nb"]
)
def test_a_log_in_leads_to_no_page_elsewhere(site: World, page: str) -> None:
    assert site.http.get("/api/v1/sign-on/uni/start", params={"next": page}).status_code == 422


def test_a_refusal_of_the_provider_is_told_without_its_words(site: World, provider: HostileProvider) -> None:
    back = depart(site, provider)
    answer = come_back(site, {"state": back["state"], "error": "<script>access_denied"})
    assert answer.status_code == 401
    assert "<script>" not in answer.text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_real_provider_logs_people_in(sqlite_store: Store, tmp_path: Path) -> None:
    mock = pytest.importorskip("oidc_provider_mock", reason="pip install oidc-provider-mock")
    people = [mock.User(sub="u-7", claims={"preferred_username": "eva@uni.example", "groups": ["lab"]})]
    with mock.run_server_in_thread(user_claims=people) as server:
        issuer = f"http://localhost:{server.server_port}"
        uni = OidcSettings(
            name="uni",
            issuer=issuer,
            client_id=CLIENT,
            client_secret=SecretStr("s"),
            groups={"lab": "astro:admin"},
        )
        app = create_app(Settings(home=tmp_path / "home", sign_on=(uni,)), sqlite_store)
        root = create_platform_admin(sqlite_store)
        with TestClient(app, follow_redirects=False) as http:
            http.post("/api/v1/projects", json={"name": "astro"}, headers={"Authorization": f"Bearer {root}"})
            url = http.get("/api/v1/sign-on/uni/start").headers["location"]
            back = httpx.post(url, data={"sub": "u-7"})
            assert back.status_code == 302, back.text
            answer = http.get(back.headers["location"])
            assert answer.status_code == 200, answer.text
            assert ok(http.get("/api/v1/me"))["user"]["name"] == "eva"


def test_a_machine_without_a_browser_logs_in_with_a_code(world: World) -> None:
    begun = ok(world.http.post("/api/v1/device/code", data={"client_id": "easel on node7"}))
    assert re.fullmatch(r"[B-Z]{4}-[B-Z]{4}", begun["user_code"])
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": begun["device_code"],
    }
    waiting = world.http.post("/api/v1/device/token", data=form)
    assert (waiting.status_code, waiting.json()["error"]) == (400, "authorization_pending")
    assert world.http.post("/api/v1/device/token", data=form).json()["error"] == "slow_down"
    path = f"/api/v1/device/{begun['user_code'].lower()}"
    assert world.http.get(path).status_code == 401
    assert ok(world.call("astro-member", "GET", path))["client"] == "easel on node7"
    ok(world.call("astro-member", "POST", path, json={"allow": True}))
    got = ok(world.http.post("/api/v1/device/token", data=form))
    world.tokens["node7"] = got["access_token"]
    assert ok(world.call("node7", "GET", "/api/v1/me"))["user"]["name"] == "astro-member"
    assert world.http.post("/api/v1/device/token", data=form).json()["error"] == "expired_token"  # once
    assert world.call("bio-member", "POST", path, json={"allow": True}).status_code == 404


def test_the_command_line_waits_for_the_code_and_gets_the_token(world: World) -> None:
    from easel.sdk.sign_on import Shown, device_login

    class Typing:
        """Somebody types the code in while the command line waits."""

        seen: Shown | None = None
        now = 0.0

        def monotonic(self) -> float:
            return self.now

        def sleep(self, seconds: float) -> None:
            assert self.seen is not None
            self.now += seconds
            ok(world.call("astro-member", "POST", f"/api/v1/device/{self.seen.code}", json={"allow": True}))

    person = Typing()
    token = device_login(world.http, "easel on node7", lambda shown: setattr(person, "seen", shown), person)  # type: ignore[arg-type]
    world.tokens["node7"] = token
    assert ok(world.call("node7", "GET", "/api/v1/me"))["user"]["name"] == "astro-member"
    assert person.seen is not None
    assert person.seen.complete.endswith(person.seen.code)


def test_a_denied_or_unknown_code_gives_nothing(world: World) -> None:
    begun = ok(world.http.post("/api/v1/device/code"))
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": begun["device_code"],
    }
    ok(world.call("astro-member", "POST", f"/api/v1/device/{begun['user_code']}", json={"allow": False}))
    assert world.http.post("/api/v1/device/token", data=form).json()["error"] == "access_denied"
    guesses = [world.call("astro-member", "GET", "/api/v1/device/BCDF-GHJK").status_code for _ in range(8)]
    assert guesses[-1] == 429  # whoever guesses must wait


def test_the_higher_role_counts_and_a_group_outside_gives_nothing() -> None:
    rules = GroupRules(name="uni", allowed_group="staff", groups={"a": "astro:admin", "b": "astro:member"})
    assert rights_by(rules, ["staff", "a", "b"]).roles == {"astro": Role.ADMIN}
    assert rights_by(rules, ["a"]).roles == {}
    assert not rights_by(rules, ["a"]).allowed


def test_a_browser_of_this_machine_comes_back_to_the_command_line_and_brings_no_token(world: World) -> None:
    seen: list[str] = []

    def allow(address: str) -> bool:
        """The person's browser: it looks at the page, allows, and goes where the page sends it."""
        query = parse_qs(urlsplit(address).query)
        code, port, state = query["code"][0], query["port"][0], query["state"][0]
        told = ok(world.call("astro-member", "POST", f"/api/v1/device/{code}", json={"allow": True}))
        seen.append(told["code"])
        stranger = urllib.request.Request(f"http://127.0.0.1:{port}/?state=wrong&code={told['code']}")
        back = f"http://127.0.0.1:{port}/?state={state}&code={told['code']}"

        def go() -> None:
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(stranger)
            urllib.request.urlopen(back).read()

        threading.Thread(target=go, daemon=True).start()
        return True

    http = cast(httpx.Client, world.http)
    secret = loopback_login(http, "easel on a laptop", allow, SystemClock())
    assert secret is not None
    assert secret not in seen
    world.tokens["laptop"] = secret
    assert ok(world.call("laptop", "GET", "/api/v1/me"))["user"]["name"] == "astro-member"


def test_without_what_the_browser_brought_a_loopback_log_in_gives_nothing(world: World) -> None:
    begun = ok(world.http.post("/api/v1/device/code", data={"client_id": "x", "loopback": "true"}))
    ok(world.call("astro-member", "POST", f"/api/v1/device/{begun['user_code']}", json={"allow": True}))
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": begun["device_code"],
    }
    for brought in ({}, {"code": "guessed"}):
        refused = world.http.post("/api/v1/device/token", data={**form, **brought})
        assert (refused.status_code, refused.json()["error"]) == (400, "authorization_pending")


def _logout_token(provider: HostileProvider, **changes: Any) -> str:
    now = int(time.time())
    event: dict[str, Any] = {"http://schemas.openid.net/event/backchannel-logout": {}}
    claims = {"iss": provider.issuer, "aud": CLIENT, "iat": now, "exp": now + 120, "jti": "1", "sub": "s-1"}
    claims = {**claims, "events": event, **changes}
    header = {"alg": "RS256", "kid": "one", "typ": "logout+jwt"}
    return jwt.encode(header, {k: v for k, v in claims.items() if v is not None}, provider.signs_with)


def _log_out(site: World, token: str, way: str = "uni") -> int:
    return int(site.http.post(f"/api/v1/sign-on/{way}/log-out", data={"logout_token": token}).status_code)


def test_a_log_out_at_the_provider_ends_the_sessions_here(site: World, provider: HostileProvider) -> None:
    log_in(site, provider)
    ok(site.http.get("/api/v1/me"))
    assert _log_out(site, _logout_token(provider)) == 200
    assert site.http.get("/api/v1/me").status_code == 401
    provider.claims = {"sid": "tab-2"}
    log_in(site, provider)
    assert _log_out(site, _logout_token(provider, sub=None, sid="tab-1", iat=int(time.time()) + 5)) == 200
    ok(site.http.get("/api/v1/me"))  # another session of theirs was ended, not this one
    assert _log_out(site, _logout_token(provider, sub=None, sid="tab-2", iat=int(time.time()) + 5)) == 200
    assert site.http.get("/api/v1/me").status_code == 401


@pytest.mark.parametrize(
    "lie",
    [
        {"events": {}},
        {"nonce": "n"},
        {"iss": "https://elsewhere.example"},
        {"aud": "another client"},
        {"sub": None},
        {"jti": None},
        {"exp": 1_000_000_000},
        {"iat": 1_000_000_000},
    ],
    ids=str,
)
def test_a_logout_token_that_lies_ends_nothing(
    site: World, provider: HostileProvider, lie: dict[str, Any]
) -> None:
    log_in(site, provider)
    assert _log_out(site, _logout_token(provider, **lie)) == 400
    assert _log_out(site, provider.id_token()) == 400  # an ID token is no logout token
    ok(site.http.get("/api/v1/me"))
