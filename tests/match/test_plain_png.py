"""The short way to read a usual PNG: the same pixels as Pillow's own reader, and everything else is left to that."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from easel.declare.program import Tensor
from easel.match import canonical
from easel.match.canonical import near_key
from easel.match.examples import Example, ExampleError, Single
from easel.match.pictures import decode_picture
from easel.match.plain_png import read_plain_png

MOST = 10_000


def png(mode: str, size: tuple[int, int], seed: int = 0, **how: Any) -> bytes:
    """A picture of smooth shades and noise, so that all filters of PNG occur in its rows."""
    rng = np.random.default_rng(seed)
    bands = len(Image.new(mode, (1, 1)).getbands())
    rows, columns = np.mgrid[: size[1], : size[0]]
    noise = rng.integers(0, 1 + 255 * (seed % 2), (size[1], size[0], bands))
    pixels = ((rows * 3 + columns * 5)[..., None] + noise).astype(np.uint8)
    out = io.BytesIO()
    Image.frombytes(mode, size, pixels.tobytes()).save(out, "PNG", **how)
    return out.getvalue()


@given(
    st.sampled_from(["L", "RGB", "RGBA"]),
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_the_pixels_are_those_of_the_usual_reader(
    mode: str, size: tuple[int, int], seed: int, level: int
) -> None:
    data = png(mode, size, seed, compress_level=level)
    found = read_plain_png(data, MOST)
    assert found is not None
    with Image.open(io.BytesIO(data)) as usual:
        assert (found.mode, found.size) == (usual.mode, usual.size)
        assert found.tobytes() == usual.tobytes()


def part(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def odd(name: str) -> bytes:
    """A file that is no usual PNG."""
    plain = png("L", (20, 30))
    out = io.BytesIO()
    with Image.open(io.BytesIO(plain)) as picture:
        match name:
            case "no PNG":
                picture.save(out, "BMP")
            case "palette":
                picture.convert("P").save(out, "PNG")
            case "one bit":
                picture.convert("1").save(out, "PNG")
            case "sixteen bits":
                picture.convert("I;16").save(out, "PNG")
            case "turned":
                exif = Image.Exif()
                exif[0x0112] = 6
                picture.save(out, "PNG", exif=exif)
            case "words":
                info = PngImagePlugin.PngInfo()
                info.add_text("Title", "a leaf")
                picture.save(out, "PNG", pnginfo=info)
            case "a colour that is clear":
                picture.save(out, "PNG", transparency=3)
    return out.getvalue()


@pytest.mark.parametrize(
    "name", ["no PNG", "palette", "one bit", "sixteen bits", "turned", "words", "a colour that is clear"]
)
def test_whatever_is_out_of_the_ordinary_is_left_to_the_usual_reader(name: str) -> None:
    data = odd(name)
    assert read_plain_png(data, MOST) is None
    if name == "turned":
        assert decode_picture(data, Tensor((20, 30, 1))).tolist() == (
            np.rot90(decode_picture(png("L", (20, 30)), Tensor((30, 20, 1))), -1).tolist()
        )


def test_a_damaged_file_is_never_read_the_short_way() -> None:
    whole = png("RGB", (30, 20), seed=1)
    for cut in range(0, len(whole), 7):
        assert read_plain_png(whole[:cut], MOST) is None
    header = bytearray(whole)
    header[18] ^= 1
    assert read_plain_png(bytes(header), MOST) is None
    with pytest.raises(ExampleError, match="damaged"):
        decode_picture(whole[: len(whole) // 2], Tensor((20, 30, 3)))


def test_a_file_of_fewer_rows_than_it_says_is_what_the_usual_reader_makes_of_it() -> None:
    whole = png("RGB", (30, 20), seed=1)
    more = part(b"IHDR", struct.pack(">IIBBBBB", 30, 25, 8, 2, 0, 0, 0))
    data = whole[:8] + more + whole[33:]
    found = read_plain_png(data, MOST)
    with Image.open(io.BytesIO(data)) as usual:
        assert found is not None
        assert found.tobytes() == usual.tobytes()


def test_a_picture_of_too_many_pixels_is_left_to_whoever_says_so() -> None:
    assert read_plain_png(png("L", (100, 100)), MOST) is not None
    assert read_plain_png(png("L", (100, 101)), MOST) is None


@pytest.mark.parametrize("shape", [(28, 28, 1), (40, 60, 3), (5, 7, 4)])
def test_the_shades_of_a_picture_are_those_of_its_places(shape: tuple[int, int, int]) -> None:
    """Keys that were stored by an earlier release stay what they were."""
    picture = np.random.default_rng(0).integers(0, 256, shape).astype(np.float32)
    rows = np.linspace(0, shape[0] - 1, 16).round().astype(int)
    columns = np.linspace(0, shape[1] - 1, 17).round().astype(int)
    grey = picture[np.ix_(rows, columns)].mean(2)
    lighter = grey[:, 1:] - grey[:, :-1] > 0.02 * (grey.max() - grey.min())
    again = np.zeros_like(picture)
    again[np.ix_(rows, columns)] = picture[np.ix_(rows, columns)]
    keys = {near_key(Example(Single((one,)), Single(("a",)))) for one in (picture, again)}
    assert len(keys) == 1
    assert canonical._shades(picture) == np.packbits(lighter).tobytes().hex()
