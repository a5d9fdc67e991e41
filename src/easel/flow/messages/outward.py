"""Requests to addresses that people gave: never into networks that an admin has not allowed.

The name is resolved once, every address is compared, and the connection goes to the address that was compared: a
name that answers differently the second time gains nothing. Redirects are refused.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from easel.errors import InvalidInput, TryLater

TIMEOUT_S = 10.0
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(given: Sequence[str]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(each) for each in given)


def check_address(url: str, allowed: Sequence[Network]) -> tuple[str, int, str]:
    """Returns host, port and the address to connect to, or refuses."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.username or parts.password:
        raise InvalidInput("an address for messages is https://host/path, without a name or password in it")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TryLater(f"{parts.hostname} has no address: {error}") from error
    addresses = [str(each[4][0]) for each in found]
    for address in addresses:
        if not _may_reach(address, allowed):
            raise InvalidInput(
                f"{parts.hostname} is in a private network ({address}): an admin may allow it in message_networks"
            )
    if parts.scheme == "http" and not any(_is_in(addresses[0], network) for network in allowed):
        raise InvalidInput("use https:// for addresses outside: messages must not be read on the way")
    return parts.hostname, port, addresses[0]


def _may_reach(address: str, allowed: Sequence[Network]) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    public = ip.is_global and not ip.is_multicast
    return public or any(_is_in(str(ip), network) for network in allowed)


def _is_in(address: str, network: Network) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    return ip.version == network.version and ip in network


def send(method: str, url: str, body: bytes, headers: Mapping[str, str], allowed: Sequence[Network]) -> None:
    """Send, and return when the other side has taken it; what it answers is not read."""
    host, port, address = check_address(url, allowed)
    parts = urlsplit(url)
    path = parts.path or "/"
    if parts.query:
        path += f"?{parts.query}"
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        raw = socket.create_connection((address, port), TIMEOUT_S)
        secure = parts.scheme == "https"
        connection.sock = (
            ssl.create_default_context().wrap_socket(raw, server_hostname=host) if secure else raw
        )
        default = port == (443 if secure else 80)
        name = f"[{host}]" if ":" in host else host
        host_header = name if default else f"{name}:{port}"
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for key, value in {"Host": host_header, "Content-Length": str(len(body)), **headers}.items():
            connection.putheader(key, value)
        connection.endheaders(body)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise TryLater(f"{host} does not take messages: {error}") from error
    finally:
        connection.close()
    if 300 <= status < 400:
        raise InvalidInput(f"{host} sends us elsewhere ({status}): give the address that it points to")
    if status >= 400:
        raise TryLater(f"{host} answered {status}")
