"""Settings: variables win over the file, wrong ones are named, secrets are not shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from easel.cli import doctor, up
from easel.errors import Misconfigured
from easel.serve.settings import Settings, load, prepare_home
from easel.store.engine import Store
from easel.store.migrate import migrate


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EASEL_HOME", str(tmp_path))


def test_a_variable_wins_over_the_file_and_the_file_over_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "easel.toml").write_text('port = 9000\nlog_level = "debug"\n')
    assert load().port == 9000
    monkeypatch.setenv("EASEL_PORT", "9001")
    assert (load().port, load().log_level) == (9001, "debug")


def test_a_misspelt_line_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "easel.toml").write_text("prot = 9000\n")
    with pytest.raises(Misconfigured, match="prot"):
        load()


def test_a_wrong_value_is_named_but_a_secret_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EASEL_DATABASE_URL", "postgresql://lab:hunter2@db/easel")
    assert "hunter2" not in repr(load())
    monkeypatch.setenv("EASEL_PORT", "many")
    with pytest.raises(Misconfigured, match="port") as caught:
        load()
    assert "hunter2" not in str(caught.value)


def test_the_home_is_private_and_an_impossible_one_is_explained(tmp_path: Path) -> None:
    prepare_home(Settings(home=tmp_path / "new"))
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0
    (tmp_path / "file").write_text("")
    with pytest.raises(Misconfigured, match="EASEL_HOME"):
        prepare_home(Settings(home=tmp_path / "file" / "x"))


def test_a_home_that_others_can_enter_is_refused_until_the_doctor_closes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    (home / "signing.key").write_text("key")
    with pytest.raises(Misconfigured, match="easel doctor --fix"):
        prepare_home(Settings(home=home))
    monkeypatch.setenv("EASEL_HOME", str(home))
    CliRunner().invoke(doctor.app, ["--fix"])
    prepare_home(Settings(home=home))
    assert (home / "signing.key").stat().st_mode & 0o777 == 0o600


def test_the_admins_token_is_never_written_into_a_file_that_others_can_read(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("")
    file.chmod(0o644)
    with file.open() as held:
        up._write_private(file, "secret")
        assert held.read() == ""
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("secret\n", 0o600)


def test_a_damaged_database_gets_words_and_the_way_back(tmp_path: Path) -> None:
    (tmp_path / "easel.sqlite").write_bytes(b"this is no database" * 1000)
    store = Store(f"sqlite:///{tmp_path}/easel.sqlite")
    with pytest.raises(Misconfigured, match="easel restore"):
        migrate(store, backup=lambda _revision: None)
    store.close()
