"""Where a picture that is an example lies."""

from __future__ import annotations

import pytest

from easel.declare.example_file import given_name, home_of
from easel.lake.paths import file_path

FOLDER, DIGEST = "/apps/leaves/0123abcd/", bytes(range(32))


def test_it_is_named_by_its_content_and_by_the_name_it_came_with() -> None:
    home = home_of(FOLDER, "/monday/sick/IMG_1.png", DIGEST)
    assert home == f"{FOLDER}files/sick/{DIGEST.hex()[:24]}-IMG_1.png"
    assert given_name(home) == "IMG_1.png"
    assert given_name("/photos/sick/IMG_1.png") == "IMG_1.png"
    assert home_of(FOLDER, "/monday/sick/IMG_1.png", DIGEST[::-1]) != home


@pytest.mark.parametrize("letter", ["a", "é", "葉", "🌱"])
def test_a_name_as_long_as_the_lake_allows_still_has_a_place(letter: str) -> None:
    longest = letter * (251 // len(letter.encode())) + ".png"
    home = home_of(FOLDER, f"/monday/sick/{longest}", DIGEST)
    assert file_path(home) == home
    assert given_name(home).endswith(f"{letter}.png")
