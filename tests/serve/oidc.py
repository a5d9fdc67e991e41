"""A small OpenID provider that lies as it is told to: what a hostile or broken one could answer."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT = "easel"


@dataclass
class HostileProvider:
    """`claims` and `lies` change what it answers; `keys` is what it publishes, `signs_with` what it signs with."""

    port: int = 0
    nonce: str = ""
    groups: list[str] = field(default_factory=lambda: ["staff"])
    claims: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=dict)
    raw_token: str | None = None
    token_status: int = 200
    token_body: bytes | None = None
    jwks_body: bytes | None = None
    without: frozenset[str] = frozenset()
    used: set[str] = field(default_factory=set)
    signs_with: Any = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    keys: list[Any] = field(default_factory=list)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def id_token(self) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "s-1",
            "preferred_username": "ana",
            "groups": self.groups,
            "nonce": self.nonce,
            "iat": now,
            "exp": now + 300,
            **self.claims,
        }
        said = {name: value for name, value in claims.items() if name not in self.without}
        header = {"alg": "RS256", "kid": "one", **self.header}
        return jwt.encode(header, said, self.signs_with)

    def answer(self, path: str, form: dict[str, list[str]]) -> tuple[int, bytes]:
        if path == "/.well-known/openid-configuration":
            found = {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/jwks",
                "userinfo_endpoint": f"{self.issuer}/userinfo",
                "end_session_endpoint": f"{self.issuer}/end",
                **self.metadata,
            }
            return 200, json.dumps(found).encode()
        if path == "/jwks":
            keys = self.keys or [self.signs_with]
            return 200, self.jwks_body or json.dumps(
                {"keys": [key.as_dict(private=False) for key in keys]}
            ).encode()
        if path == "/userinfo":
            return 200, json.dumps({"sub": "somebody else", "groups": ["admins"]}).encode()
        code = form.get("code", [""])[0]
        if code in self.used or not form.get("code_verifier"):
            return 400, b'{"error": "invalid_grant"}'
        self.used.add(code)
        if self.token_body is not None:
            return self.token_status, self.token_body
        body = {"access_token": "at", "token_type": "Bearer", "id_token": self.raw_token or self.id_token()}
        return self.token_status, json.dumps(
            {k: v for k, v in body.items() if k not in self.without}
        ).encode()


@contextmanager
def running() -> Iterator[HostileProvider]:
    provider = HostileProvider()

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            form = parse_qs(self.rfile.read(length).decode())
            status, body = provider.answer(self.path.partition("?")[0], form)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = respond  # noqa: N815 - the names that http.server asks for

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
