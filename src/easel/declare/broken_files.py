"""What the standard library and NumPy raise at files that are not what they say; readers say it in words."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from tokenize import TokenError

BROKEN_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    KeyError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    OSError,
)
"""At an archive: damaged, encrypted, packed in a way that is not known, or without a member that it must have."""
BROKEN_ARRAY = (*BROKEN_ZIP, MemoryError, OverflowError, SyntaxError, TokenError, TypeError)
"""At an array of NumPy, alone or in an archive: its header is read as a piece of Python."""
