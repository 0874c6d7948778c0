"""Databases made on the spot."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """Write a SQLite file from a script: ``build(script, name="made.sqlite")``."""

    def write(script: str, name: str = "made.sqlite") -> Path:
        path = tmp_path / name
        connection = sqlite3.connect(path)
        connection.executescript(script)
        connection.close()
        return path

    return write
