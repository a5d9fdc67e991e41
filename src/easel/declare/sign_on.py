"""How people sign on elsewhere: providers of identities, and what their groups mean here."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from easel.declare.roles import Role

Slug = Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]{0,30}$")]


class GroupRules(BaseModel):
    """What a provider's groups mean: who may log in, who runs the platform, who is what in which project."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Slug
    label: str = ""
    allowed_group: Annotated[str, Field(description="Only its members may log in; empty: everybody")] = ""
    admin_group: Annotated[str, Field(description="Its members are platform admins; empty: nobody is")] = ""
    groups: Annotated[
        dict[str, str], Field(description='Group to project and role: {"lab-astro": "astro:member"}')
    ] = Field(default_factory=dict)

    @field_validator("groups")
    @classmethod
    def _is_project_and_role(cls, value: dict[str, str]) -> dict[str, str]:
        for target in value.values():
            project, _, role = target.partition(":")
            if not project or role not in list(Role):
                raise ValueError(f"{target!r} is not project:role, with member or admin as the role")
        return value

    @property
    def shown(self) -> str:
        return self.label or self.name


class OidcSettings(GroupRules):
    """A provider that speaks OpenID Connect."""

    issuer: str
    client_id: str
    client_secret: SecretStr | None = None
    client_auth: Annotated[
        Literal["client_secret_basic", "client_secret_post"] | None,
        Field(description="How the secret is sent; without it as the provider says that it takes it"),
    ] = None
    scopes: str = "openid profile email"
    groups_claim: str = "groups"
    name_claim: str = "preferred_username"

    @field_validator("issuer")
    @classmethod
    def _is_safe(cls, value: str) -> str:
        parts = urlsplit(value)
        loopback = parts.hostname in ("127.0.0.1", "::1", "localhost")
        if parts.scheme != "https" and not (parts.scheme == "http" and loopback):
            raise ValueError("the issuer must be https://… (http only on this machine, for a try-out)")
        return value


class LdapSettings(GroupRules):
    """A directory that people log in to with name and password."""

    url: Annotated[str, Field(pattern="^ldaps?://")]
    user_dn: Annotated[str, Field(pattern=r"\{user\}", description="uid={user},ou=people,dc=example,dc=org")]
    group_base: str = ""
    group_filter: str = "(|(member={dn})(uniqueMember={dn})(memberUid={user}))"
    group_attribute: str = "cn"
    start_tls: bool = True
