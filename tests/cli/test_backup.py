"""`easel backup` where there is nothing to copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from easel.cli.backup import backup
from easel.errors import InvalidInput


@pytest.mark.parametrize("every", [None, "day"])
def test_where_there_is_no_easel_the_refusal_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: str | None
) -> None:
    monkeypatch.setenv("EASEL_HOME", str(tmp_path / "nowhere"))
    monkeypatch.delenv("EASEL_DATABASE_URL", raising=False)
    with pytest.raises(InvalidInput, match=r"no Easel in .* EASEL_HOME"):
        backup(str(tmp_path / "copies"), every=every)
    assert not (tmp_path / "copies").exists()
