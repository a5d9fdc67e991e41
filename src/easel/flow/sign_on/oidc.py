"""One provider that speaks OpenID Connect: discovery, keys, and the check of everything that it answers.

Authorisation code with PKCE. Nothing that comes from outside is believed before it is checked; whatever does not fit is
refused as `Unauthenticated`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jwt import JWTClaimsRegistry

from easel.clock import Clock
from easel.declare.sign_on import OidcSettings
from easel.errors import TryLater, Unauthenticated
from easel.flow.secrets import same
from easel.flow.sign_on.rules import KnownPerson

ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
"""Signatures with a provider's private key only: `none` and HS* are nobody's proof."""
LEEWAY_S = 60
_TIMEOUT = httpx.Timeout(10.0, connect=5.0)
_METADATA_LASTS_S = 3600.0
_KEYS_AGAIN_AFTER_S = 5.0
_LARGEST = 1 << 20
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
LOGOUT_LASTS_S = 300.0
"""A logout token older than this is somebody's copy."""
_MOST_GROUPS = 2000


@dataclass(frozen=True, slots=True)
class Departed:
    """Where the browser goes, and what must come back with it."""

    url: str
    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class LoggedOut:
    """Whose sessions a provider ended: all of a subject, or one of its sessions; and when it said so."""

    subject: str | None
    session: str | None
    at: float


@dataclass(slots=True)
class OidcProvider:
    """Safe to share between threads. Metadata and keys are kept for an hour; an unknown key is asked for at once."""

    settings: OidcSettings
    clock: Clock
    _metadata: dict[str, Any] | None = None
    _metadata_at: float = 0.0
    _keys: KeySet | None = None
    _keys_at: float = 0.0
    _keys_again_at: float = -_KEYS_AGAIN_AFTER_S
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def depart(self, redirect_uri: str) -> Departed:
        """Begin: an address with state, nonce and the challenge of PKCE."""
        verifier, state, nonce = (secrets.token_urlsafe(48) for _ in range(3))
        url = prepare_grant_uri(
            self.metadata()["authorization_endpoint"],
            self.settings.client_id,
            "code",
            redirect_uri,
            self.settings.scopes,
            state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        return Departed(url, state, nonce, verifier)

    def arrive(self, answer: Mapping[str, str], nonce: str, verifier: str, redirect_uri: str) -> KnownPerson:
        """Who came back, after every check."""
        metadata = self.metadata()
        said = answer.get("iss")
        if said is not None and said != self.settings.issuer:
            raise Unauthenticated(
                "the answer comes from another provider than the one you were sent to: try again"
            )
        if said is None and metadata.get("authorization_response_iss_parameter_supported"):
            raise Unauthenticated("the answer does not say which provider it comes from: try again")
        if "error" in answer:
            raise Unauthenticated(
                f"{self.settings.shown} refused the log-in ({_short(answer['error'])}): try again"
            )
        if not answer.get("code"):
            raise Unauthenticated("the answer has no code: try again")
        tokens = self._trade(answer["code"], verifier, redirect_uri)
        id_token = tokens.get("id_token")
        if not isinstance(id_token, str):
            raise Unauthenticated(f"{self.settings.shown} gave no ID token: is `openid` among the scopes?")
        claims = self.check_id_token(id_token, nonce)
        access = tokens.get("access_token")
        _check_at_hash(claims, access)
        if (
            self.settings.groups_claim not in claims
            and isinstance(access, str)
            and metadata.get("userinfo_endpoint")
        ):
            claims = {**self._userinfo(metadata["userinfo_endpoint"], access, claims["sub"]), **claims}
        return _person(self.settings, claims)

    def check_id_token(self, text: str, nonce: str | None) -> dict[str, Any]:
        """The claims of a token that this provider signed for us, now, for this log-in."""
        token = self._verified(text)
        claims = token.claims
        wanted = JWTClaimsRegistry(
            now=lambda: int(self.clock.now().timestamp()),
            leeway=LEEWAY_S,
            iss={"essential": True, "value": self.settings.issuer},
            aud={"essential": True, "value": self.settings.client_id},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
        )
        try:
            wanted.validate(claims)
        except JoseError as error:
            raise Unauthenticated(
                f"the ID token of {self.settings.shown} is not for this log-in ({error})"
            ) from error
        audience = claims["aud"]
        several = isinstance(audience, list) and len(audience) > 1
        if (several or "azp" in claims) and claims.get("azp") != self.settings.client_id:
            raise Unauthenticated("the ID token was made for another client: try again")
        if nonce is not None and not same(str(claims.get("nonce", "")), nonce):
            raise Unauthenticated("the ID token belongs to another log-in: try again")
        if not isinstance(claims["sub"], str) or not 1 <= len(claims["sub"]) <= 255:
            raise Unauthenticated("the ID token names nobody")
        return dict(claims)

    def log_out_url(self, back_to: str) -> str | None:
        """Where the browser also logs out of the provider, if that can be told."""
        endpoint = self.metadata().get("end_session_endpoint")
        if not endpoint:
            return None
        query = urlencode({"client_id": self.settings.client_id, "post_logout_redirect_uri": back_to})
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"

    def logged_out(self, logout_token: str) -> LoggedOut:
        """Returns whom a logout token is about, after every check of OpenID Connect Back-Channel Logout 1.0, 2.6."""
        verified = self._verified(logout_token)
        kind = str(verified.header.get("typ", "JWT")).lower()
        claims = verified.claims
        registry = JWTClaimsRegistry(
            now=lambda: int(self.clock.now().timestamp()),
            leeway=LEEWAY_S,
            iss={"essential": True, "value": self.settings.issuer},
            aud={"essential": True, "value": self.settings.client_id},
            iat={"essential": True},
            jti={"essential": True},
        )
        try:
            registry.validate(claims)
        except (JoseError, ValueError, TypeError) as error:
            raise Unauthenticated(f"the logout token of {self.settings.shown} does not hold") from error
        events = claims.get("events")
        about = events.get(LOGOUT_EVENT) if isinstance(events, dict) else None
        old = self.clock.now().timestamp() - float(claims["iat"]) > LOGOUT_LASTS_S
        subject, session = claims.get("sub"), claims.get("sid")
        if kind not in ("jwt", "logout+jwt") or not isinstance(about, dict) or "nonce" in claims or old:
            raise Unauthenticated("this is no logout token, or an old one")
        if (
            not isinstance(subject, str | None)
            or not isinstance(session, str | None)
            or not (subject or session)
        ):
            raise Unauthenticated("the logout token names nobody")
        return LoggedOut(subject, session, float(claims["iat"]))

    def metadata(self) -> dict[str, Any]:
        """What the provider says of itself, checked: its issuer is ours, its addresses are as safe as the issuer's."""
        now = self.clock.monotonic()
        with self._lock:
            if self._metadata is not None and now - self._metadata_at < _METADATA_LASTS_S:
                return self._metadata
        found = self._get(self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
        if found.get("issuer") != self.settings.issuer:
            raise Unauthenticated(
                f"{self.settings.shown} calls itself by another name than its settings here do"
            )
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if not isinstance(found.get(name), str):
                raise Unauthenticated(f"{self.settings.shown} does not tell its {name}")
        secure = urlsplit(self.settings.issuer).scheme == "https"
        for name, value in found.items():
            if name.endswith(("_endpoint", "jwks_uri")) and secure and urlsplit(str(value)).scheme != "https":
                raise Unauthenticated(f"the {name} of {self.settings.shown} is not https")
        with self._lock:
            self._metadata, self._metadata_at = found, now
        return found

    def _verified(self, text: str) -> jwt.Token:
        """A token with a right signature. A key that we do not know may be new: then the keys are asked for once."""
        for again in (False, True):
            try:
                return jwt.decode(text, self._key_set(again), algorithms=ALGORITHMS)
            except (JoseError, ValueError, KeyError, TypeError) as error:
                if again:
                    raise Unauthenticated(
                        f"the ID token of {self.settings.shown} is not signed by it"
                    ) from error
        raise AssertionError("the second try returns or raises")

    def _key_set(self, anew: bool) -> KeySet:
        """The known keys; `anew`, for a token that none of them signed: fetched, unless that was just done."""
        now = self.clock.monotonic()
        with self._lock:
            if self._keys is not None and now - self._keys_at < _METADATA_LASTS_S:
                if not anew or now - self._keys_again_at < _KEYS_AGAIN_AFTER_S:
                    return self._keys
                self._keys_again_at = now
        found = self._get(self.metadata()["jwks_uri"])
        try:
            keys = KeySet.import_key_set({"keys": [key for key in found["keys"] if key.get("kty") != "oct"]})
        except (JoseError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise Unauthenticated(f"the keys of {self.settings.shown} cannot be read") from error
        with self._lock:
            self._keys, self._keys_at = keys, now
        return keys

    def _trade(self, code: str, verifier: str, redirect_uri: str) -> dict[str, Any]:
        """The tokens that the provider gives for a code, once."""
        metadata, who = self.metadata(), {"client_id": self.settings.client_id}
        auth = None
        if self.settings.client_secret is not None:
            secret = self.settings.client_secret.get_secret_value()
            if self._proves_by_header(metadata):
                # RFC 6749, 2.3.1: both are encoded as in a form before they go into the header.
                who, auth = {}, (quote_plus(self.settings.client_id), quote_plus(secret))
            else:
                who["client_secret"] = secret
        form = prepare_token_request(
            "authorization_code", redirect_uri=redirect_uri, code=code, code_verifier=verifier, **who
        )
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        return self._ask("POST", metadata["token_endpoint"], headers, content=form, auth=auth)

    def _proves_by_header(self, metadata: Mapping[str, Any]) -> bool:
        """Whether our secret goes into a header: as set, else unless the provider takes it in forms only."""
        if self.settings.client_auth is not None:
            return self.settings.client_auth == "client_secret_basic"
        ways = metadata.get("token_endpoint_auth_methods_supported")
        return not isinstance(ways, list) or "client_secret_basic" in ways or "client_secret_post" not in ways

    def _userinfo(self, endpoint: str, access_token: str, subject: str) -> dict[str, Any]:
        found = self._get(endpoint, {"Authorization": f"Bearer {access_token}"})
        if found.get("sub") != subject:
            raise Unauthenticated(f"{self.settings.shown} speaks of somebody else than its ID token does")
        return found

    def _get(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        return self._ask("GET", url, headers or {})

    def _ask(self, method: str, url: str, headers: Mapping[str, str], **more: Any) -> dict[str, Any]:
        """A JSON object of bounded size; redirects are not followed."""
        try:
            with httpx.stream(method, url, headers=dict(headers), timeout=_TIMEOUT, **more) as response:
                if response.status_code >= 500:
                    raise TryLater(f"{self.settings.shown} answers {response.status_code}: try again shortly")
                if response.status_code != 200:
                    raise Unauthenticated(f"{self.settings.shown} did not accept the log-in: try again")
                body = b""
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > _LARGEST:
                        raise Unauthenticated(f"{self.settings.shown} answers with more than a megabyte")
            found = json.loads(body)
        except httpx.HTTPError as error:
            raise TryLater(f"{self.settings.shown} does not answer: try again shortly") from error
        except (ValueError, RecursionError) as error:
            raise Unauthenticated(f"{self.settings.shown} answers with something else than JSON") from error
        if not isinstance(found, dict):
            raise Unauthenticated(f"{self.settings.shown} answers with something else than a JSON object")
        return found


def _check_at_hash(claims: Mapping[str, Any], access_token: object) -> None:
    """Where the ID token names an access token, it must be this one."""
    said = claims.get("at_hash")
    if said is None or not isinstance(access_token, str):
        return
    fitting = set()
    for algorithm in (hashlib.sha256, hashlib.sha384, hashlib.sha512):
        digest = algorithm(access_token.encode()).digest()
        fitting.add(base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode())
    if said not in fitting:
        raise Unauthenticated("the ID token belongs to another access token: try again")


def _person(settings: OidcSettings, claims: Mapping[str, Any]) -> KnownPerson:
    said = claims.get(settings.groups_claim, [])
    groups = [said] if isinstance(said, str) else said
    if (
        not isinstance(groups, list)
        or len(groups) > _MOST_GROUPS
        or not all(isinstance(g, str) for g in groups)
    ):
        raise Unauthenticated(f"the groups that {settings.shown} tells cannot be read: see `groups_claim`")
    name = claims.get(settings.name_claim) or claims.get("email") or claims["sub"]
    sid = claims.get("sid")
    return KnownPerson(claims["sub"], str(name), frozenset(groups), sid if isinstance(sid, str) else None)


def _short(text: str) -> str:
    return "".join(c for c in text[:60] if c.isalnum() or c in "_- ")
