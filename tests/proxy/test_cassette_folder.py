"""A proxy and its folder of cassettes: what is deleted in the one is not there in the other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from porting.stores import NOW, chat, export, heard, opened, put
from rewind_proxy.mitm.runtime import Runtime
from rewind_proxy.porting.folder import write
from rewind_proxy.settings import Settings
from rewind_proxy.store.records import CassetteRecord, StepRecord
from rewind_proxy.wire import HostTable

SECRET = "corp-" + "0123456789abcdef" * 2


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a store of two recordings, and both in its folder."""
    with opened(tmp_path) as (into, chosen):
        put(into, chosen, [heard(chat(SECRET)), heard(chat("two"), at=NOW + 1)])
        write(tmp_path / "cassettes", export(into), whole=True)
    return tmp_path


@contextmanager
def running(project: Path, *patterns: str) -> Iterator[Runtime]:
    """What a proxy has open there."""
    settings = Settings(
        mode="auto", store=project / "store", cassettes=project / "cassettes", redact_patterns=patterns
    )
    runtime = Runtime(settings, HostTable({}), lambda _done, _total: None)
    yield runtime
    runtime.close(NOW + 9)


def texts(project: Path) -> list[str]:
    """What the files hold."""
    return [file.read_text(encoding="utf-8") for file in sorted((project / "cassettes").rglob("*.json"))]


def step_of(runtime: Runtime, record: CassetteRecord) -> StepRecord:
    """A call that a recording answered."""
    normalised = runtime.engine.reader.keys_of(record, runtime.store.request_body(record))[0]
    return StepRecord.model_validate(
        {
            "run": "20261130-100000-bbbb",
            "number": 1,
            "started_at": NOW,
            "tier": "exact",
            "exact": record.exact,
            "normalised": normalised,
            "cassette": record.id,
            "method": record.request.method,
            "host": record.request.host,
            "path": record.request.path,
        }
    )


def test_what_is_forgotten_is_not_read_in_again(project: Path) -> None:
    """Its file goes when the proxy ends, and no other."""
    with running(project) as runtime:
        first, _ = runtime.store.cassettes()
        assert runtime.forget([step_of(runtime, first)]) == (1, 0)
    [left] = texts(project)
    assert '"two"' in left
    with running(project) as runtime:
        assert runtime.store.count() == 1


def test_a_proxy_with_a_longer_list_redacts_the_folder(project: Path) -> None:
    """As it does the store, when it starts."""
    assert any(SECRET in text for text in texts(project))
    with running(project, "corp-[0-9a-f]{32}"):
        assert len(texts(project)) == 2
        assert not any(SECRET in text for text in texts(project))


def test_a_fresh_store_with_a_longer_list_redacts_the_folder(project: Path) -> None:
    """It never was without the rule; the files that came with the project were."""
    shutil.rmtree(project / "store")
    shutil.rmtree(project / "store.log")
    with running(project, "corp-[0-9a-f]{32}") as runtime:
        assert runtime.store.count() == 2
        assert len(texts(project)) == 2
        assert not any(SECRET in text for text in texts(project))


def test_a_folder_without_a_credential_stays_as_it_is(project: Path) -> None:
    """Reading it in writes nothing, whatever another version would write."""
    [*files] = (project / "cassettes").rglob("*.json")
    for file in files:
        file.rename(file.with_name(f"named-by-hand-{file.name}"))
    shutil.rmtree(project / "store")
    with running(project) as runtime:
        assert runtime.store.count() == 2
    assert all(file.name.startswith("named-by-hand") for file in (project / "cassettes").rglob("*.json"))


def test_a_folder_that_cannot_be_written_costs_no_replay(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said that the files are as they were."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with running(project, "corp-[0-9a-f]{32}") as runtime:
        assert runtime.store.count() == 2
    assert "are not redacted by the longer list" in caplog.text
