"""A directory checks a password: we bind as the person, and read the groups that they are in."""

from __future__ import annotations

import ssl

from ldap3 import AUTO_BIND_NONE, NONE, SIMPLE, Connection, Server, Tls
from ldap3.core.exceptions import LDAPException
from ldap3.utils.conv import escape_filter_chars
from ldap3.utils.dn import escape_rdn

from easel.declare.sign_on import LdapSettings
from easel.errors import TryLater, Unauthenticated
from easel.flow.sign_on.rules import KnownPerson

_TIMEOUT_S = 10


def check_password(settings: LdapSettings, user: str, password: str) -> KnownPerson:
    """Who this is, if the directory accepts the password. An empty one would bind as nobody, and is refused."""
    if not password or not user or "\x00" in user:
        raise Unauthenticated("name and password are needed")
    dn = settings.user_dn.format(user=escape_rdn(user))
    secure = settings.url.startswith("ldaps:")
    tls = Tls(validate=ssl.CERT_REQUIRED)
    server = Server(settings.url, use_ssl=secure, tls=tls, connect_timeout=_TIMEOUT_S, get_info=NONE)
    link = Connection(
        server,
        dn,
        password,
        authentication=SIMPLE,
        auto_bind=AUTO_BIND_NONE,
        receive_timeout=_TIMEOUT_S,
        check_names=False,  # the filter names attributes of several kinds of groups; a directory knows some
    )
    try:
        link.open()
        if settings.start_tls and not secure:
            link.start_tls()
        if not link.bind():
            raise Unauthenticated(f"{settings.shown} does not accept this name and password")
        return KnownPerson(dn, user, frozenset(_groups(settings, link, dn, user)))
    except LDAPException as error:
        raise TryLater(f"{settings.shown} does not answer: try again shortly") from error
    finally:
        link.unbind()  # closes the connection, whether or not anybody was let in
        if link.socket is not None:  # one that never opened is left to us
            link.socket.close()


def _groups(settings: LdapSettings, link: Connection, dn: str, user: str) -> list[str]:
    if not settings.group_base:
        return []
    condition = settings.group_filter.format(dn=escape_filter_chars(dn), user=escape_filter_chars(user))
    link.search(settings.group_base, condition, attributes=[settings.group_attribute])
    return [str(value) for entry in link.entries for value in entry[settings.group_attribute].values]
