"""Files of pictures → arrays, with a guard against files that unpack to gigabytes."""

from __future__ import annotations

import io
from enum import Enum

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from easel.declare.program import Tensor
from easel.match.examples import Array, ExampleError
from easel.match.plain_png import read_plain_png

MAX_PIXELS = 64 * 2**20
_MAY_BE_TURNED = {"exif", "xmp", "XML:com.adobe.xmp", "Raw profile type exif"}
"""Where a camera notes how it was held. Looking for it in pictures without any takes as long as reading them."""
LARGEST_SIDE = 224
"""No network of the zoo looks at more; photographs of any size are read at this one."""


class SizePolicy(Enum):
    """What to do with a picture of another size than the program's."""

    STRETCH = "stretch"
    PAD = "pad"
    CROP = "crop"


def decode_picture(data: bytes, wanted: Tensor, policy: SizePolicy = SizePolicy.STRETCH) -> Array:
    """`(height, width, channels)` with values 0…255, in the shape that `wanted` asks for.

    Where its sides are open, a larger picture is shrunk to `LARGEST_SIDE` on its longer one.
    """
    if wanted.rank not in (2, 3):
        raise ExampleError(f"a picture has 2 or 3 dimensions, the program asks for {wanted.rank}")
    height, width = wanted.shape[:2]
    channels = wanted.shape[2] if wanted.rank == 3 else 1
    mode = {1: "L", 3: "RGB", 4: "RGBA"}.get(channels or 3)
    if mode is None:
        raise ExampleError(f"a picture file has 1, 3 or 4 channels, not {channels}; feed an array instead")
    try:
        turned = read_plain_png(data, MAX_PIXELS) or _open(
            data, whole=height is not None and width is not None
        )
        picture = turned if turned.mode == mode else turned.convert(mode)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ExampleError(f"the picture unpacks to far more than {MAX_PIXELS:,} pixels") from None
    except UnidentifiedImageError:
        raise ExampleError("this is not a picture that can be read (JPEG, PNG, …)") from None
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise ExampleError(f"the picture is damaged: {error}") from None
    if height is not None and width is not None and picture.size != (width, height):
        match policy:
            case SizePolicy.STRETCH:
                picture = picture.resize((width, height), Image.Resampling.BILINEAR)
            case SizePolicy.PAD:
                picture = ImageOps.pad(picture, (width, height))
            case SizePolicy.CROP:
                picture = ImageOps.fit(picture, (width, height))
    if height is None or width is None:
        picture.thumbnail((LARGEST_SIDE, LARGEST_SIDE), Image.Resampling.BILINEAR)
    flat = np.frombuffer(picture.tobytes(), dtype=np.uint8).astype(np.float32)
    shape = (picture.height, picture.width, len(picture.getbands()))
    return flat.reshape(shape if wanted.rank == 3 else shape[:2])


def _open(data: bytes, *, whole: bool) -> Image.Image:
    """Returns the picture the right way up; at a fraction of its size where it need not be `whole`."""
    with Image.open(io.BytesIO(data), formats=_formats(data)) as opened:
        if opened.width * opened.height > MAX_PIXELS:
            size = f"{opened.width} × {opened.height}"
            raise ExampleError(f"a picture of {size}; at most {MAX_PIXELS:,} pixels are read")
        if not whole:
            # A JPEG is then decoded at a fraction of its size, which takes a fraction of the time.
            opened.draft(None, (2 * LARGEST_SIDE, 2 * LARGEST_SIDE))
        opened.load()
        return ImageOps.exif_transpose(opened) if _MAY_BE_TURNED & opened.info.keys() else opened


def _formats(data: bytes) -> tuple[str, ...] | None:
    """Returns the formats to try by the first bytes: one of the two usual kinds alone, else all."""
    if data.startswith(b"\x89PNG"):
        return ("PNG",)
    return ("JPEG", "MPO") if data.startswith(b"\xff\xd8") else None
