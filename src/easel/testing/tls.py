"""A certificate of one's own, as a laboratory's server has it, and the authority that signed it."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class OwnCertificate(NamedTuple):
    """`authority` is what clients name in EASEL_CA_FILE; `server` is for a server's socket."""

    authority: Path
    server: ssl.SSLContext


def own_certificate(folder: Path, host: str = "127.0.0.1") -> OwnCertificate:
    """Makes an authority that nobody knows, and a certificate for `host` that it signed."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "laboratory")])
    now = datetime.now(UTC)

    def begun(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )

    root = (
        begun(issuer, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    name = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    certificate = (
        begun(subject, key.public_key())
        .add_extension(name, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    authority, chain = folder / "authority.pem", folder / "server.pem"
    authority.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    chain.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return OwnCertificate(authority, context)
