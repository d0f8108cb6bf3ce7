"""Trust bundles: the system's roots, the user's, and our CA, each once."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509

from rewind_proxy.cli import bundle
from rewind_proxy.cli.authority import KEY_FILE, Authority, ensure_ca
from rewind_proxy.cli.bundle import (
    BUNDLE_VARIABLES,
    certificates_in,
    make_bundle,
    node_extra,
    system_roots,
)
from rewind_proxy.errors import CertificateError


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return ensure_ca(tmp_path_factory.mktemp("ours") / "ca", ["api.openai.com"])


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Three roots of other people, in PEM."""
    folder = tmp_path_factory.mktemp("others")
    return [
        ensure_ca(folder / name, [f"{name}.example"]).ca_file.read_bytes() for name in ("one", "two", "three")
    ]


@pytest.fixture(autouse=True)
def system(others: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system store with the first of them."""
    store = tmp_path / "system.pem"
    store.write_bytes(others[0])
    monkeypatch.setattr(bundle, "system_roots", lambda environ: system_roots(environ, [str(store)]))
    return store


def ders(*pems: bytes) -> list[bytes]:
    return [der for pem in pems for der in certificates_in(pem)]


def content(path: Path) -> list[bytes]:
    return ders(path.read_bytes())


def test_it_holds_the_systems_roots_and_our_ca(ca: Authority, others: list[bytes], tmp_path: Path) -> None:
    """With nothing set by the user: system first, ours last, an absolute path, PEM that OpenSSL reads."""
    path = make_bundle(tmp_path, ca.ca_file, {})
    assert path.is_absolute()
    assert content(path) == ders(others[0], ca.ca_file.read_bytes())
    assert ssl.create_default_context(cafile=str(path)).cert_store_stats()["x509_ca"] == 2


@pytest.mark.parametrize("variable", BUNDLE_VARIABLES)
def test_the_users_own_bundle_is_in_it(
    variable: str, ca: Authority, others: list[bytes], tmp_path: Path
) -> None:
    """Whichever variable named it: a company's CA stays trusted, and the system's roots are not replaced."""
    own = tmp_path / "own.pem"
    own.write_bytes(others[1])
    path = make_bundle(tmp_path, ca.ca_file, {variable: str(own)})
    assert content(path) == ders(others[0], others[1], ca.ca_file.read_bytes())


def test_nothing_is_in_it_twice(ca: Authority, others: list[bytes], tmp_path: Path) -> None:
    """A CA listed twice breaks Copilot: duplicates go, however they are wrapped, and the order stays."""
    ours = ca.ca_file.read_bytes()
    own, more = tmp_path / "own.pem", tmp_path / "more.pem"
    one_line = base64.b64encode(ders(others[2])[0])
    own.write_bytes(
        ours
        + b"# a comment\n-----BEGIN CERTIFICATE-----\n"
        + one_line
        + b"\n-----END CERTIFICATE-----\n"
        + others[0]
    )
    more.write_bytes((others[2] + others[1]).replace(b"\n", b"\r\n"))
    path = make_bundle(tmp_path, ca.ca_file, {"SSL_CERT_FILE": str(own), "PIP_CERT": str(more)})
    assert content(path) == ders(others[0], others[2], others[1], ours)


def test_our_ca_in_the_system_store_is_not_added_again(ca: Authority, system: Path, tmp_path: Path) -> None:
    """Someone who installed it has it once."""
    system.write_bytes(system.read_bytes() + ca.ca_file.read_bytes())
    assert content(make_bundle(tmp_path, ca.ca_file, {})) == content(system)


def test_no_private_key_gets_into_it(ca: Authority, tmp_path: Path) -> None:
    """A user's file with a key beside its certificates gives its certificates alone."""
    path = make_bundle(tmp_path, ca.ca_file, {"SSL_CERT_FILE": str(ca.confdir / KEY_FILE)})
    assert b"PRIVATE KEY" not in path.read_bytes()


def test_a_run_inside_a_run_gets_the_same_bundle(ca: Authority, others: list[bytes], tmp_path: Path) -> None:
    """Variables that an outer run set lead to its bundle: nothing is lost, nothing comes twice."""
    own = tmp_path / "own.pem"
    own.write_bytes(others[1])
    outer = make_bundle(tmp_path, ca.ca_file, {"SSL_CERT_FILE": str(own)})
    inner = make_bundle(tmp_path, ca.ca_file, dict.fromkeys(BUNDLE_VARIABLES, str(outer)))
    assert inner == outer
    plain = make_bundle(tmp_path, ca.ca_file, {})
    assert make_bundle(tmp_path, ca.ca_file, {"SSL_CERT_FILE": str(plain)}) == plain != outer


def test_a_run_inside_a_run_for_other_hosts_trusts_both(
    ca: Authority, others: list[bytes], tmp_path: Path
) -> None:
    """What the outer proxy decrypts and the inner one tunnels is signed by the outer CA."""
    outer = make_bundle(tmp_path, ca.ca_file, {})
    inner_ca = ensure_ca(tmp_path / "inner", ["llm.corp.example"])
    inner = make_bundle(inner_ca.confdir, inner_ca.ca_file, {"SSL_CERT_FILE": str(outer)})
    assert content(inner) == ders(others[0], ca.ca_file.read_bytes(), inner_ca.ca_file.read_bytes())


def test_a_ca_that_was_replaced_is_not_trusted_any_more(others: list[bytes], tmp_path: Path) -> None:
    """A shell that still names the bundle of before a renewal does not bring the old CA back."""
    old = ensure_ca(tmp_path / "ca", ["api.openai.com"])
    before = make_bundle(tmp_path, old.ca_file, {})
    (old.confdir / KEY_FILE).unlink()
    new = ensure_ca(tmp_path / "ca", ["api.openai.com"])
    after = make_bundle(tmp_path, new.ca_file, {"SSL_CERT_FILE": str(before)})
    assert content(after) == ders(others[0], new.ca_file.read_bytes())


def test_two_users_bundles_have_two_names(ca: Authority, others: list[bytes], tmp_path: Path) -> None:
    """A second project with another company CA does not pull the file from under the first one's client."""
    for number in (1, 2):
        (tmp_path / f"{number}.pem").write_bytes(others[number])
    first = make_bundle(tmp_path, ca.ca_file, {"SSL_CERT_FILE": str(tmp_path / "1.pem")})
    before = first.read_bytes()
    assert make_bundle(tmp_path, ca.ca_file, {"SSL_CERT_FILE": str(tmp_path / "2.pem")}) != first
    assert first.read_bytes() == before


def test_it_is_rewritten_only_when_its_content_changed(
    ca: Authority, others: list[bytes], system: Path, tmp_path: Path
) -> None:
    """The same roots leave the file alone; an update of the system's comes through under the same name."""
    path = make_bundle(tmp_path, ca.ca_file, {})
    before = path.stat()
    assert make_bundle(tmp_path, ca.ca_file, {}) == path
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    system.write_bytes(others[0] + others[2])
    assert make_bundle(tmp_path, ca.ca_file, {}) == path
    assert content(path) == ders(others[0], others[2], ca.ca_file.read_bytes())


@pytest.mark.parametrize(
    "damage",
    [
        None,
        b"",
        b"not a certificate",
        b"-----BEGIN CERTIFICATE-----\nAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\n$$$$\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nMIIDGzCCAgOg\n",
    ],
)
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"])
def test_a_variable_that_leads_nowhere_is_reported(
    variable: str, damage: bytes | None, ca: Authority, tmp_path: Path
) -> None:
    """Missing, empty or damaged: the error names the variable and the file before anything starts."""
    own = tmp_path / "typo.pem"
    if damage is not None:
        own.write_bytes(damage)
    make = make_bundle if variable in BUNDLE_VARIABLES else node_extra
    with pytest.raises(CertificateError, match=rf"{variable}=.*typo\.pem"):
        make(tmp_path, ca.ca_file, {variable: str(own)})


def test_an_empty_variable_is_not_set(ca: Authority, tmp_path: Path) -> None:
    """`SSL_CERT_FILE=` means none, as it does to clients."""
    assert make_bundle(tmp_path, ca.ca_file, {"SSL_CERT_FILE": " "}).name == "bundle.pem"


def test_a_folder_of_certificates_is_read(ca: Authority, others: list[bytes], tmp_path: Path) -> None:
    """requests takes a folder with hash links in `REQUESTS_CA_BUNDLE`."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "company.pem").write_bytes(others[1])
    (folder / "1a2b3c4d.0").symlink_to("company.pem")
    (folder / "README").write_text("no certificate")
    path = make_bundle(tmp_path, ca.ca_file, {"REQUESTS_CA_BUNDLE": str(folder)})
    assert content(path) == ders(others[0], others[1], ca.ca_file.read_bytes())


# The system's store


def test_the_first_store_with_certificates_is_the_systems(others: list[bytes], tmp_path: Path) -> None:
    """Files are tried in order; missing and empty ones are passed over."""
    (tmp_path / "empty.pem").touch()
    (tmp_path / "roots.pem").write_bytes(others[2] + others[1])
    files: Sequence[str] = [str(tmp_path / name) for name in ("missing.pem", "empty.pem", "roots.pem")]
    assert list(system_roots({}, files)) == ders(others[2], others[1])


def no_built_in_store(monkeypatch: pytest.MonkeyPatch, folder: str = "/nonexistent") -> None:
    paths = ssl.DefaultVerifyPaths("", "", "SSL_CERT_FILE", "/nonexistent", "SSL_CERT_DIR", folder)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)


def test_openssls_folder_is_the_last_resort(
    others: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system with a folder of certificates only is read too."""
    (tmp_path / "roots").mkdir()
    (tmp_path / "roots" / "a.pem").write_bytes(others[1])
    no_built_in_store(monkeypatch, str(tmp_path / "roots"))
    assert list(system_roots({}, [])) == ders(others[1])


def test_without_any_store_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare container gets an error with the next step."""
    no_built_in_store(monkeypatch)
    with pytest.raises(CertificateError, match="ca-certificates"):
        system_roots({}, [])


def test_the_users_bundle_is_enough_where_the_system_has_none(
    ca: Authority, others: list[bytes], system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the user's roots and ours make the bundle."""
    system.unlink()
    no_built_in_store(monkeypatch)
    own = tmp_path / "own.pem"
    own.write_bytes(others[1])
    path = make_bundle(tmp_path, ca.ca_file, {"SSL_CERT_FILE": str(own)})
    assert content(path) == ders(others[1], ca.ca_file.read_bytes())
    with pytest.raises(CertificateError, match="no roots"):
        make_bundle(tmp_path, ca.ca_file, {})


# What Node adds


def test_node_gets_our_ca_alone(ca: Authority, tmp_path: Path) -> None:
    """`NODE_EXTRA_CA_CERTS` adds to Node's roots, so the system's are not repeated."""
    assert content(node_extra(tmp_path, ca.ca_file, {})) == ders(ca.ca_file.read_bytes())


def test_node_keeps_the_users_extra_cas(ca: Authority, others: list[bytes], tmp_path: Path) -> None:
    """A company's CA stays trusted, once, also in a run inside a run."""
    own = tmp_path / "own.pem"
    own.write_bytes(others[1] + others[1])
    path = node_extra(tmp_path, ca.ca_file, {"NODE_EXTRA_CA_CERTS": str(own)})
    assert content(path) == ders(others[1], ca.ca_file.read_bytes())
    assert node_extra(tmp_path, ca.ca_file, {"NODE_EXTRA_CA_CERTS": str(path)}) == path


def test_a_ca_file_that_is_gone_is_named(tmp_path: Path) -> None:
    """Without our CA there is no bundle, and the error says how to make one."""
    with pytest.raises(CertificateError, match=r"gone\.pem .*rewind ca make"):
        make_bundle(tmp_path, tmp_path / "gone.pem", {})


def test_the_roots_of_this_system_make_a_bundle(ca: Authority, tmp_path: Path) -> None:
    """The real store, where there is one: each certificate once, and OpenSSL reads them all."""
    roots = system_roots({}) if any(Path(name).is_file() for name in bundle.SYSTEM_FILES) else ()
    path = tmp_path / "real.pem"
    path.write_bytes(
        b"".join(ssl.DER_cert_to_PEM_cert(der).encode() for der in roots) + ca.ca_file.read_bytes()
    )
    assert len(set(content(path))) == len(content(path)) == len(roots) + 1
    assert ssl.create_default_context(cafile=str(path)).cert_store_stats()["x509"] == len(roots) + 1
    assert x509.load_der_x509_certificate(content(path)[-1]).subject.rfc4514_string() == ca.subject
