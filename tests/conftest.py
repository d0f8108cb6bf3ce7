"""What all tests share. `support` is importable because pytest puts this folder on the path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings
from mitmproxy.certs import CertStore

# How long an example takes says more of the machine than of the code.
settings.register_profile("rewind", deadline=None)
# What CI looks at again on the second Python: there the interpreter is what is new, not the laws.
settings.register_profile("again", deadline=None, max_examples=20)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "rewind"))

# The npm clients are installed by scripts/test-clients and a browser by scripts/test-web, which say where.
_INSTALLED = {"clients_npm": "CLIENTS_FOLDER", "web": "CHROMIUM"}
collect_ignore = [folder for folder, where in _INSTALLED.items() if where not in os.environ]


@pytest.fixture(scope="session")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA for proxies that are started with mitmproxy's own command, made once."""
    folder = tmp_path_factory.mktemp("confdir")
    CertStore.from_store(folder, "mitmproxy", 2048)
    return folder
