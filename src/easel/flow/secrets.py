"""Secrets that prove who calls: 256 random bits, shown once, kept only as a hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets

TOKEN_PREFIX = "easel_"  # noqa: S105 - a public prefix by which secret scanners find leaked tokens


def new_token() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def new_session() -> str:
    return secrets.token_urlsafe(32)


def hashed(secret: str) -> str:
    """SHA-256 suffices: with 256 random bits there is no dictionary to try."""
    return hashlib.sha256(secret.encode()).hexdigest()


def csrf_token(session_secret: str) -> str:
    """Derived from the session, so that only a page that may read our answers knows it; nothing is stored."""
    return hashlib.sha256(b"easel-csrf:" + session_secret.encode()).hexdigest()


def same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
