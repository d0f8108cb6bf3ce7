"""The CA of Rewind: it can sign for the known hosts and for nothing else.

A root whose key is never written signs one intermediate, whose name constraints permit the known hosts;
mitmproxy signs with the intermediate. Clients trust the root. The shape (path lengths, key usages, no EKU, IP
addresses excluded) is the one that every client in CLIENTS.md accepts ("A constrained CA"), and that Java
enforces too, which ignores constraints on the trust anchor itself. Leaf certificates are mitmproxy's: at most
a year, as Apple asks.

IP addresses stay excluded even when `rewind_hosts` names one: a gateway by address is reached over plain
HTTP, and one that speaks TLS needs a DNS name (`localhost` is one).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import ipaddress
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import platformdirs
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from rewind_proxy.errors import CertificateError

KEY_FILE = "mitmproxy-ca.pem"
"""What mitmproxy signs with: the intermediate's key, the intermediate, the root."""
CA_FILE = "mitmproxy-ca-cert.pem"
"""What a client trusts: the root."""
DH_FILE = "mitmproxy-dhparam.pem"

LIFETIME = timedelta(days=3650)
"""As mitmproxy's own CA: a root put into a system store by hand need not be replaced every year."""
BACKDATED = timedelta(days=2)
"""mitmproxy backdates its leaf certificates by as much, for containers whose clock is behind."""
RENEW_BEFORE = timedelta(days=30)
"""Longer than any run: a proxy keeps the CA that it was started with."""

# RFC 7919 ffdhe2048. mitmproxy writes this file when it is missing, in place and without a lock: a second
# proxy that starts at that moment reads half of it. Having it there also lets the folder be read-only.
_DH_PARAMETERS = b"""\
-----BEGIN DH PARAMETERS-----
MIIBCAKCAQEA//////////+t+FRYortKmq/cViAnPTzx2LnFg84tNpWp4TZBFGQz
+8yTnc4kmz75fS/jY2MMddj2gbICrsRhetPfHtXV/WVhJDP1H18GbtCFY2VVPe0a
87VXE15/V8k1mE8McODmi3fipona8+/och3xWKE2rec1MKzKT0g6eXq8CrGCsyT7
YdEIqUuyyOP7uWrat2DX9GgdT0Kj3jlN9K5W7edjcrsZCwenyO4KbXCeAvzhzffi
7MA0BM0oNC9hkXL+nOmFg/+OTxIy7vKBg8P+OxtMb61zO7X8vC7CIAXFjvGDfRaD
ssbzSibBsu/6iGtCOGEoXJf//////////wIBAg==
-----END DH PARAMETERS-----
"""

_DNS_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")
_NO_ADDRESSES = (
    x509.IPAddress(ipaddress.ip_network("0.0.0.0/0")),
    x509.IPAddress(ipaddress.ip_network("::/0")),
)
_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA on disk that was read and found good."""

    confdir: Path
    """mitmproxy's `confdir`."""
    ca_file: Path
    """The root in PEM: what a client is told to trust."""
    names: tuple[str, ...]
    """The DNS names it can sign for, each with its subdomains."""
    subject: str
    """Of the root, as RFC 4514 writes it."""
    expires: datetime
    fingerprint: str
    """SHA-256 of the root, as `openssl x509 -fingerprint` shows it."""


def _checked(dns_names: Iterable[str]) -> tuple[str, ...]:
    names = tuple(sorted(set(dns_names)))
    for name in names:
        # `HostTable.dns_names` gives nothing else. A pattern or an empty name here would be a constraint that
        # some clients read as "every name".
        if not _DNS_NAME.fullmatch(name) or _ends_in_number(name):
            raise CertificateError(f"{name!r} is not a DNS name that a CA can be limited to")
    if not names:
        raise CertificateError("there is no host with a DNS name to make a CA for; add one to `hosts`")
    return names


def _ends_in_number(name: str) -> bool:
    return name.rpartition(".")[2].isdecimal()


def ca_folder(dns_names: Sequence[str], environ: Mapping[str, str]) -> Path:
    """The folder of the CA for a set of names (`HostTable.dns_names`); it need not exist yet.

    One folder for each set of names, so that projects with other hosts do not replace each other's CA: below
    `certs/` in a checkout, else below the user's data folder (`XDG_DATA_HOME` of `environ`, or what the
    platform has).
    """
    return _certs_root(environ) / _digest(_checked(dns_names))


def _digest(names: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]


def _certs_root(environ: Mapping[str, str]) -> Path:
    addon = Path(__file__).resolve().parents[2]
    certs = addon.parent / "certs"
    # A checkout mounted read-only into a container has no place for a new CA.
    if addon.name == "addon" and (certs / "README.md").is_file() and os.access(certs, os.W_OK):
        return certs
    data_home = environ.get("XDG_DATA_HOME", "")
    if Path(data_home).is_absolute():  # the XDG specification: relative paths are to be ignored
        return Path(data_home) / "rewind" / "certs"
    return platformdirs.user_data_path("rewind", appauthor=False) / "certs"


def ensure_ca(folder: Path, dns_names: Sequence[str], now: datetime | None = None) -> Authority:
    """The CA of a folder, made when there is none, and made anew when it is damaged or about to expire.

    Of several processes at once, one makes it and the others use it. Raises `CertificateError` when the
    folder or its files cannot be written.
    """
    now = now or datetime.now(UTC)
    names = _checked(dns_names)
    with contextlib.suppress(CertificateError):
        if _is_private(folder):
            return load_ca(folder, names, now)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(folder):
            _make_private(folder)
            try:
                return load_ca(folder, names, now)
            except CertificateError:
                _write_ca(folder, names, now)
    except OSError as error:
        raise CertificateError(
            f"the CA in {folder} cannot be written ({error.strerror or error}); make the folder writable"
        ) from error
    return load_ca(folder, names, now)


def load_ca(folder: Path, dns_names: Sequence[str], now: datetime | None = None) -> Authority:
    """Read and check the CA of a folder, and change nothing.

    Raises `CertificateError` that says what is wrong: missing, damaged, about to expire, or made for other
    names.
    """
    key_file, ca_file = folder / KEY_FILE, folder / CA_FILE
    try:
        signing, root_pem = key_file.read_bytes(), ca_file.read_bytes()
    except OSError as error:
        raise _unusable(folder, f"{error.strerror or error}: {error.filename}") from error
    try:
        key = serialization.load_pem_private_key(signing, password=None)
        chain = x509.load_pem_x509_certificates(signing)
        root = x509.load_pem_x509_certificate(root_pem)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _unusable(folder, "its files are damaged") from error
    if len(chain) != 2 or chain[1] != root:
        raise _unusable(folder, f"{KEY_FILE} and {CA_FILE} do not belong together")
    intermediate = chain[0]
    try:
        intermediate.verify_directly_issued_by(root)
        constraints = intermediate.extensions.get_extension_for_class(x509.NameConstraints).value
    except (InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound) as error:
        raise _unusable(folder, f"{KEY_FILE} is not a chain that Rewind made") from error
    if key.public_key() != intermediate.public_key():
        raise _unusable(folder, f"the key in {KEY_FILE} is not that of its certificate")
    names = tuple(sorted(str(name.value) for name in constraints.permitted_subtrees or ()))
    if names != _checked(dns_names) or set(constraints.excluded_subtrees or ()) != set(_NO_ADDRESSES):
        raise _unusable(folder, "it was made for other host names")
    expires = min(intermediate.not_valid_after_utc, root.not_valid_after_utc)
    begins = max(intermediate.not_valid_before_utc, root.not_valid_before_utc)
    now = now or datetime.now(UTC)
    if not begins <= now <= expires - RENEW_BEFORE:
        raise _unusable(folder, f"it is valid from {begins:%Y-%m-%d} to {expires:%Y-%m-%d}")
    return Authority(
        confdir=folder,
        ca_file=ca_file,
        names=names,
        subject=root.subject.rfc4514_string(),
        expires=expires,
        fingerprint=root.fingerprint(hashes.SHA256()).hex(":").upper(),
    )


def _unusable(folder: Path, reason: str) -> CertificateError:
    return CertificateError(f"the CA in {folder} cannot be used: {reason}; `rewind ca make` makes a new one")


def exposed_files(folder: Path) -> tuple[Path, ...]:
    """The folder itself and those of its key files that others than their owner may open.

    Raises `CertificateError` when that cannot be told.
    """
    try:
        return tuple(
            path for path in (folder, folder / KEY_FILE) if path.exists() and path.stat().st_mode & 0o077
        )
    except OSError as error:
        raise _unusable(folder, f"{error.strerror or error}: {error.filename}") from error


def _is_private(folder: Path) -> bool:
    return not exposed_files(folder)


def _make_private(folder: Path) -> None:
    # Caches of CI and copies of a checkout do not keep modes.
    for path in exposed_files(folder):
        path.chmod(0o700 if path.is_dir() else 0o600)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    # An advisory lock dies with its process; a lock file made with O_EXCL would outlive a killed one.
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: bytes, mode: int) -> None:
    """Put a file in place at once: a reader sees the old content or the new, and never a wider mode."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(descriptor, mode)
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _write_ca(folder: Path, names: Sequence[str], now: datetime) -> None:
    label = _digest(names)
    root_name, name = _distinguished_name(f"Rewind root {label}"), _distinguished_name(f"Rewind {label}")
    root_key, key = _new_key(), _new_key()
    root = _certificate(root_name, root_key, root_name, root_key, now, path_length=1)
    constraints = x509.NameConstraints([x509.DNSName(name) for name in names], list(_NO_ADDRESSES))
    intermediate = _certificate(name, key, root_name, root_key, now, path_length=0, constraints=constraints)
    root_pem = root.public_bytes(serialization.Encoding.PEM)
    signing = (
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + intermediate.public_bytes(serialization.Encoding.PEM)
        + root_pem
    )
    write_atomically(folder / DH_FILE, _DH_PARAMETERS, 0o644)
    write_atomically(folder / CA_FILE, root_pem, 0o644)
    # Last: mitmproxy takes the CA as made when this file is there.
    write_atomically(folder / KEY_FILE, signing, 0o600)


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _distinguished_name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Rewind"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _certificate(
    subject: x509.Name,
    key: rsa.RSAPrivateKey,
    issuer: x509.Name,
    issuer_key: rsa.RSAPrivateKey,
    now: datetime,
    *,
    path_length: int,
    constraints: x509.NameConstraints | None = None,
) -> x509.Certificate:
    # Python 3.13 refuses a CA without a subject key identifier (VERIFY_X509_STRICT).
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(_SIGNS_CERTIFICATES, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    if constraints is not None:
        builder = builder.add_extension(constraints, critical=True)
    return builder.sign(issuer_key, hashes.SHA256())
