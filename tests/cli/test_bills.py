from __future__ import annotations

from typing import Any

import pytest

from easel.cli.bills import budget
from easel.errors import InvalidInput


@pytest.mark.parametrize("more", [{"soft": True}, {"limit": 5.0}, {"period": "total"}, {"warn_at": [0.5]}])
def test_a_budget_is_not_removed_and_changed_in_one_go(more: dict[str, Any]) -> None:
    """Nothing is asked of a server before."""
    given = {"limit": None, "period": None, "soft": None, "warn_at": None, "project": None, **more}
    with pytest.raises(InvalidInput, match="--remove goes alone"):
        budget(remove=True, **given)
