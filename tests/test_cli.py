"""The command line: the same events as text and as JSON, and an exit code that tells the end."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import HashEncoder, ScriptedModel, answer, build_database, build_shop

import merit
from merit import cli, live, trace
from merit.database import samples
from merit.episode import Outcome
from merit.events import Diagnosed, EpisodeFinalised, EpisodeStarted, Event, Executed, Failed, Judged
from merit.settings import settings
from merit.strategy import STRATEGIES

REPOSITORY = Path(__file__).parents[1]
SAMPLE = "library"
RIGHT, WRONG = answer("SELECT name FROM product WHERE price > 3"), answer("SELECT name FROM product")


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def events(self) -> list[Event]:
        return [trace.from_json(json.loads(line)) for line in self.out.splitlines()]


@pytest.fixture
def shop(tmp_path: Path) -> str:
    return str(build_shop(tmp_path / "my shop.sqlite"))


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run ``python -m merit`` in this process on a scripted model; ``typed`` is standard input."""

    def run(*arguments: str, model: ScriptedModel | None = None, typed: str = "") -> Ended:
        monkeypatch.setattr("merit.models.load", lambda spec, say: model or ScriptedModel())
        monkeypatch.setattr("merit.models.load_encoder", lambda spec, say: HashEncoder())
        monkeypatch.setattr(sys, "argv", ["merit", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return run


# How it ends


def test_a_correct_answer_ends_with_0(command: Any, shop: str) -> None:
    ended = command("ask", "-d", shop, "Which?", "--verifier", "assert", "--row-count", "2", model=ScriptedModel(RIGHT))
    assert ended.code == 0
    assert "Finished: CORRECT after 0 repairs. Nothing was remembered." in ended.out


def test_a_wrong_answer_ends_with_1(command: Any, shop: str) -> None:
    ended = command("ask", "-d", shop, "Which?", "--verifier", "assert", "--row-count", "2", "--budget", "1",
                    model=ScriptedModel(WRONG, WRONG))  # fmt: skip
    assert ended.code == 1
    assert "One entry was remembered (negative, Result Mismatch). It can help from position 1 on." in ended.out


def test_what_nobody_judged_is_not_solved(command: Any, shop: str) -> None:
    ended = command("ask", "-d", shop, "Which?", "--verifier", "execution", model=ScriptedModel(RIGHT))
    assert (ended.code, "NOT_JUDGED" in ended.out) == (1, True)


def test_a_model_that_fails_ends_with_1_and_a_sentence(command: Any, shop: str) -> None:
    ended = command("ask", "-d", shop, "Which?", "--verifier", "execution", model=ScriptedModel(OSError("x")))
    assert (ended.code, "Failed: The model failed with OSError" in ended.out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["Which?", "--strategy", "magic"], "Known strategies: iterative, merit"),
        (["Which?", "--verifier", "gold"], "sample questions"),
        (["Which?", "--verifier", "oracle"], "Invalid value"),
        (["Which?", "--verifier", "assert"], "Say what the result should be"),
        (["Which?", "--verifier", "assert", "--expect-rows", "5"], "JSON list of lists"),
        (["Which?", "--budget", "-1"], "Invalid value"),
        ([""], "type a question"),
        (["   "], "type a question"),
        (["x" * 10_000], "10,000 characters"),
        (["--question-id", "none"], "no sample question"),
        (["Which?", "--evidence", "y" * 10_000], "hint has"),
    ],
)
def test_what_cannot_be_run_ends_with_2_and_a_sentence(
    command: Any, shop: str, arguments: list[str], says: str
) -> None:
    ended = command("ask", "-d", shop, *arguments)
    assert ended.code == 2
    assert says in " ".join(ended.err.replace("│", " ").split())
    assert "Traceback" not in ended.err
    assert ended.out == ""


def test_a_file_that_is_no_database_or_has_no_tables_ends_with_a_sentence(command: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.sqlite").write_text("just text")
    empty = build_database(tmp_path / "empty.sqlite", "CREATE TABLE t (a)", "DROP TABLE t")
    for path, says in ((tmp_path / "notes.sqlite", ""), (empty, "has no tables"), (tmp_path, "folder")):
        ended = command("ask", "-d", str(path), "Which?")
        assert ended.code in (1, 2)
        assert says in ended.err
        assert len(ended.err.strip().splitlines()) == 1


def test_a_missing_database_is_an_execution_error_and_asks_no_model(command: Any, tmp_path: Path) -> None:
    ended = command("ask", "-d", str(tmp_path / "gone.sqlite"), "Which?", "--json")
    assert ended.code == 1
    executed, judged, diagnosed, failed = ended.events
    assert isinstance(executed, Executed)
    assert executed.error == "database not found"
    assert isinstance(judged, Judged)
    assert isinstance(diagnosed, Diagnosed)
    assert diagnosed.rule == 11
    assert isinstance(failed, Failed)
    assert "library" in failed.reason


def test_the_version(command: Any) -> None:
    ended = command("--version")
    assert (ended.code, ended.out.strip()) == (0, merit.__version__)


def test_fetch_fetches_both_embedded_models_and_says_each_step_once(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetched(name: str) -> Callable[..., None]:
        def fetch(progress: Callable[[str, float | None], None]) -> None:
            for fraction in (0.1, 0.5, None):
                progress(f"Fetching the {name}", fraction)

        return fetch

    monkeypatch.setattr("merit.models.embedded.fetch", fetched("model"))
    monkeypatch.setattr("merit.models.encoder.fetch", fetched("encoder"))
    ended = command("fetch")
    assert (ended.code, ended.err) == (0, "Fetching the model\nFetching the encoder\n")


# What it says


def test_json_lines_are_the_events_and_nothing_else(command: Any, shop: str) -> None:
    arguments = ("ask", "-d", shop, "Which?", "--verifier", "assert", "--row-count", "2", "--json")
    ended = command(*arguments, model=ScriptedModel(WRONG, RIGHT))
    assert ended.code == 0
    events = ended.events
    assert isinstance(events[0], EpisodeStarted)
    assert isinstance(events[-1], EpisodeFinalised)
    kept = [event for event in events if type(event).__name__ != "TokenStreamed"]
    assert list(live.load(events[0].episode_id, "")) == kept
    assert live.history("")[0].outcome is Outcome.CORRECT


def test_text_tells_every_step(command: Any, shop: str) -> None:
    model = ScriptedModel(answer("SELECT title FROM product"), RIGHT)
    ended = command("ask", "-d", shop, "Which cost more?", "--verifier", "assert", "--row-count", "2",
                    "--evidence", "more than 3", model=model)  # fmt: skip
    for part in (
        "Question   Which cost more?\nHint       more than 3\nDatabase   my shop\n",
        "First answer",
        "    SELECT title FROM product\n    EXECUTION_ERROR: no such column: title\n",
        "Diagnosed as Schema Linking, Missing Column (rule 3)",
        "Recalled from memory: nothing is legal",
        "Repair 1",
        "    2 rows in 0.0",
        "    name\n    tea\n    jam\n",
        "Finished: CORRECT after 1 repair. One entry was remembered (positive, Schema Linking).",
    ):
        assert part in ended.out
    assert "oracle" not in ended.out


def test_control_characters_of_a_model_do_not_reach_the_terminal(command: Any, shop: str) -> None:
    model = ScriptedModel(answer("SELECT '\x1b]0;owned\x07' AS \"\x1b[2J\""))
    ended = command("ask", "-d", shop, "Which?", "--verifier", "execution", model=model)
    assert "\x1b" not in ended.out
    assert "\\x1b]0;owned\\x07" in ended.out


def test_memory_lasts_from_one_command_to_the_next(command: Any, shop: str) -> None:
    arguments = ("ask", "-d", shop, "--verifier", "assert", "--row-count", "2")
    command(*arguments, "First?", model=ScriptedModel(answer("SELECT title FROM product"), RIGHT))
    ended = command(*arguments, "Second?", model=ScriptedModel(answer("SELECT titel FROM product"), RIGHT))
    assert "Memory     position 1" in ended.out
    assert "Recalled from memory: 1 that worked, 0 that failed" in ended.out


# Who judges


def test_a_sample_question_is_judged_by_gold_and_says_so(command: Any) -> None:
    question = samples.questions(SAMPLE)[0]
    assert question.gold_sql is not None
    for arguments in ([question.text], ["--question-id", question.id]):
        ended = command("ask", "-d", SAMPLE, *arguments, model=ScriptedModel(answer(question.gold_sql)))
        assert ended.code == 0
        assert "oracle-assisted" in ended.out
        assert question.text in ended.out


def test_a_copy_of_a_sample_database_has_no_known_answers(command: Any, tmp_path: Path) -> None:
    """The file may have been changed, so the answers on record need not be right for it."""
    copy = tmp_path / f"{SAMPLE}.sqlite"
    copy.write_bytes(samples.path(SAMPLE).read_bytes())
    ended = command("ask", "-d", str(copy), samples.questions(SAMPLE)[0].text, "--verifier", "gold")
    assert ended.code == 2


def test_a_person_answers_at_the_terminal(command: Any, shop: str) -> None:
    model = ScriptedModel(answer("SELECT nothing"), WRONG, RIGHT)
    ended = command("ask", "-d", shop, "Which?", "--verifier", "person", "--json", model=model, typed="what\nN\nyes\n")
    assert ended.code == 0
    assert [event.outcome for event in ended.events if isinstance(event, Judged)] == [
        Outcome.EXECUTION_ERROR, Outcome.DENOTATION_MISMATCH, Outcome.CORRECT,
    ]  # fmt: skip
    assert ended.err.count("Is this what you meant?") == 3


@pytest.mark.parametrize("typed", ["s\n", ""])
def test_a_person_who_stops_or_leaves_ends_with_130(command: Any, shop: str, typed: str) -> None:
    ended = command("ask", "-d", shop, "Which?", "--verifier", "person", model=ScriptedModel(WRONG), typed=typed)
    assert (ended.code, "Stopped. Nothing was remembered." in ended.out) == (130, True)


@pytest.mark.parametrize(
    ("option", "value", "code"),
    [
        ("--expect-rows", '[["tea"], ["jam"]]', 0),
        ("--expect-rows", '[["tea"]]', 1),
        ("--row-count", "2", 0),
        ("--row-count", "3", 1),
    ],
)
def test_an_assertion_judges(command: Any, shop: str, option: str, value: str, code: int) -> None:
    ended = command("ask", "-d", shop, "Which?", "--verifier", "assert", option, value, "--budget", "0",
                    model=ScriptedModel(RIGHT))  # fmt: skip
    assert ended.code == code


@pytest.mark.parametrize(("value", "code"), [("3", 0), ("4", 1), ("tea", 1)])
def test_a_value_is_read_as_json_or_else_as_text(command: Any, shop: str, value: str, code: int) -> None:
    ended = command("ask", "-d", shop, "How many?", "--verifier", "assert", "--value", value, "--budget", "0",
                    model=ScriptedModel(answer("SELECT count(*) FROM product")))  # fmt: skip
    assert ended.code == code


# Choices


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_every_strategy_name_runs_from_the_command_line(command: Any, shop: str, name: str) -> None:
    def wrong(prompt: str, cancel: object) -> str:
        return "<reflection>hm</reflection>" if "-reflection-" in prompt else WRONG

    model = ScriptedModel(*[wrong] * 4)
    ended = command("ask", "-d", shop, "Which?", "-s", name, "--verifier", "assert", "--row-count", "99",
                    "--budget", "1", model=model)  # fmt: skip
    assert ended.code == 1
    assert f"Strategy   {name}, " in ended.out
    assert "Finished: DENOTATION_MISMATCH" in ended.out


def test_scope_seed_and_first_answer_are_passed_on(command: Any, shop: str) -> None:
    model = ScriptedModel(RIGHT)
    ended = command("ask", "-d", shop, "Which?", "--scope", "same", "--seed", "5", "--initial", "SELECT nothing",
                    "--verifier", "assert", "--row-count", "2", "--json", model=model)  # fmt: skip
    started = ended.events[0]
    assert isinstance(started, EpisodeStarted)
    assert (started.scope, started.seed) == ("same", 5)
    assert len(model.history) == 1
    assert model.history[0].seed == 5


def test_model_and_encoder_specs_come_from_options_or_settings(
    command: Any, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MERIT_MODEL", "local:from-settings")
    settings.cache_clear()
    asked: list[str] = []
    command("ask", "-d", shop, "Which?", "--verifier", "execution", model=ScriptedModel(RIGHT))
    monkeypatch.setattr("merit.models.load", lambda spec, say: asked.append(spec) or ScriptedModel(RIGHT))
    for arguments in ([], ["--model", "embedded"]):
        monkeypatch.setattr(sys, "argv", ["merit", "ask", "-d", shop, "Which?", "--verifier", "execution", *arguments])
        with pytest.raises(SystemExit):
            cli.main()
    assert asked == ["local:from-settings", "embedded"]


# Ctrl-C, in a process of its own

# A shell that starts the tests in the background has them ignore Ctrl-C, and a child would inherit that.
DRIVER = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path[:0] = [{tests!r}, {repository!r}]
import merit.models as models
from support import HashEncoder, ScriptedModel
def slowly(prompt, cancel):
    print("generating", file=sys.stderr, flush=True)
    cancel.wait(30)
    return "SELECT 1"
def load(spec, say):
    if spec == "slow":
        print("loading", file=sys.stderr, flush=True)
        time.sleep(30)
    return ScriptedModel("SELECT 1" if spec == "quick" else slowly)
models.load, models.load_encoder = load, lambda spec, say: HashEncoder()
from merit.cli import main
main()
"""


@pytest.mark.parametrize(
    ("model", "moment", "ends_with"),
    [("listens", "generating", "Cancelled"), ("slow", "loading", None), ("quick", "what you meant?", "Cancelled")],
)
def test_ctrl_c_ends_with_130_at_any_moment(shop: str, model: str, moment: str, ends_with: str | None) -> None:
    script = DRIVER.format(tests=str(REPOSITORY / "tests"), repository=str(REPOSITORY))
    arguments = ["ask", "-d", shop, "Which?", "--verifier", "person", "--json", "--model", model]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"MERIT_HOME": str(settings().home)},
    )
    try:
        assert process.stderr is not None
        said = b""
        while moment.encode() not in said:
            piece = os.read(process.stderr.fileno(), 4096)
            assert piece, said
            said += piece
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        since = time.monotonic()
        out, err = process.communicate(timeout=20)
        assert process.returncode == 130, err
        assert time.monotonic() - since < 5
        assert b"Traceback" not in err
        last = json.loads(out.splitlines()[-1]) if out else None
        assert (last and last["event"]) == ends_with
    finally:
        process.kill()
        process.communicate()


# Recordings


def test_a_recording_is_read_again_as_it_was_told(command: Any, shop: str) -> None:
    asked = command("ask", "-d", shop, "Which?", "--verifier", "assert", "--row-count", "2", "--initial",
                    "SELECT name FROM product WHERE price > 3")  # fmt: skip
    (bundle,) = settings().episodes_dir.glob("*.jsonl")
    for spec in (str(bundle), bundle.stem):
        again = command("replay", spec)
        assert (again.code, again.out) == (asked.code, asked.out)
        assert "RECORDED" in again.err
        assert "first answer given, not generated" in again.err
    events = command("replay", str(bundle), "--json").events
    assert events == list(trace.read_bundle(bundle).events)


@pytest.mark.parametrize("spec", ["https://example.org/x.jsonl", "nothing-here", "../x", "0" * 32])
def test_a_recording_that_is_not_here_gets_a_sentence(command: Any, spec: str) -> None:
    ended = command("replay", spec)
    assert ended.code == 2
    assert "no such file, no recording of this name" in ended.err


def test_a_gallery_is_made_from_a_list(command: Any, tmp_path: Path) -> None:
    question = samples.questions(SAMPLE)[0]
    items = tmp_path / "list.json"
    items.write_text(json.dumps([{"database": SAMPLE, "question_id": question.question_id, "name": "one"}]))
    model = ScriptedModel(answer(str(question.gold_sql)))
    ended = command("record", str(items), "--out", str(tmp_path / "gallery"), model=model)
    assert (ended.code, ended.out) == (0, "one: CORRECT after 0 repairs\n")
    assert command("replay", str(tmp_path / "gallery" / "one.jsonl")).code == 0
    items.write_text("[{}]")
    assert command("record", str(items)).code == 2
