"""What was just read holds until something is changed here, and for a second at most."""

from __future__ import annotations

from easel.serve.recent import HOLDS_S, Recent


def test_a_value_holds_until_a_change_or_a_second() -> None:
    changes, now = [0], [10.0]
    recent: Recent[str] = Recent(lambda: changes[0], lambda: now[0])
    recent.keep("a", "first", recent.mark())
    assert recent.get("a") == "first"
    now[0] += HOLDS_S + 0.1
    assert recent.get("a") is None
    recent.keep("a", "second", recent.mark())
    changes[0] += 1
    assert recent.get("a") is None


def test_what_was_read_before_a_change_is_not_kept_after_it() -> None:
    changes = [0]
    recent: Recent[str] = Recent(lambda: changes[0], lambda: 0.0)
    mark = recent.mark()
    changes[0] += 1
    recent.keep("a", "old", mark)
    assert recent.get("a") is None
