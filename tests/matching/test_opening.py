"""A store that cannot be opened for a proxy is said in a sentence, whatever stands in the way."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from rewind_proxy.errors import StoreError
from rewind_proxy.matching.opening import open_ready
from rewind_proxy.settings import Settings
from rewind_proxy.wire import HostTable


@pytest.mark.parametrize("mode", ["auto", "replay"])
def test_a_folder_that_may_not_be_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Root may look everywhere, so the refusal is made here; replay, which would only read, says the same."""
    store = tmp_path / "shut" / "store"

    def refuse(path: Path, *_: object, **__: object) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(Path, "exists", refuse)
    monkeypatch.setattr("os.stat", refuse)
    said = rf"^{store} may not be written or read by this user: change its mode \(Permission denied\)$"
    with pytest.raises(StoreError, match=said):
        open_ready(
            Settings.model_validate({"store": store, "mode": mode}),
            HostTable({}),
            lambda _: lambda _done, _total: None,
        )
