"""The documents: their examples run, their links and pictures exist, their commands are real."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from merit.database import samples
from merit.strategy import STRATEGIES

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "assets").glob("*/README.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_two_commands_come_first() -> None:
    """The first thing a stranger reads is what to type."""
    assert README.index("make run\nmake test") < README.index("## ")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_the_python_examples_of_the_readme_run(code: str) -> None:
    """An example that nobody runs rots."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


ASKED = re.findall(r'^python -m merit ask --database (\w+) "([^"]+)"(.*)$', README, re.MULTILINE)


def test_the_readme_shows_the_command_line() -> None:
    """The parametrised check below would pass on nothing if the examples were written in another way."""
    assert len(ASKED) >= 2


@pytest.mark.parametrize(("database", "question", "options"), ASKED)
def test_the_ask_commands_of_the_readme_are_accepted(database: str, question: str, options: str) -> None:
    """The database, the question and the strategy of an example exist, so gold can judge it."""
    assert question in {known.text for known in samples.questions(database)}
    for name in re.findall(r"--strategy (\w+)", options):
        assert name in STRATEGIES


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_pictures_of_the_documents_exist(document: Path) -> None:
    """A picture that was renamed or a folder that moved left a dead link."""
    text = document.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    missing = [target for target in targets if "://" not in target and not os.path.exists(document.parent / target)]
    assert not missing
