"""Bars that draw themselves anew stay readable in a log."""

from __future__ import annotations

from easel.run.redrawn import Redrawn


def lines_of(*chunks: bytes) -> list[bytes]:
    redrawn, whole, rest = Redrawn(), b"", b""
    for chunk in chunks:
        settled = redrawn.settle(rest + chunk)
        end = settled.rfind(b"\n") + 1
        whole, rest = whole + settled[:end], settled[end:]
    return (whole + rest).splitlines()


def test_a_bar_becomes_a_line_for_every_tenth_and_its_end() -> None:
    drawn = b"".join(b"\r%3d%%|##| %d/200" % (i // 2, i) for i in range(201))
    found = lines_of(drawn + b"\n", b"done\n")
    assert [line.split(b"%")[0].strip() for line in found[:-2]] == [
        b"%d" % tenth for tenth in range(0, 100, 10)
    ]
    assert found[-2:] == [b"100%|##| 200/200", b"done"]


def test_it_does_not_matter_how_the_bytes_are_cut() -> None:
    drawn = b"".join(b"\r%3d%%|##|" % i for i in range(101)) + b"\n"
    assert lines_of(*(drawn[i : i + 7] for i in range(0, len(drawn), 7))) == lines_of(drawn)


def test_a_second_bar_begins_anew() -> None:
    bar = b"".join(b"\r%3d%%|##|" % i for i in (0, 50, 100)) + b"\n"
    assert lines_of(bar, bar) == lines_of(bar) * 2


def test_states_without_a_percentage_are_drawn_over_and_windows_line_ends_are_line_ends() -> None:
    assert lines_of(b"\r|\r/\r-\rready\n") == [b"ready"]
    assert lines_of(b"one\r\ntwo\r", b"\n") == [b"one", b"two"]
    assert lines_of(b"loading\r") == [b"loading"]
