"""The usual small PNG in one call of the decoder. Pillow's own reader looks for much that such a file does not have:
for a picture of a few hundred pixels that takes several times as long as decoding it.
"""

from __future__ import annotations

import struct
import zlib

from PIL import Image

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MODES = {0: "L", 2: "RGB", 6: "RGBA"}
_NO_MATTER = frozenset({b"pHYs", b"gAMA", b"sRGB", b"cHRM", b"bKGD", b"tIME"})
"""Parts that change neither a pixel's number nor which way up the picture is."""
_HEADER = struct.Struct(">I4sIIBBBBBI")
_PART = struct.Struct(">I4s")
_FIRST, _CHECKED = len(_SIGNATURE), slice(12, 29)


def read_plain_png(data: bytes, most_pixels: int) -> Image.Image | None:
    """Returns the picture of a whole file in grey or colour, a byte for each, with nothing beside its pixels that
    matters; None for any other file, which Pillow's reader then reads or refuses.
    """
    if not data.startswith(_SIGNATURE) or len(data) < _FIRST + _HEADER.size:
        return None
    length, kind, width, height, depth, colour, *ways, check = _HEADER.unpack_from(data, _FIRST)
    mode = _MODES.get(colour)
    plain = (length, kind, depth, ways) == (13, b"IHDR", 8, [0, 0, 0]) and mode is not None
    if not plain or not 0 < width * height <= most_pixels or zlib.crc32(data[_CHECKED]) != check:
        return None
    pixels = _pixels(data)
    if pixels is None:
        return None
    assert mode is not None
    try:
        return Image.frombytes(mode, (width, height), pixels, "zip", mode)
    except (ValueError, OSError):
        return None


def _pixels(data: bytes) -> bytes | None:
    """Returns the packed pixels, where all parts of the file are known and its end is there."""
    found: list[bytes] = []
    place = _FIRST + _HEADER.size
    while place + _PART.size <= len(data):
        length, kind = _PART.unpack_from(data, place)
        start = place + _PART.size
        if kind == b"IEND":
            return b"".join(found)
        if kind == b"IDAT":
            found.append(data[start : start + length])
        elif kind not in _NO_MATTER:
            return None
        place = start + length + 4
    return None
