"""Sign on with a real provider that the tests start: npm's `oidc-provider`, which is strict where standards are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit, urlunsplit

import httpx
import pytest
from joserfc.jwk import ECKey, OKPKey, RSAKey

from easel.testing.server import ServerProcess, running

FOLDER = Path(__file__).parent / "real_provider"
SECRET = "s+cr%41t/:=& x"
"""It must arrive as it is, whatever a form or a header would make of it."""
WAYS: dict[str, dict[str, Any]] = {
    "uni": {"id_token_signed_response_alg": "RS256"},
    "post": {"id_token_signed_response_alg": "ES256", "token_endpoint_auth_method": "client_secret_post"},
    "open": {"id_token_signed_response_alg": "EdDSA", "token_endpoint_auth_method": "none"},
}
ACCOUNTS = {
    "ana": {"preferred_username": "ana@uni.example", "groups": ["staff", "lab"]},
    "eve": {"preferred_username": "eve@uni.example", "groups": ["visitors"]},
}


def new_keys() -> list[Any]:
    made = (RSAKey.generate_key(2048), ECKey.generate_key("P-256"), OKPKey.generate_key("Ed25519"))
    for key in made:
        key.ensure_kid()
    return [dict(key.as_dict(private=True), use="sig") for key in made]


@dataclass
class RealProvider:
    """The process of a provider. `clients`, `accounts` and `keys` hold once it was configured anew."""

    issuer: str
    clients: list[dict[str, Any]] = field(default_factory=list)
    accounts: dict[str, Any] = field(default_factory=lambda: dict(ACCOUNTS))
    keys: list[Any] = field(default_factory=new_keys)

    def configure(self, **settings: Any) -> None:
        body = {"clients": self.clients, "accounts": self.accounts, "keys": self.keys, "settings": settings}
        httpx.post(f"{self.issuer}/test/configure", json=body).raise_for_status()

    def register(self, site: str) -> None:
        """Make Easel known, once by each way in which a client may prove who it is."""
        self.clients = [
            {
                "client_id": f"easel:{way}",
                "redirect_uris": [f"{site}/api/v1/sign-on/{way}/callback"],
                "post_logout_redirect_uris": [f"{site}/"],
                "backchannel_logout_uri": f"{site}/api/v1/sign-on/{way}/log-out",
                "backchannel_logout_session_required": True,
                **({} if way == "open" else {"client_secret": SECRET}),
                **about,
            }
            for way, about in WAYS.items()
        ]
        self.configure()


@contextmanager
def provider_process() -> Iterator[RealProvider]:
    node = shutil.which("node")
    if node is None or not (FOLDER / "node_modules" / "oidc-provider").is_dir():
        pytest.skip(f"npm's oidc-provider is not here: npm ci in {FOLDER.name}, as scripts/test does")
    command = [node, "provider.js"]
    with subprocess.Popen(command, cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            yield RealProvider(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def provider() -> Iterator[RealProvider]:
    with provider_process() as made:
        yield made


@pytest.fixture(scope="module")
def server(provider: RealProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Easel, which knows the provider under three names."""
    rules = {"allowed_group": "staff", "groups": {"lab": "astro:member"}}
    ways = [{"name": way, "issuer": provider.issuer, "client_id": f"easel:{way}", **rules} for way in WAYS]
    for way in ways:
        if way["name"] != "open":
            way["client_secret"] = SECRET
        if way["name"] == "post":
            way["client_auth"] = "client_secret_post"
    with running(tmp_path_factory.mktemp("server"), sign_on=json.dumps(ways)) as made:
        made.client().projects.create("astro")
        provider.register(made.address)
        yield made


@dataclass
class Browser:
    """Follows redirects and keeps cookies, as a browser does; forms are filled in by the test."""

    site: str
    http: httpx.Client

    def follow(self, answer: httpx.Response, until: str = "") -> httpx.Response:
        """The page at the end of the redirects, or the redirect that leads to an address that begins with `until`."""
        while answer.is_redirect:
            target = urljoin(str(answer.url), answer.headers["location"])
            if until and target.startswith(until):
                return answer
            answer = self.http.get(target)
        return answer

    def send(self, page: httpx.Response, **fields: str) -> httpx.Response:
        """Send the form of a page."""
        found = re.search(r'<form[^>]*action="([^"]+)"', page.text)
        assert found is not None, page.text
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
        return self.http.post(urljoin(str(page.url), found[1]), data={**hidden, **fields})

    def sent_back(self, way: str, name: str) -> str:
        """Log in at the provider; the address that it sends the browser back to."""
        page = self.follow(self.http.get(f"{self.site}/api/v1/sign-on/{way}/start"))
        asked = self.follow(self.send(page, login=name, password="any"))
        back = self.follow(self.send(asked), until=f"{self.site}/")
        return str(back.headers["location"])

    def log_in(self, way: str = "uni", name: str = "ana") -> httpx.Response:
        return self.http.get(self.sent_back(way, name))

    @property
    def me(self) -> httpx.Response:
        return self.http.get(f"{self.site}/api/v1/me")


@pytest.fixture
def browser(server: ServerProcess) -> Iterator[Browser]:
    with httpx.Client(timeout=120) as http:
        yield Browser(server.address, http)


@pytest.fixture
def other(server: ServerProcess) -> Iterator[Browser]:
    """Another browser, which shares no cookie with the first."""
    with httpx.Client(timeout=120) as http:
        yield Browser(server.address, http)


@pytest.mark.parametrize("way", WAYS)
def test_a_person_logs_in_with_the_rights_of_her_groups(
    server: ServerProcess, browser: Browser, way: str
) -> None:
    """By all three ways to prove who Easel is, with ID tokens signed by RSA, by a curve, and by Edwards's curve."""
    answer = browser.log_in(way)
    assert answer.status_code == 200, answer.text
    me = browser.me
    assert me.status_code == 200, me.text
    assert me.json()["user"]["name"].startswith("ana")
    projects = browser.http.get(f"{browser.site}/api/v1/projects").json()["items"]
    assert [one["name"] for one in projects] == ["astro"]


def test_a_key_that_the_provider_changed_is_fetched(
    provider: RealProvider, browser: Browser, other: Browser
) -> None:
    assert browser.log_in().status_code == 200
    provider.keys = new_keys()
    provider.configure()
    again = other.log_in()
    assert again.status_code == 200, again.text


def test_a_session_that_ends_at_the_provider_ends_here(
    provider: RealProvider, browser: Browser, other: Browser
) -> None:
    """The provider tells it by a logout token of its own; another session of the same person stays."""
    assert browser.log_in().status_code == other.log_in().status_code == 200
    asked = browser.http.get(f"{provider.issuer}/session/end")
    browser.send(asked, logout="yes")
    assert browser.me.status_code == 401
    assert other.me.status_code == 200


def test_who_logs_out_here_is_led_to_the_providers_log_out_and_back(browser: Browser) -> None:
    assert browser.log_in().status_code == 200
    address = browser.http.get(f"{browser.site}/api/v1/log-out-address").json()["url"]
    asked = browser.http.get(address)
    assert asked.status_code == 200, asked.text
    back = browser.follow(browser.send(asked, logout="yes"), until=f"{browser.site}/")
    assert back.headers["location"] == f"{browser.site}/"
    begun = browser.follow(browser.http.get(f"{browser.site}/api/v1/sign-on/uni/start"))
    assert 'name="login"' in begun.text  # the provider asks again who it is


def test_whoever_is_not_in_the_allowed_group_stays_out(browser: Browser) -> None:
    answer = browser.log_in(name="eve")
    assert answer.status_code == 403, answer.text
    assert browser.me.status_code == 401


def test_an_answer_whose_issuer_was_taken_out_is_refused(browser: Browser) -> None:
    """This provider says that it always names itself: an answer without is somebody else's."""
    parts = urlsplit(browser.sent_back("uni", "ana"))
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    assert query.pop("iss").startswith("http://127.0.0.1:")
    answer = browser.http.get(urlunsplit(parts._replace(query=urlencode(query))))
    assert answer.status_code == 401
    assert "which provider" in answer.text


def test_a_code_counts_once(browser: Browser) -> None:
    back = browser.sent_back("uni", "ana")
    assert browser.http.get(back).status_code == 200
    assert browser.http.get(back).status_code == 401


def test_whoever_gives_up_at_the_provider_is_told_so(browser: Browser) -> None:
    page = browser.follow(browser.http.get(f"{browser.site}/api/v1/sign-on/uni/start"))
    found = re.search(r'href="([^"]+/abort)"', page.text)
    assert found is not None
    answer = browser.follow(browser.http.get(urljoin(str(page.url), found[1])))
    assert answer.status_code == 401
    assert "access_denied" in answer.text
