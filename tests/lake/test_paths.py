from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easel.errors import InvalidInput
from easel.lake.paths import (
    FileInSet,
    FileRef,
    FolderInSet,
    FolderRef,
    Ref,
    SetRef,
    above,
    escape,
    file_path,
    folder_path,
    parse,
    parse_set,
    set_name,
)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("/data/train.json", FileRef("/data/train.json")),
        ("/data/train.json:2", FileRef("/data/train.json", 2)),
        ("/data/", FolderRef("/data/")),
        ("/", FolderRef("/")),
        ("/data/train.json@HotpotQA:1", FileInSet("/data/train.json", SetRef("HotpotQA", 1))),
        ("/data/train.json@HotpotQA", FileInSet("/data/train.json", SetRef("HotpotQA"))),
        ("/data/@HotpotQA:1", FolderInSet("/data/", SetRef("HotpotQA", 1))),
        ("/@HotpotQA", FolderInSet("/", SetRef("HotpotQA"))),
        (r"/icon\@2x.png", FileRef("/icon@2x.png")),
        (r"/at 12\:30.log:3", FileRef("/at 12:30.log", 3)),
    ],
)
def test_the_papers_language_is_read_and_written_back(text: str, meaning: Ref) -> None:
    assert parse(text) == meaning
    assert str(meaning) == text


HOSTILE = [
    "",
    "data",
    "data/train.json",
    "//data",
    "/data//x",
    "/../etc/passwd",
    "/data/../../etc/passwd",
    "/data/..",
    "/.",
    "/..\\..\\x",
    "/data\\x",
    "C:\\windows",
    "/%2e%2e/x",
    "/%2E%2e/x",
    "/%252e%252e/x",
    "/%25252e%25252e/x",
    "/a%2fb",
    "/a%5cb",
    "/a%00b",
    "/a\x00b",
    "/a\nb",
    "/a\u2028b",
    "/\ud800",
    "/\uffff",
    "/a\U0010ffff",
    "/trailing.",
    "/trailing./x",
    "/trailing ",
    "/" + "a" * 256,
    "/" + "/".join(["abc"] * 300),
    "/" + "a" * 4096,
    "/x" + "/y" * 4096,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda t: ascii(t)[:24])
def test_hostile_names_are_refused_with_a_reason(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid path: "):
        file_path(text)


def test_a_set_by_itself_is_all_of_it() -> None:
    assert parse("@HotpotQA:1") == FolderInSet("/", SetRef("HotpotQA", 1))
    with pytest.raises(InvalidInput):
        parse("@")


@pytest.mark.parametrize(
    "text", [*HOSTILE, "/a:0", "/a:x", "/a:", "/a:1:2", "/a@", "/a@b:", "/a@../b", "/d/:1", "/a\\", "/a\\b"]
)
def test_hostile_references_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse(text)


@pytest.mark.parametrize("text", ["", ".", "..", "a..b", "a/b", "a b", "-a", "a.", "a" * 129, "ä", "a:1"])
def test_hostile_names_of_sets_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        set_name(text)


def test_two_spellings_of_one_name_are_one_path() -> None:
    assert file_path("/cafe\u0301") == file_path("/caf\u00e9")


def test_ordinary_names_of_any_script_are_fine() -> None:
    for path in ("/ürün/資料 1.csv", "/50%.txt", "/100%25", "/.hidden", "/...x", "/a@b", "/a:b"):
        assert file_path(path) == path


names = st.text(min_size=1, max_size=20)


@given(st.lists(names, min_size=1, max_size=4), st.none() | st.integers(1, 10**9 - 1))
def test_every_valid_path_survives_being_written_and_read(segments: list[str], version: int | None) -> None:
    try:
        path = file_path("/" + "/".join(segments))
    except InvalidInput:
        return
    assert parse(str(FileRef(path, version))) == FileRef(path, version)
    assert parse(f"{escape(path)}@s:7") == FileInSet(path, SetRef("s", 7))


@given(names, names)
def test_everything_in_a_folder_sorts_between_the_folder_and_what_is_above_it(a: str, b: str) -> None:
    try:
        folder, inside = folder_path(f"/{a}/"), file_path(f"/{a}/{b}")
    except InvalidInput:
        return
    assert folder < inside < above(folder)


def test_a_set_is_named_with_or_without_a_version() -> None:
    assert parse_set("job_6696_output:1") == SetRef("job_6696_output", 1)
    assert parse_set("shakespeare.works") == SetRef("shakespeare.works")
