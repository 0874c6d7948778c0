"""Find a Chromium or Chrome, or install one where that is safe: as root on Debian or Ubuntu, in a container or CI.

Never fails: without a browser the browser tests skip with the reason (and with CI=true they fail, see conftest).
What this script does not know: the tests. ``find()`` is what they call.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HELP = "install Chromium or Chrome (Debian or Ubuntu: apt-get install chromium), then run make test again"


def works(path: str) -> bool:
    """Whether the file starts: Ubuntu ships a placeholder of this name that does not."""
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def find() -> str | None:
    """Path of a browser that starts: CHROMIUM, then the usual names, then one that playwright holds."""
    named = os.environ.get("CHROMIUM")
    candidates = [named] if named else [path for name in NAMES if (path := shutil.which(name))]
    if not named:
        cache = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache" / "ms-playwright"))
        candidates += [str(path) for path in sorted(cache.glob("chromium-*/chrome-linux*/chrome"))]
    return next((path for path in candidates if works(path)), None)


def install() -> None:
    """Install by apt, else by playwright's own download. Output goes to the terminal."""
    if shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], env=environment, check=False)
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=False,
        )
    if find() is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "--with-deps", "chromium"], check=False)


def main() -> None:
    """Say what was found or done."""
    if find() is None and sys.platform == "linux" and hasattr(os, "geteuid") and os.geteuid() == 0:
        sys.stdout.write("No Chromium found: installing one for the browser tests.\n")
        install()
    path = find()
    sys.stdout.write(
        f"Browser for the tests: {path}\n" if path else f"No browser: those tests skip. To run them, {HELP}.\n"
    )


if __name__ == "__main__":
    main()
