"""The CA: one for each set of hosts, made once, good for the known hosts and for nothing else."""

from __future__ import annotations

import contextlib
import ipaddress
import multiprocessing
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from mitmproxy.certs import CertStore

from rewind_proxy.cli import authority
from rewind_proxy.cli.authority import (
    CA_FILE,
    DH_FILE,
    KEY_FILE,
    Authority,
    ca_folder,
    ensure_ca,
    load_ca,
)
from rewind_proxy.errors import CertificateError
from rewind_proxy.wire.hosts import HostTable

NAMES = ("api.openai.com", "googleapis.com", "chatgpt.com")
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return ensure_ca(tmp_path_factory.mktemp("ca") / "set", NAMES)


# Names and folders


@pytest.mark.parametrize(
    "name",
    [
        "",
        "*",
        "*.example",
        ".example",
        "a.example.",
        "A.example",
        "a b.example",
        "a.example:1",
        "10.0.0.5",
        "::1",
    ],
)
def test_what_no_certificate_can_be_limited_to_is_refused_by_name(name: str, tmp_path: Path) -> None:
    """A pattern, an address or an empty name would be no limit, or one that clients read differently."""
    with pytest.raises(CertificateError) as error:
        ensure_ca(tmp_path, ["api.openai.com", name])
    assert repr(name) in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_every_known_host_can_be_signed_for() -> None:
    """The names that the table of hosts gives are names that the CA takes."""
    names = HostTable({"llm.corp.example:8443": "generic", "localhost:4000": "generic"}).dns_names()
    assert {"llm.corp.example", "localhost", "api.openai.com"} <= set(names)
    assert ca_folder(names, {})


def test_each_set_of_hosts_has_its_own_folder(tmp_path: Path) -> None:
    """Projects with other hosts keep their own CA; the order of the names does not matter."""
    environ = {"XDG_DATA_HOME": str(tmp_path)}
    one = ca_folder(["a.example", "b.example"], environ)
    assert one == ca_folder(["b.example", "a.example", "b.example"], environ)
    assert one != ca_folder(["a.example"], environ)


def test_in_a_checkout_the_ca_is_below_certs(tmp_path: Path) -> None:
    """A package in `addon/` beside `certs/README.md` keeps its CA there, whatever the environment."""
    root = Path(authority.__file__).parents[3]
    assert ca_folder(NAMES, {"XDG_DATA_HOME": str(tmp_path)}).parent == root / "certs"


@pytest.mark.parametrize("has_readme", [True, False])
def test_an_installed_package_keeps_its_ca_in_the_data_folder(
    has_readme: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither `site-packages` nor an `addon/` of someone else is a checkout of ours."""
    place = tmp_path / ("site-packages" if has_readme else "addon") / "rewind_proxy" / "cli" / "authority.py"
    (tmp_path / "certs").mkdir()
    if has_readme:
        (tmp_path / "certs" / "README.md").touch()
    monkeypatch.setattr(authority, "__file__", str(place))
    folder = ca_folder(NAMES, {"XDG_DATA_HOME": str(tmp_path / "share")})
    assert folder.parent == tmp_path / "share" / "rewind" / "certs"


def test_a_relative_data_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`XDG_DATA_HOME` must be absolute, so that the CA does not depend on the working directory."""
    monkeypatch.setattr(
        authority, "__file__", str(tmp_path / "lib" / "rewind_proxy" / "cli" / "authority.py")
    )
    folder = ca_folder(NAMES, {"XDG_DATA_HOME": "share"})
    assert folder.is_absolute()
    assert "share" not in folder.relative_to(folder.parents[2]).parts


# Making and keeping


def test_it_is_made_once(tmp_path: Path) -> None:
    """A second call reads what the first one wrote, and writes nothing."""
    first = ensure_ca(tmp_path / "ca", NAMES)
    before = {path: path.stat().st_mtime_ns for path in first.confdir.iterdir()}
    assert ensure_ca(tmp_path / "ca", NAMES) == first
    assert {path: path.stat().st_mtime_ns for path in first.confdir.iterdir()} == before


def test_processes_at_once_make_one_ca(tmp_path: Path) -> None:
    """Of four that start together one makes the CA, and all come back with it."""
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        made = list(pool.map(ensure_ca, [tmp_path / "ca"] * 4, [NAMES] * 4))
    assert len({one.fingerprint for one in made}) == 1
    assert load_ca(tmp_path / "ca", NAMES) == made[0]


def test_its_key_is_for_its_owner_alone(ca: Authority) -> None:
    """Key file 0600, folder 0700."""
    assert (ca.confdir / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert ca.confdir.stat().st_mode & 0o777 == 0o700


def test_modes_that_a_copy_lost_are_put_right(tmp_path: Path) -> None:
    """A cache or copy that opened the key to others is closed again, and the CA stays."""
    made = ensure_ca(tmp_path / "ca", NAMES)
    (made.confdir / KEY_FILE).chmod(0o644)
    made.confdir.chmod(0o755)
    assert ensure_ca(tmp_path / "ca", NAMES).fingerprint == made.fingerprint
    assert authority.exposed_files(made.confdir) == ()


def test_the_key_of_the_root_is_nowhere(ca: Authority) -> None:
    """The one key on disk is the intermediate's, so nobody can make a CA without constraints from it."""
    keys = [path for path in ca.confdir.rglob("*") if path.is_file() and b"PRIVATE KEY" in path.read_bytes()]
    assert [path.name for path in keys] == [KEY_FILE]
    pem = keys[0].read_bytes()
    assert pem.count(b"BEGIN PRIVATE KEY") == 1
    root = x509.load_pem_x509_certificate(ca.ca_file.read_bytes())
    assert load_pem_private_key(pem, None).public_key() != root.public_key()


def test_the_shape_is_the_one_that_every_client_accepts(ca: Authority) -> None:
    """CLIENTS.md, "A constrained CA": path lengths, critical constraints, IP addresses excluded, no EKU."""
    intermediate, root = x509.load_pem_x509_certificates((ca.confdir / KEY_FILE).read_bytes())
    for certificate, path_length in ((root, 1), (intermediate, 0)):
        extensions = {extension.oid._name: extension for extension in certificate.extensions}
        assert extensions["basicConstraints"].critical
        assert extensions["basicConstraints"].value == x509.BasicConstraints(True, path_length)
        assert extensions["keyUsage"].critical
        assert extensions["keyUsage"].value.key_cert_sign
        assert not extensions["keyUsage"].value.crl_sign
        assert {"subjectKeyIdentifier", "authorityKeyIdentifier"} <= set(extensions)
        assert "extendedKeyUsage" not in extensions
        key = certificate.public_key()
        assert isinstance(key, RSAPublicKey)
        assert key.key_size == 2048
        assert isinstance(certificate.signature_hash_algorithm, SHA256)
    constraints = intermediate.extensions.get_extension_for_class(x509.NameConstraints)
    assert constraints.critical
    permitted, excluded = constraints.value.permitted_subtrees, constraints.value.excluded_subtrees
    assert [name.value for name in permitted or ()] == sorted(NAMES)
    assert {str(name.value) for name in excluded or ()} == {"0.0.0.0/0", "::/0"}


@pytest.mark.parametrize("file", [KEY_FILE, CA_FILE])
@pytest.mark.parametrize("content", [None, b"", b"not PEM", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_a_damaged_ca_is_named_when_read_and_replaced_when_needed(
    file: str, content: bytes | None, tmp_path: Path
) -> None:
    """`load_ca` says what is wrong; `ensure_ca` makes a new one that is whole."""
    made = ensure_ca(tmp_path / "ca", NAMES)
    if content is None:
        (made.confdir / file).unlink()
    else:
        (made.confdir / file).write_bytes(content)
    with pytest.raises(CertificateError, match=r"rewind ca make"):
        load_ca(made.confdir, NAMES)
    assert ensure_ca(made.confdir, NAMES).fingerprint != made.fingerprint
    assert load_ca(made.confdir, NAMES)


def test_a_key_beside_another_certificate_is_damage(tmp_path: Path) -> None:
    """Files of two CAs that were mixed, or a CA of mitmproxy's own, are not used."""
    one, other = ensure_ca(tmp_path / "one", NAMES), ensure_ca(tmp_path / "other", NAMES)
    chain = (one.confdir / KEY_FILE).read_bytes()
    strange = load_pem_private_key((other.confdir / KEY_FILE).read_bytes(), None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    (one.confdir / KEY_FILE).write_bytes(strange + chain[chain.index(b"-----BEGIN CERTIFICATE") :])
    with pytest.raises(CertificateError, match="not that of its certificate"):
        load_ca(one.confdir, NAMES)

    CertStore.create_store(tmp_path / "plain", "mitmproxy", 2048)
    with pytest.raises(CertificateError, match="do not belong together"):
        load_ca(tmp_path / "plain", NAMES)


def test_a_ca_for_other_names_is_not_used(ca: Authority) -> None:
    """A folder that was copied from another project's is noticed."""
    with pytest.raises(CertificateError, match="other host names"):
        load_ca(ca.confdir, [*NAMES, "llm.corp.example"])


@pytest.mark.parametrize("left", [timedelta(days=29), timedelta(days=-1)])
def test_it_is_renewed_before_it_expires(left: timedelta, tmp_path: Path) -> None:
    """One that ends within a month, or has ended, is made anew; until then it stays."""
    made = ensure_ca(tmp_path / "ca", NAMES, NOW)
    assert ensure_ca(tmp_path / "ca", NAMES, made.expires - timedelta(days=31)) == made
    renewed = ensure_ca(tmp_path / "ca", NAMES, made.expires - left)
    assert renewed.expires > made.expires + timedelta(days=3000)


def test_one_from_the_future_is_made_anew(tmp_path: Path) -> None:
    """A machine whose clock was ahead, and was put right, has a CA that no client takes yet."""
    made = ensure_ca(tmp_path / "ca", NAMES, NOW + timedelta(days=400))
    with pytest.raises(CertificateError, match="valid from 2028-01-02"):
        load_ca(made.confdir, NAMES, NOW)
    assert ensure_ca(made.confdir, NAMES, NOW).fingerprint != made.fingerprint


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The error says where and what to do, and is ours."""
    (tmp_path / "file").touch()
    with pytest.raises(CertificateError, match=r"file/ca cannot be written .*; make the folder writable"):
        ensure_ca(tmp_path / "file" / "ca", NAMES)


def test_there_is_no_ca_for_no_names(tmp_path: Path) -> None:
    """Without names there would be no constraint, and the CA could sign for everyone."""
    with pytest.raises(CertificateError, match="no host"):
        ensure_ca(tmp_path / "ca", [])
    assert not (tmp_path / "ca").exists()


# What mitmproxy and clients make of it


@dataclass(frozen=True)
class Presented:
    """A TLS server on loopback that shows one certificate signed by mitmproxy with our CA."""

    port: int
    files: Path


@contextmanager
def server_presenting(ca: Authority, name: x509.GeneralName, folder: Path) -> Iterator[Presented]:
    leaf = CertStore.from_store(ca.confdir, "mitmproxy", 2048).get_cert(str(name.value), [name])
    key = leaf.privatekey.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "leaf.pem").write_bytes(leaf.cert.to_pem())
    (folder / "chain.pem").write_bytes(b"".join(one.to_pem() for one in leaf.chain_certs[:1]))
    (folder / "server.pem").write_bytes(key + b"".join(c.to_pem() for c in (leaf.cert, *leaf.chain_certs)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            accepted, _ = listener.accept()
            accepted.settimeout(10)
            with contextlib.suppress(OSError), context.wrap_socket(accepted, server_side=True) as tls:
                tls.recv(4096)
                tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            accepted.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Presented(listener.getsockname()[1], folder)
        finally:
            thread.join(15)


def python_accepts(ca: Authority, host: str, server: Presented) -> bool:
    """As requests and Python 3.13 ask: default context, host name checked, X.509 strict."""
    context = ssl.create_default_context(cafile=str(ca.ca_file))
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=host) as tls:
                tls.sendall(b"GET / HTTP/1.1\r\n\r\n")
                return tls.recv(4096).startswith(b"HTTP/1.1 200")
        except ssl.SSLCertVerificationError:
            return False


def curl_accepts(ca: Authority, host: str, server: Presented) -> bool:
    resolve = f"{host}:{server.port}:127.0.0.1"
    url = f"https://{host}:{server.port}/"
    command = ["curl", "-sS", "--noproxy", "*", "--cacert", str(ca.ca_file), "--resolve", resolve, url]
    done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    assert done.returncode in (0, 60), done.stderr
    return done.returncode == 0


def openssl_accepts(ca: Authority, host: str, server: Presented) -> bool:
    kind = "-verify_ip" if host[0].isdigit() else "-verify_hostname"
    command = ["openssl", "verify", "-x509_strict", "-no-CApath", "-no-CAstore", "-CAfile", str(ca.ca_file)]
    command += ["-untrusted", str(server.files / "chain.pem"), kind, host, str(server.files / "leaf.pem")]
    with socket.create_connection(("127.0.0.1", server.port)):  # the server waits for one client
        done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    assert done.returncode in (0, 2), done.stderr
    return done.returncode == 0


CLIENTS = {"python": python_accepts} | {
    name: accepts
    for name, accepts in (("curl", curl_accepts), ("openssl", openssl_accepts))
    if shutil.which(name)
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("host", "accepted"),
    [
        ("api.openai.com", True),
        ("us-central1-aiplatform.googleapis.com", True),
        ("openai.com", False),
        ("api.openai.com.evil.example", False),
        ("127.0.0.1", False),
        ("localhost", False),
    ],
)
def test_clients_take_its_certificates_for_known_hosts_alone(
    host: str, accepted: bool, client: str, ca: Authority, tmp_path: Path
) -> None:
    """A certificate that mitmproxy signed is good for a known host, and for no other name or address."""
    name = x509.IPAddress(ipaddress.ip_address(host)) if host == "127.0.0.1" else x509.DNSName(host)
    with server_presenting(ca, name, tmp_path) as server:
        assert CLIENTS[client](ca, host, server) is accepted


def test_a_gateway_on_localhost_can_be_signed_for(tmp_path: Path) -> None:
    """`localhost` is a DNS name: a TLS gateway there works once `hosts` names it."""
    ca = ensure_ca(tmp_path / "ca", HostTable({"localhost:4000": "generic"}).dns_names())
    with server_presenting(ca, x509.DNSName("localhost"), tmp_path) as server:
        assert python_accepts(ca, "localhost", server)


def test_mitmproxy_finds_every_file_it_would_write(ca: Authority) -> None:
    """Its store loads from our folder, even read-only, and sends leaf, intermediate and root."""
    before = sorted(path.name for path in ca.confdir.iterdir())
    store = CertStore.from_store(ca.confdir, "mitmproxy", 2048)
    assert len(store.default_chain_certs) == 2
    assert sorted(path.name for path in ca.confdir.iterdir()) == before
    assert DH_FILE in before
