"""Serve the real app on a model that tells written stories: for browser tests and pictures, the same each time.

Run as a process: ``python -m tests.browser.served PORT [SECONDS_PER_WORD]``. Only the loading of the model is
replaced, in this process; page, jobs, loop, database and memory are the product's.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Sequence

from merit.models import loading
from merit.models.language import CANCELLED, Completion, ModelInfo
from merit.models.loading import State
from tests.support import HashEncoder, answer

STORIES: dict[str, tuple[str, ...]] = {
    "Who wrote The Long River?": (
        "SELECT author.name FROM book WHERE book.title = 'The Long River'",
        "SELECT name FROM author WHERE name = 'The Long River'",
        "SELECT author.name FROM author JOIN book ON author.author_id = book.author_id "
        "WHERE book.title = 'The Long River'",
    ),
    "Which reading groups come together in the Market Square branch?": (
        "SELECT branch.name FROM \"reading group\" WHERE branch.name = 'Market Square'",
        'SELECT "reading group".name FROM "reading group" JOIN branch '
        "ON \"reading group\".branch_id = branch.branch_id WHERE branch.name = 'Market Square'",
    ),
    "How many copies does each branch own? Show the name of the branch and the count.": (
        "SELECT branch.name, COUNT(*) FROM copy GROUP BY branch.name",
        "SELECT branch_id, COUNT(*) FROM copy GROUP BY branch_id",
        "SELECT branch.name, COUNT(*) FROM branch JOIN copy ON branch.branch_id = copy.branch_id GROUP BY branch.name",
    ),
    "Who belongs to the reading group Crime after dark?": (
        'SELECT member.name FROM "group member" WHERE "reading group".name = \'Crime after dark\'',
        'SELECT member.name FROM member JOIN "group member" ON member.member_id = "group member".member_id '
        "WHERE \"reading group\".name = 'Crime after dark'",
        'SELECT DISTINCT member.name FROM member, "reading group" WHERE "reading group".name = \'Crime after dark\'',
        'SELECT member.name FROM member JOIN "group member" ON member.member_id = "group member".member_id '
        'JOIN "reading group" ON "group member".group_id = "reading group".group_id '
        "WHERE \"reading group\".name = 'Crime after dark'",
    ),
    "How many members does the library have?": ("SELECT COUNT(*) FROM member",),
    "Show me who joined lately": (
        "SELECT name, joined_on FROM member ORDER BY joined_on DESC LIMIT 8",
        "SELECT name, town, joined_on FROM member WHERE SUBSTR(joined_on, 7, 4) >= '2023' "
        "ORDER BY SUBSTR(joined_on, 7, 4) DESC, SUBSTR(joined_on, 4, 2) DESC LIMIT 8",
    ),
    "Take your time": ("SELECT " + " + ".join(str(number) for number in range(400)),),
}
"""Question → the answers, one for each attempt; the last repeats."""
BREAKS = "What breaks here?"
"""The question at which the model fails."""
OTHER = (
    "SELECT name FROM member ORDER BY name LIMIT 5",
    "SELECT name, town FROM member ORDER BY name LIMIT 5",
    "SELECT name, town, email FROM member ORDER BY name LIMIT 5",
)


class Storyteller:
    """Answers the n-th attempt at a known question with its n-th SQL, word by word, ``seconds_per_word`` each."""

    id = "storyteller"
    context_tokens = 2048
    info = ModelInfo("Storyteller (written answers, for tests and pictures)")
    tokens_per_second = 21.0

    def __init__(self, seconds_per_word: float) -> None:
        self._pause = seconds_per_word

    def count_tokens(self, text: str) -> int:
        return len(re.findall(r"\w+|[^\w\s]", text))

    def complete(
        self,
        prompts: Sequence[str],
        max_new_tokens: int = 512,
        *,
        system: str | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
        stream: Callable[[int, str], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> list[Completion]:
        return [self._one(index, prompt, stream, cancel) for index, prompt in enumerate(prompts)]

    def _one(
        self, index: int, prompt: str, stream: Callable[[int, str], None] | None, cancel: threading.Event | None
    ) -> Completion:
        question = prompt.split("\nQUESTION:\n", 1)[1].split("\n", 1)[0]
        if question == BREAKS:
            raise ConnectionError("the story of this question is that it breaks")
        attempt = prompt.count("— observed unsuccessful]")
        story = STORIES.get(question, OTHER)
        text = answer(story[min(attempt, len(story) - 1)])
        said = ""
        for piece in re.findall(r"\s*\S+", text):
            if cancel is not None and cancel.is_set():
                return Completion(said, self.count_tokens(prompt), self.count_tokens(said), CANCELLED)
            time.sleep(self._pause)
            said += piece
            if stream is not None:
                stream(index, piece)
        return Completion(said, self.count_tokens(prompt), self.count_tokens(said))


class Loaded:
    """A loading that is over, or one that failed and succeeds when it is tried again."""

    message, fraction, elapsed_s = "ready", 1.0, 0.1

    def __init__(self, seconds_per_word: float) -> None:
        self.state, self.error = State.READY, None
        self.model, self.encoder = Storyteller(seconds_per_word), HashEncoder()


def main() -> None:
    from streamlit.web import bootstrap

    port = int(sys.argv[1])
    loaded = Loaded(float(sys.argv[2]) if len(sys.argv) > 2 else 0.02)
    loading.start = lambda *_: loaded  # type: ignore[assignment, return-value]
    options = {"server_port": port, "server_headless": True}
    bootstrap.load_config_options(options)
    bootstrap.run("app.py", False, [], options)


if __name__ == "__main__":
    main()
