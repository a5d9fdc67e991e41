"""Settings: variables win over the file, wrong ones are named, secrets are not shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from easel.errors import Misconfigured
from easel.serve.settings import Settings, load, prepare_home


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
