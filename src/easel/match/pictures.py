"""Files of pictures → arrays, with a guard against files that unpack to gigabytes."""

from __future__ import annotations

import io
import warnings
from enum import Enum

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from easel.declare.program import Tensor
from easel.match.examples import Array, ExampleError

MAX_PIXELS = 64 * 2**20


class SizePolicy(Enum):
    """What to do with a picture of another size than the program's."""

    STRETCH = "stretch"
    PAD = "pad"
    CROP = "crop"


def decode_picture(data: bytes, wanted: Tensor, policy: SizePolicy = SizePolicy.STRETCH) -> Array:
    """`(height, width, channels)` with values 0…255, in the shape that `wanted` asks for."""
    if wanted.rank not in (2, 3):
        raise ExampleError(f"a picture has 2 or 3 dimensions, the program asks for {wanted.rank}")
    height, width = wanted.shape[:2]
    channels = wanted.shape[2] if wanted.rank == 3 else 1
    mode = {1: "L", 3: "RGB", 4: "RGBA"}.get(channels or 3)
    if mode is None:
        raise ExampleError(f"a picture file has 1, 3 or 4 channels, not {channels}; feed an array instead")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data)) as opened:
                if opened.width * opened.height > MAX_PIXELS:
                    size = f"{opened.width} × {opened.height}"
                    raise ExampleError(f"a picture of {size}; at most {MAX_PIXELS:,} pixels are read")
                picture = ImageOps.exif_transpose(opened).convert(mode)
    except Image.DecompressionBombError:
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
    array = np.asarray(picture, dtype=np.float32)
    if wanted.rank == 3 and array.ndim == 2:
        array = array[..., None]
    return array
