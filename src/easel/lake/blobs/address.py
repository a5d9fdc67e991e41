"""Where a platform keeps its bytes, as one line of text that processes hand to one another.

A folder is its path; a bucket is `s3://bucket/prefix?endpoint=…&region=…`. Credentials are never part of the line,
which may be seen in a list of processes: they travel in the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from easel.errors import Misconfigured
from easel.lake.blobs.local import LocalBlobs
from easel.lake.blobs.store import BlobStore

ACCESS_KEY, SECRET_KEY = "EASEL_S3_ACCESS_KEY", "EASEL_S3_SECRET_KEY"
"""Variables that hold the credentials; without them they come from where AWS tools look."""


def bucket_address(url: str, endpoint: str = "", region: str = "") -> str:
    """The line for `s3://bucket/prefix`, a service other than AWS, and a region."""
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc or parts.query:
        raise Misconfigured("EASEL_BLOBS_URL is not of the form s3://bucket/prefix")
    more = urlencode({name: value for name, value in (("endpoint", endpoint), ("region", region)) if value})
    return f"{url}?{more}" if more else url


def open_blobs(address: str, environment: Mapping[str, str] = os.environ) -> BlobStore:
    if not address.startswith("s3:"):
        return LocalBlobs(Path(address))
    from easel.lake.blobs.s3 import S3Blobs  # only where it is used: boto3 is an extra

    url = urlsplit(address)
    asked = {name: values[0] for name, values in parse_qs(url.query).items()}
    prefix = url.path.strip("/")
    return S3Blobs(
        url.netloc,
        prefix=f"{prefix}/" if prefix else "",
        endpoint=asked.get("endpoint"),
        region=asked.get("region"),
        access_key=environment.get(ACCESS_KEY) or None,
        secret_key=environment.get(SECRET_KEY) or None,
    )
