"""A real Chromium on the real app: one server with the embedded model, one with written answers, per session.

Without a browser the tests skip with the reason and the command that helps; with CI=true a run in which none of them
ran fails, so that a green CI means that they did.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from get_chromium import HELP, find

ROOT = Path(__file__).parents[2]
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
_ran = 0


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    global _ran
    if report.when == "call" and report.passed and "tests/browser/" in report.nodeid.replace(os.sep, "/"):
        _ran += 1


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With CI=true, selected browser tests of which not one ran are a failure, not a skip."""
    selected = any("tests/browser/" in item.nodeid.replace(os.sep, "/") for item in getattr(session, "items", []))
    if os.environ.get("CI", "").lower() == "true" and selected and not _ran and not session.exitstatus:
        print(f"\nCI=true, but no browser test ran: {HELP}.", file=sys.stderr)  # noqa: T201
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve(command: Callable[[int], list[str]], home: Path, **variables: str) -> Iterator[str]:
    """Run a server until the session ends; its address."""
    port = free_port()
    log = home / "server.log"
    environment = {**os.environ, "MERIT_HOME": str(home), "PYTHONPATH": str(ROOT), **variables}
    with log.open("wb") as out:
        process = subprocess.Popen(command(port), cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            _wait_until_healthy(process, port, log)
            yield f"http://localhost:{port}"
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_healthy(process: subprocess.Popen[bytes], port: int, log: Path, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"The app did not start:\n{log.read_text(errors='replace')[-3000:]}")


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app with written answers (see ``served``)."""
    yield from serve(
        lambda port: [sys.executable, "-m", "tests.browser.served", str(port), "0.03"],
        tmp_path_factory.mktemp("written"),
    )


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app as it is started by a person, on the embedded model; its files come from MERIT_TEST_HOME if set."""
    kept = os.environ.get("MERIT_TEST_HOME")
    home = Path(kept) if kept else tmp_path_factory.mktemp("embedded")
    home.mkdir(parents=True, exist_ok=True)
    yield from serve(
        lambda port: [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"],
        home,
        MERIT_MODEL="embedded",
        MERIT_ENCODER="embedded",
    )


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    path = find()
    if path is None:
        pytest.skip(f"no Chromium or Chrome that starts; {HELP}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def context(chromium):  # type: ignore[no-untyped-def]
    """A browser of its own with its own cookies; whatever a page does outside this machine fails the test."""
    opened = chromium.new_context(viewport={"width": 1280, "height": 900})
    opened.set_default_timeout(30_000)
    outside: list[str] = []
    opened.on("request", lambda sent: outside.append(sent.url) if _is_outside(sent.url) else None)
    yield opened
    opened.close()
    assert not outside, f"the page asked other machines: {outside}"


def _is_outside(url: str) -> bool:
    return url.startswith(("http:", "https:", "ws:")) and "//localhost" not in url


@pytest.fixture
def page(context):  # type: ignore[no-untyped-def]
    return context.new_page()
