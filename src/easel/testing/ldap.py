"""A real slapd for tests: in a temporary folder, on a free port, with two people and a group."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

BASE = "dc=example,dc=org"
CONFIG = """include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
pidfile {folder}/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix "{base}"
rootdn "cn=admin,{base}"
directory {folder}/data
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
"""
PEOPLE = """dn: {base}
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: ou=people,{base}
objectClass: organizationalUnit
ou: people

dn: ou=groups,{base}
objectClass: organizationalUnit
ou: groups

dn: uid=eva,ou=people,{base}
objectClass: inetOrgPerson
uid: eva
cn: Eva
sn: Ek
userPassword: correct horse

dn: uid=tom,ou=people,{base}
objectClass: inetOrgPerson
uid: tom
cn: Tom
sn: Ott
userPassword: battery staple

dn: cn=astro,ou=groups,{base}
objectClass: groupOfNames
cn: astro
member: uid=eva,ou=people,{base}
"""


def find_slapd() -> Path | None:
    """Returns Debian's server, which is not on everybody's path."""
    found = shutil.which("slapd", path="/usr/sbin:/usr/libexec:/usr/local/libexec")
    return Path(found) if found and Path("/etc/ldap/schema/inetorgperson.schema").is_file() else None


@contextlib.contextmanager
def running(slapd: Path) -> Iterator[str]:
    """Yields the address of a directory that is there until the block ends."""
    with tempfile.TemporaryDirectory(prefix="easel-ldap-") as made, socket.socket() as free:
        folder = Path(made)
        (folder / "data").mkdir()
        (folder / "slapd.conf").write_text(CONFIG.format(folder=folder, base=BASE))
        (folder / "people.ldif").write_text(PEOPLE.format(base=BASE))
        config = ["-f", str(folder / "slapd.conf")]
        add = [str(slapd), "-Ta", *config, "-l", str(folder / "people.ldif")]
        subprocess.run(add, check=True, capture_output=True)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        url = f"ldap://127.0.0.1:{port}"
        server = subprocess.Popen(
            [str(slapd), *config, "-h", url, "-d", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _wait(port)
            yield url
        finally:
            server.terminate()
            server.wait(10)


def _wait(port: int, seconds: float = 30.0) -> None:
    ends = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.05)
