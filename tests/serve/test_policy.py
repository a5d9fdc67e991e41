"""What a page may talk to."""

from __future__ import annotations

import pytest

from easel.serve.lake import blob_origins
from easel.serve.middleware import page_policy
from easel.serve.settings import Settings


def test_a_page_talks_to_its_own_server_only_where_blobs_lie_there() -> None:
    assert blob_origins(Settings()) == ()
    assert b"connect-src 'self';" in page_policy()


@pytest.mark.parametrize(
    ("settings", "origin"),
    [
        (Settings(blobs_url="s3://bucket/x", s3_endpoint="http://store:9000/path"), "http://store:9000"),
        (Settings(blobs_url="s3://bucket"), "https://bucket.s3.amazonaws.com"),
        (
            Settings(blobs_url="s3://bucket", s3_region="eu-west-1"),
            "https://bucket.s3.eu-west-1.amazonaws.com",
        ),
    ],
)
def test_a_page_may_send_parts_to_the_bucket(settings: Settings, origin: str) -> None:
    origins = blob_origins(settings)
    assert origin in origins
    policy = page_policy(origins)
    assert origin.encode() in policy
    assert b"unsafe" not in policy
