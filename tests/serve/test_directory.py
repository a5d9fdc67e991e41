"""People of an LDAP directory log in with name and password; the directory is a real slapd."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from easel.declare.sign_on import LdapSettings
from easel.errors import TryLater, Unauthenticated
from easel.flow.first_start import create_platform_admin
from easel.flow.sign_on.ldap import check_password
from easel.serve.app import create_app
from easel.serve.settings import Settings
from easel.store.engine import Store
from easel.testing import ldap


@pytest.fixture(scope="module")
def directory() -> Iterator[LdapSettings]:
    slapd = ldap.find_slapd()
    if slapd is None:
        pytest.skip("slapd is not installed: scripts/test installs it where it may")
    with ldap.running(slapd) as url:
        yield LdapSettings(
            name="lab",
            url=url,
            user_dn=f"uid={{user}},ou=people,{ldap.BASE}",
            group_base=f"ou=groups,{ldap.BASE}",
            groups={"astro": "astro:member"},
            start_tls=False,
        )


def test_the_right_password_tells_who_it_is_and_their_groups(directory: LdapSettings) -> None:
    eva = check_password(directory, "eva", "correct horse")
    assert (eva.name, eva.groups) == ("eva", frozenset({"astro"}))
    assert check_password(directory, "tom", "battery staple").groups == frozenset()


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("eva", "battery staple"),
        ("eva", ""),
        ("", "correct horse"),
        ("nobody", "correct horse"),
        ("*", "correct horse"),
        ("eva,ou=people", "correct horse"),
        ("eva\x00", "correct horse"),
        ("eva)(uid=*", "correct horse"),
    ],
)
def test_anything_else_is_refused(directory: LdapSettings, user: str, password: str) -> None:
    with pytest.raises(Unauthenticated):
        check_password(directory, user, password)


def test_a_directory_that_is_away_says_try_again() -> None:
    away = LdapSettings(name="lab", url="ldap://127.0.0.1:9", user_dn="uid={user}", start_tls=False)
    with pytest.raises(TryLater, match="does not answer"):
        check_password(away, "eva", "correct horse")


def test_people_log_in_over_the_api_and_get_what_their_groups_give(
    directory: LdapSettings, sqlite_store: Store, tmp_path: Path
) -> None:
    app = create_app(Settings(home=tmp_path / "home", directories=(directory,)), sqlite_store)
    root = create_platform_admin(sqlite_store)
    with TestClient(app) as http:
        http.post("/api/v1/projects", json={"name": "astro"}, headers={"Authorization": f"Bearer {root}"})
        wrong = http.post("/api/v1/sign-on/lab/password", json={"user": "eva", "password": "no"})
        assert wrong.status_code == 401
        right = http.post("/api/v1/sign-on/lab/password", json={"user": "eva", "password": "correct horse"})
        assert right.status_code == 200, right.text
        assert "correct horse" not in right.text
        assert http.get("/api/v1/me").json()["user"]["name"] == "eva"
        assert [each["name"] for each in http.get("/api/v1/projects").json()["items"]] == ["astro"]


def test_passwords_are_not_guessed_beyond_a_few_a_minute_however_they_are_asked(
    directory: LdapSettings, sqlite_store: Store, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path / "home", directories=(directory,), failed_logins_per_minute=3)
    with TestClient(create_app(settings, sqlite_store)) as http:

        def tried(user: str, password: str) -> int:
            body = {"user": user, "password": password}
            return http.post("/api/v1/sign-on/lab/password", json=body).status_code

        assert tried("eva", "correct horse") == 200
        with ThreadPoolExecutor(6) as threads:  # all at once is no way around it
            statuses = list(threads.map(lambda number: tried("eva", f"guess {number}"), range(6)))
        assert sorted(statuses) == [401] * 3 + [429] * 3
        assert tried("eva", "correct horse") == 429  # else an answer would say that it was right
        assert tried(" EVA", "correct horse") == 429  # whom the directory takes for the same
        assert tried("tom", "battery staple") == 200  # behind the same address
