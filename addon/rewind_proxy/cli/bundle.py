"""Trust bundles: what the variables of a child process point to.

Most variables replace a client's roots, so a file with our CA alone would break every tunnelled host (CASES
60): the bundle holds the system's roots, the user's own, and our CA. `NODE_EXTRA_CA_CERTS` adds to the roots,
so there our CA is enough. Certificates are compared and copied as bytes, never parsed: system stores hold
some that strict parsers refuse. Nothing but certificates is copied, so no key of the user's can end up in a
bundle.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import ssl
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from rewind_proxy.cli.authority import write_atomically
from rewind_proxy.errors import CertificateError

BUNDLE_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "CODEX_CA_CERTIFICATE",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "PIP_CERT",
)
"""The variables that replace a client's roots (DESIGN §12); a child gets all of them."""
NODE_VARIABLE = "NODE_EXTRA_CA_CERTS"

SYSTEM_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Alpine, Arch, Gentoo, NixOS
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora, RHEL
    "/etc/pki/tls/certs/ca-bundle.crt",  # older Fedora and RHEL
    "/var/lib/ca-certificates/ca-bundle.pem",  # SUSE
    "/etc/ssl/ca-bundle.pem",  # older SUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS, OpenBSD
    "/usr/local/share/certs/ca-root-nss.crt",  # FreeBSD
)
SYSTEM_KEYCHAINS = (
    "/System/Library/Keychains/SystemRootCertificates.keychain",
    "/Library/Keychains/System.keychain",
)
"""macOS keeps what an administrator added (a corporate CA) here, and not in /etc/ssl/cert.pem."""

_CERTIFICATE = re.compile(
    rb"-----BEGIN (?:X509 )?CERTIFICATE-----(.*?)-----END (?:X509 )?CERTIFICATE-----", re.DOTALL
)
_BEGIN = re.compile(rb"-----BEGIN (?:X509 )?CERTIFICATE-----")
_SEQUENCE = b"\x30"  # what DER of a certificate starts with


def system_roots(environ: Mapping[str, str], files: Sequence[str] = SYSTEM_FILES) -> tuple[bytes, ...]:
    """The roots of the system's store, DER, in its order. Not certifi's: the system's hold the company's too.

    `files` are tried in order, then what Python's OpenSSL was built with and `NIX_SSL_CERT_FILE`; on macOS
    the keychains come first. Raises `CertificateError` when there are none.
    """
    if sys.platform == "darwin" and (found := _keychain_roots()):
        return found
    built_in = ssl.get_default_verify_paths()
    for name in (*files, built_in.openssl_cafile, environ.get("NIX_SSL_CERT_FILE", "")):
        path = Path(name)
        if name and path.is_file() and (found := _read_file(path, "the system's roots")):
            return found
    folder = Path(built_in.openssl_capath)
    if folder.is_dir() and (found := _read_folder(folder, "the system's roots")):
        return found
    raise CertificateError(
        "no roots of the system were found; install them (the package is mostly called ca-certificates), or "
        "set SSL_CERT_FILE to a PEM file of roots"
    )


def make_bundle(folder: Path, ca_file: Path, environ: Mapping[str, str]) -> Path:
    """Write the bundle for clients whose roots are replaced, and return its absolute path.

    It holds the system's roots, those of the user's bundle variables, and our CA, each once. Two users'
    bundles in one folder have two names, and one is rewritten only when its content changed. Raises
    `CertificateError` for a variable that points nowhere, and when there are no roots at all.
    """
    system, own = trusted_certificates(environ)
    return _write(folder, "bundle", system, own, _our_ca(ca_file))


def trusted_certificates(environ: Mapping[str, str]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """What a bundle is made of beside our CA, in DER: the system's roots, and the user's. Errors as above."""
    own = _users_certificates(BUNDLE_VARIABLES, environ)
    try:
        return _unique(system_roots(environ)), own
    except CertificateError:
        if not own:
            raise
        return (), own


def node_extra(folder: Path, ca_file: Path, environ: Mapping[str, str]) -> Path:
    """Write the file for `NODE_EXTRA_CA_CERTS`: the user's extra CAs and ours. Absolute; errors as above."""
    return _write(folder, "node-extra", (), node_certificates(environ), _our_ca(ca_file))


def node_certificates(environ: Mapping[str, str]) -> tuple[bytes, ...]:
    """The user's extra CAs for Node, in DER. Errors as above."""
    return _users_certificates((NODE_VARIABLE,), environ)


def certificates_in(pem: bytes) -> tuple[bytes, ...]:
    """The certificates of a PEM file in DER, in order; everything else in it is passed over.

    Raises `ValueError` for a block that is cut off or no base64 of DER.
    """
    blocks = _CERTIFICATE.findall(pem)
    try:
        found = tuple(base64.b64decode(b"".join(block.split()), validate=True) for block in blocks)
    except binascii.Error as error:
        raise ValueError("a certificate in it is damaged") from error
    if len(found) != len(_BEGIN.findall(pem)) or not all(der.startswith(_SEQUENCE) for der in found):
        raise ValueError("a certificate in it is damaged")
    return found


def _our_ca(ca_file: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(ca_file.read_bytes())
    except (OSError, ValueError) as error:
        raise CertificateError(f"the CA {ca_file} cannot be read ({error}); run `rewind ca make`") from error


def _users_certificates(variables: Iterable[str], environ: Mapping[str, str]) -> tuple[bytes, ...]:
    found: list[bytes] = []
    for variable in variables:
        if name := environ.get(variable, "").strip():
            path = Path(name)
            what = f"{variable}={name}"
            # requests takes a folder of certificates too.
            more = _read_folder(path, what) if path.is_dir() else _read_file(path, what)
            if not more:
                raise CertificateError(
                    f"{what} holds no certificate in PEM; correct the variable or unset it"
                )
            found.extend(more)
    return _unique(found)


def _read_file(path: Path, what: str) -> tuple[bytes, ...]:
    try:
        return certificates_in(path.read_bytes())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CertificateError(f"{what}: {path} cannot be read ({reason}); correct it or unset it") from error


def _read_folder(path: Path, what: str) -> tuple[bytes, ...]:
    # Hash links beside their files give every certificate twice.
    files = sorted({file.resolve() for file in path.iterdir() if file.is_file()})
    return _unique(der for file in files for der in _read_file(file, what))


def _keychain_roots() -> tuple[bytes, ...]:
    command = ["/usr/bin/security", "find-certificate", "-a", "-p", *SYSTEM_KEYCHAINS]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, timeout=30)  # noqa: S603 - fixed command
        return _unique(certificates_in(listed.stdout))
    except (OSError, subprocess.SubprocessError, ValueError):
        # Then /etc/ssl/cert.pem, which macOS ships, is the next best.
        return ()


def _unique(certificates: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(certificates))


def _write(
    folder: Path, stem: str, system: tuple[bytes, ...], own: tuple[bytes, ...], ca: x509.Certificate
) -> Path:
    ours, subject = ca.public_bytes(Encoding.DER), ca.subject.public_bytes()
    known = {*system, ours}
    # The user's variables may point to a bundle of ours, from an outer run or from `rewind env`: what it
    # holds beyond the system's roots is kept, but not a CA of this name that has been replaced since.
    extra = tuple(der for der in own if der not in known and subject not in der)
    name = f"{stem}-{_digest(extra)}.pem" if extra else f"{stem}.pem"
    path = folder.absolute() / name
    content = b"".join(_pem(der) for der in _unique((*system, *extra, ours)))
    try:
        if not path.is_file() or path.read_bytes() != content:
            write_atomically(path, content, 0o644)
    except OSError as error:
        raise CertificateError(f"{path} cannot be written ({error.strerror or error})") from error
    return path


def _digest(certificates: Sequence[bytes]) -> str:
    return hashlib.sha256(b"".join(sorted(hashlib.sha256(der).digest() for der in certificates))).hexdigest()[
        :12
    ]


def _pem(der: bytes) -> bytes:
    return ssl.DER_cert_to_PEM_cert(der).encode("ascii")
