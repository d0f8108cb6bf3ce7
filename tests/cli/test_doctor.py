"""What `doctor` finds, what it calls broken, and that it changes nothing."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from rewind_proxy.cli import authority, clients, doctor, environment
from rewind_proxy.cli.authority import KEY_FILE, ca_folder, ensure_ca
from rewind_proxy.cli.clients import CLIENTS, goes_through_proxy, installed_clients
from rewind_proxy.cli.doctor import (
    Check,
    check_ca,
    check_file_system,
    check_mitmproxy,
    check_port,
    check_store,
    check_trust,
    check_variables,
    examine,
)
from rewind_proxy.store import Log, Store
from rewind_proxy.wire.hosts import HostTable

HOSTS = HostTable()


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of roots, so that the system need not have any."""
    return ensure_ca(tmp_path_factory.mktemp("roots") / "ca", ["corp.example"]).ca_file


@pytest.fixture(autouse=True)
def environ(roots: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A clean environment: a bundle, an empty PATH, and a data folder of its own for the CA."""
    monkeypatch.setattr(
        authority, "__file__", str(tmp_path / "lib" / "rewind_proxy" / "cli" / "authority.py")
    )
    (tmp_path / "bin").mkdir()
    return {
        "PATH": str(tmp_path / "bin"),
        "SSL_CERT_FILE": str(roots),
        "XDG_DATA_HOME": str(tmp_path / "share"),
    }


def made_ca(environ: dict[str, str], hosts: HostTable = HOSTS) -> Path:
    names = hosts.dns_names()
    return ensure_ca(ca_folder(names, environ), names).confdir


def statuses(checks: Iterator[Check]) -> dict[str, str]:
    return {check.name: check.status for check in checks}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def listener(answer: bytes) -> Iterator[int]:
    """Something that listens on loopback and gives one answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            accepted, _ = server.accept()
            with closing(accepted):
                accepted.settimeout(5)
                accepted.recv(4096)
                accepted.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


# The whole report


def test_a_sound_machine_has_nothing_broken(environ: dict[str, str], tmp_path: Path) -> None:
    """With the CA made, no check fails or warns."""
    made_ca(environ)
    report = examine(environ, tmp_path, free_port())
    assert {check.name: check.status for check in report.checks} == {
        "mitmproxy": "ok",
        "settings": "ok",
        "ca": "ok",
        "trust": "ok",
        "port": "ok",
        "store": "ok",
        "file system": "ok",
        "variables": "ok",
    }
    assert not report.broken


def test_a_long_finding_goes_on_below_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between words, so that a narrow screen breaks neither them nor a path."""
    monkeypatch.setenv("COLUMNS", "60")
    path = "/a/folder/of-some-length/and-more-of-it/certificate.pem"
    step = "take a folder that is short enough to be read on a screen"
    found = doctor.Check(name="ca", status="warn", detail=f"{path}, for 21 names", next_step=step)
    doctor.show(doctor.Report(checks=(found,), clients=()))
    assert capsys.readouterr().out.splitlines() == [
        f"warn ca          {path},",
        "                 for 21 names",
        "                 → take a folder that is short enough to be",
        "                   read on a screen",
    ]


def test_looking_changes_nothing(environ: dict[str, str], tmp_path: Path) -> None:
    """Neither the CA nor the store is made by looking for it."""
    before = sorted(tmp_path.rglob("*"))
    examine(environ, tmp_path, free_port())
    assert sorted(tmp_path.rglob("*")) == before


def test_settings_that_do_not_load_are_one_finding(environ: dict[str, str], tmp_path: Path) -> None:
    """The error of the settings is shown, and the rest is looked at all the same."""
    report = examine(environ | {"REWIND_MODE": "repaly"}, tmp_path, free_port())
    found = {check.name: check for check in report.checks}
    assert found["settings"].status == "fail"
    assert "repaly" in found["settings"].detail
    assert "trust" in found
    assert report.broken


def test_settings_say_where_they_come_from(environ: dict[str, str], tmp_path: Path) -> None:
    """The source of each, and no value that may be secret."""
    environ |= {"REWIND_MODE": "replay", "REWIND_REDACT_PATTERNS": '["hidden-[0-9]+"]'}
    report = examine(environ, tmp_path, free_port(), tmp_path / "elsewhere")
    detail = next(check.detail for check in report.checks if check.name == "settings")
    assert "mode replay" in detail
    assert "mode (variable REWIND_MODE)" in detail
    assert "redact_patterns (variable REWIND_REDACT_PATTERNS)" in detail
    assert "store (flag --store)" in detail
    assert "hidden" not in detail


@pytest.mark.parametrize(("mode", "exit_code"), [("replay", 0), ("repaly", 1)])
def test_the_exit_status_tells_broken_from_sound(
    mode: str, exit_code: int, environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 when a check failed, 0 with warnings (there is no CA yet); the JSON has its documented shape."""
    for name in os.environ:
        monkeypatch.delenv(name)
    for name, value in (environ | {"REWIND_MODE": mode}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    environment.register(app)
    result = CliRunner().invoke(app, ["doctor", "--json", "--port", str(free_port())])
    assert result.exit_code == exit_code
    report = json.loads(result.stdout)
    assert sorted(report) == ["checks", "clients"]
    assert all(sorted(check) == ["detail", "name", "next_step", "status"] for check in report["checks"])
    assert {"warn", "fail"} & {check["status"] for check in report["checks"]}

    shown = CliRunner().invoke(app, ["doctor", "--port", str(free_port())])
    assert shown.exit_code == exit_code
    assert "rewind ca make" in shown.stdout


# mitmproxy


@pytest.mark.parametrize(
    ("version", "status"),
    [("11.0.2", "ok"), ("12.3.1", "ok"), ("10.4.2", "warn"), ("13.0.0", "warn"), ("12.0.0.dev0", "ok")],
)
def test_a_mitmproxy_that_was_not_tried_is_a_warning(
    version: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """11 and 12 are tried; another may work."""
    monkeypatch.setattr(doctor, "version", lambda _: version)
    assert check_mitmproxy().status == status


# CA and trust


def test_a_missing_ca_is_a_warning(environ: dict[str, str]) -> None:
    """The first use makes it, so nothing is broken."""
    assert statuses(check_ca(HOSTS, environ)) == {"ca": "warn"}


def test_a_damaged_ca_is_broken(environ: dict[str, str]) -> None:
    """A running proxy would not start with it."""
    (made_ca(environ) / KEY_FILE).write_text("")
    assert statuses(check_ca(HOSTS, environ)) == {"ca": "fail"}


def test_a_key_that_others_may_read_is_broken(environ: dict[str, str]) -> None:
    """Whoever has it can sign for the known hosts."""
    (made_ca(environ) / KEY_FILE).chmod(0o644)
    found = {check.name: check for check in check_ca(HOSTS, environ)}
    assert found["ca"].status == "ok"
    assert found["ca modes"].status == "fail"
    assert KEY_FILE in found["ca modes"].detail


def test_a_gateway_by_address_is_a_warning(environ: dict[str, str]) -> None:
    """The CA cannot sign for it, which matters when it speaks TLS."""
    hosts = HostTable({"10.0.0.5:8000": "generic", "[::1]:4000": "generic", "llm.corp.example": "generic"})
    made_ca(environ, hosts)
    found = {check.name: check for check in check_ca(hosts, environ)}
    assert found["hosts"].status == "warn"
    assert "10.0.0.5:8000, [::1]:4000:" in found["hosts"].detail


def test_a_bundle_that_cannot_be_made_is_broken(environ: dict[str, str]) -> None:
    """A variable of the user's that leads nowhere would stop every run."""
    assert statuses(check_trust(environ)) == {"trust": "ok"}
    [found] = check_trust(environ | {"PIP_CERT": "/typo.pem"})
    assert found.status == "fail"
    assert "PIP_CERT=/typo.pem" in found.detail


# Port


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nServer: mitmproxy 11.0.2\r\n\r\n", "ok", "a mitmproxy"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "warn", "another program"),
        (b"", "warn", "another program"),
    ],
)
def test_who_has_the_port_is_told(answer: bytes, status: str, words: str) -> None:
    """A proxy that runs is fine, another program is in the way."""
    with listener(answer) as port:
        found = check_port(port)
    assert (found.status, words in found.detail) == (status, True)


def test_a_free_port_is_free() -> None:
    """And is free again afterwards."""
    port = free_port()
    assert [check_port(port).detail, check_port(port).detail] == [f"127.0.0.1:{port} is free"] * 2


# Store


def test_a_store_is_opened_and_counted(tmp_path: Path) -> None:
    """Read only, so a proxy may have it open."""
    with Store.open(tmp_path / "store", settings_digest="ab" * 8):
        pass
    [store, place] = check_store(tmp_path / "store")
    assert (store.status, place.status) == ("ok", "ok")
    assert "0 recordings" in store.detail


def test_what_is_no_store_is_broken(tmp_path: Path) -> None:
    """A file in its place, or a damaged one, is named."""
    (tmp_path / "file").write_text("x")
    assert statuses(check_store(tmp_path / "file"))["store"] == "fail"
    with Store.open(tmp_path / "store", settings_digest="ab" * 8):
        pass
    damage(tmp_path / "store")
    found = {check.name: check for check in check_store(tmp_path / "store")}
    assert found["store"].status == "fail"
    assert "restore it, or move it away" in found["store"].detail
    assert found["store"].next_step == ""


def test_a_log_is_opened_and_counted(tmp_path: Path) -> None:
    """It stands beside the store; no proxy starts without it, so a damaged one is broken."""
    store = tmp_path / "store"
    with Log.open(store):
        pass
    found = {check.name: check for check in check_store(store)}
    assert (found["log"].status, found["log"].detail) == ("ok", f"{tmp_path / 'store.log'}: 0 runs")
    damage(tmp_path / "store.log")
    found = {check.name: check for check in check_store(store)}
    assert found["log"].status == "fail"
    assert f"{tmp_path / 'store.log'}" in found["log"].detail


def damage(place: Path) -> None:
    for path in place.rglob("data.mdb"):
        path.write_bytes(b"x" * 8192)


def test_a_network_file_system_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LMDB needs shared memory that a network file system does not have."""
    monkeypatch.setattr(doctor, "_mounts", lambda: f"server:/x {tmp_path} nfs4 rw 0 0\n")
    found = check_file_system(tmp_path / "not" / "yet", replays=True)
    assert found.status == "fail"
    assert "nfs4" in found.detail


def test_little_room_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a recording is lost for it."""
    monkeypatch.setattr(doctor, "_LITTLE_SPACE", 2**62)
    assert check_file_system(tmp_path, replays=True).status == "warn"


def test_a_place_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay works there, if the store itself can be read."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = {replays: check_file_system(tmp_path, replays=replays) for replays in (True, False)}
    assert [check.status for check in found.values()] == ["warn", "warn"]
    assert [("replay works" in check.detail) for check in found.values()] == [True, False]


# Variables


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"NO_PROXY": "corp.example, .openai.com"}, "'.openai.com' hides api.openai.com"),
        ({"wss_proxy": "http://proxy.example"}, "wss_proxy goes before HTTPS_PROXY"),
        ({"OPENAI_BASE_URL": "https://llm.corp.example/v1"}, "leads to llm.corp.example, which"),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:4000"}, "leads to 127.0.0.1:4000, which"),
        ({"OPENAI_BASE_URL": "no url"}, "OPENAI_BASE_URL is not a URL"),
        ({"OPENAI_BASE_URL": "http://[x"}, "OPENAI_BASE_URL is not a URL"),
        ({"HTTPS_PROXY": "socks5://proxy.example:1080"}, "names a socks5 proxy"),
        ({"NODE_TLS_REJECT_UNAUTHORIZED": "0"}, "accepts any certificate"),
    ],
)
def test_a_variable_in_the_way_is_a_warning(variables: dict[str, str], words: str) -> None:
    """It is named, with what to do."""
    [found] = check_variables(HOSTS, variables)
    assert found.status == "warn"
    assert words in found.detail
    assert found.next_step


@pytest.mark.parametrize(
    "variables",
    [
        {"OPENAI_BASE_URL": "https://api.openai.com/v1", "ANTHROPIC_BASE_URL": ""},
        {"OPENAI_BASE_URL": "https://eu.api.openai.com:443/v1"},
        {"HTTPS_PROXY": "http://proxy.example:3128"},
        {"NO_PROXY": "corp.example,localhost"},
    ],
)
def test_a_variable_that_is_not_in_the_way_is_not_named(variables: dict[str, str]) -> None:
    """A provider's own address or a proxy elsewhere is fine; none is contacted."""
    [found] = check_variables(HOSTS, variables)
    assert found.status == "ok"


def test_a_local_proxy_that_is_not_there_is_a_warning() -> None:
    """A shell where `rewind env` was run, and no proxy: the live calls of a `rewind run` there would fail."""
    port = free_port()
    [found] = check_variables(HOSTS, {"HTTPS_PROXY": f"http://name:hidden@127.0.0.1:{port}"})
    assert f"127.0.0.1:{port}) does not answer" in found.detail
    assert "hidden" not in found.detail


def test_a_local_proxy_that_is_there_is_fine() -> None:
    """It is ours, or another that live calls go through."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        [found] = check_variables(HOSTS, {"HTTPS_PROXY": f"http://127.0.0.1:{listening.getsockname()[1]}"})
    assert found.status == "ok"


# Clients


def install(environ: dict[str, str], command: str, script: str) -> None:
    path = Path(environ["PATH"]) / command
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_clients_on_path_are_found_with_version_and_needs(environ: dict[str, str]) -> None:
    """In the order of the table; those that are not there are not listed."""
    install(environ, "claude", "echo '2.1.332 (Claude Code)'")
    install(environ, "codex", "echo codex-cli 0.171.0")
    found = installed_clients(environ)
    assert [(client.command, client.version, client.status) for client in found] == [
        ("codex", "0.171.0", "ok"),
        ("claude", "2.1.332", "ok"),
    ]
    assert "--no-daemon" in found[0].needs
    assert "settings.json" in found[1].needs


@pytest.mark.parametrize("script", ["exit 3", "exec >&-", "echo no number", "printf '\\377\\376'"])
def test_a_client_that_does_not_say_its_version_is_listed_without(
    script: str, environ: dict[str, str]
) -> None:
    """Whatever it does instead."""
    install(environ, "qwen", script)
    [found] = installed_clients(environ)
    assert (found.version, found.status) == ("", "ok")


def test_a_client_that_hangs_does_not_hang_doctor(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given up after a while."""
    monkeypatch.setattr(clients, "_TIMEOUT", 0.2)
    install(environ, "gemini", "exec /bin/sleep 30")
    [found] = installed_clients(environ)
    assert found.version == ""


@pytest.mark.parametrize(
    ("version", "proxied"),
    [
        ("18.20.4", False),
        ("20.19.0", False),
        ("22.20.0", False),
        ("22.21.0", True),
        ("23.11.0", False),
        ("24.0.0", True),
        ("25.1.0", True),
        ("", True),
    ],
)
def test_old_node_goes_past_any_proxy(version: str, proxied: bool) -> None:
    """Before 22.21 and 24, `NODE_USE_ENV_PROXY` is ignored (CLIENTS.md)."""
    node = next(client for client in CLIENTS if client.command == "node")
    assert goes_through_proxy(node, version) is proxied


def test_old_node_is_a_warning(environ: dict[str, str]) -> None:
    """It works for agents that bring their own proxy code, so it is not broken."""
    install(environ, "node", "echo v20.19.0")
    [found] = installed_clients(environ)
    assert found.status == "warn"
    assert found.needs.startswith("an update to 22.21+ or 24.0+: what is older goes past every proxy; ")
