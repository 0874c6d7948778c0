"""Every test has a home of its own: no cache, memory, upload or setting of the machine is read or written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from merit.settings import settings


@pytest.fixture(autouse=True)
def merit_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty MERIT_HOME, no other MERIT_* variable of the product, and settings read anew."""
    for name in [name for name in os.environ if name.startswith("MERIT_") and not name.startswith("MERIT_TEST_")]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("MERIT_HOME", str(home))
    settings.cache_clear()
    yield home
    settings.cache_clear()
