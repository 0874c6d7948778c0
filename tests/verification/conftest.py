"""The fixture that every verifier's test uses."""

from __future__ import annotations

from pathlib import Path

import pytest
from verification_support import make

from merit.database import Database


@pytest.fixture
def boats(tmp_path: Path) -> Database:
    """Four boats; the file stands alone, so it is the only one that is compared on."""
    return make(tmp_path / "boats.sqlite")
