"""The command line: the same verbs as the pages, without a browser.

Exit codes: 0 the answer was judged correct, 1 it was not (not solved, not judged, failed), 2 the command cannot be
run as it was given, 130 stopped. With ``--json`` each event is one line on standard output and nothing else is;
words for the person go to standard error.

What this module does not know: how an episode runs (``merit.live``), how text of an event reads (``merit.telling``).
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import merit
from merit import live, recordings, telling, trace
from merit.database import Database, samples
from merit.diagnosis import diagnose
from merit.episode import Outcome, Question, Status
from merit.errors import BadInput, DatabaseNotFound, MeritError, ModelUnavailable
from merit.events import (
    Cancelled,
    Diagnosed,
    EpisodeFinalised,
    Event,
    Executed,
    Failed,
    Judged,
    JudgementRequested,
)
from merit.judging import BY_DATABASE, DATABASE_NOT_FOUND
from merit.settings import settings
from merit.strategy import Scope, get
from merit.verification import (
    AssertionVerifier,
    ExecutionOnlyVerifier,
    PersonVerifier,
    SpiderVerifier,
    Verifier,
)

if TYPE_CHECKING:
    from merit.memory.store import MemoryStore
    from merit.models.language import LanguageModel

CORRECT, NOT_SOLVED, USAGE, STOPPED = 0, 1, 2, 130

app = typer.Typer(
    name="merit",
    help="Ask a database in plain words and watch every repair. Results, memory and recordings are kept in MERIT_HOME.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Judge(StrEnum):
    """Who says whether an answer is right."""

    GOLD = "gold"
    PERSON = "person"
    ASSERT = "assert"
    EXECUTION = "execution"


def main() -> None:
    """Run the command line; never returns."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except KeyboardInterrupt:
        _end("Stopped. Nothing was remembered.", STOPPED)
    except ModelUnavailable as error:
        _end(str(error), NOT_SOLVED)
    except BadInput as error:
        _end(str(error), USAGE)
    except MeritError as error:
        _end(str(error), USAGE if isinstance(error, KeyError) else NOT_SOLVED)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(merit.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and end.")
    ] = False,
) -> None:
    pass


@app.command()
def ask(
    database: Annotated[str, typer.Option("--database", "-d", help="Id of a sample database, or a path to a file.")],
    question: Annotated[str, typer.Argument(help="The question in plain words.")] = "",
    question_id: Annotated[str, typer.Option(help="Ask the sample question with this id instead.")] = "",
    evidence: Annotated[str, typer.Option(help="A hint that goes into the prompt.")] = "",
    strategy: Annotated[str, typer.Option("--strategy", "-s", help="How to repair.")] = "merit",
    scope: Annotated[Scope | None, typer.Option(help="Recall corrections of which databases.")] = None,
    verifier: Annotated[
        Judge | None,
        typer.Option(
            help="Who judges. Default: gold for a sample question, else you, or execution without a terminal."
        ),
    ] = None,
    budget: Annotated[int, typer.Option(min=0, help="Most repairs.")] = 7,
    model: Annotated[str, typer.Option(help="embedded, local:…, endpoint:…#…, auto. Default: MERIT_MODEL.")] = "",
    encoder: Annotated[str, typer.Option(help="The encoder of the memory. Default: MERIT_ENCODER.")] = "",
    seed: Annotated[int, typer.Option(help="Seed given to the model.")] = 0,
    initial: Annotated[str | None, typer.Option(help="SQL of a first answer that is already there.")] = None,
    expect_rows: Annotated[str | None, typer.Option(help="assert: the rows, as a JSON list of lists.")] = None,
    ordered: Annotated[bool, typer.Option("--ordered", help="assert: the order of the expected rows matters.")] = False,
    row_count: Annotated[int | None, typer.Option(min=0, help="assert: the number of rows.")] = None,
    value: Annotated[str | None, typer.Option(help="assert: the single value, as JSON or plain text.")] = None,
    condition: Annotated[str | None, typer.Option(help="assert: an SQL condition over the result.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One event as JSON on each line.")] = False,
) -> None:
    """Ask one question and watch it being answered, judged and repaired."""
    chosen = get(strategy)
    chosen = replace(chosen, scope=scope) if scope is not None else chosen
    show = _show_json if as_json else _show_text
    try:
        opened = open_database(database)
    except DatabaseNotFound as error:
        raise typer.Exit(_fold(_without_database(str(error)), show)) from None
    live.check_database(opened)
    asked = find_question(opened, question, question_id, evidence)
    judge = verifier or _default_judge(asked)
    judges: dict[Judge, Callable[[], Verifier]] = {
        Judge.GOLD: lambda: _gold(asked),
        Judge.PERSON: PersonVerifier,
        Judge.ASSERT: lambda: _assertion(expect_rows, row_count, value, condition, ordered),
        Judge.EXECUTION: ExecutionOnlyVerifier,
    }
    request = live.Request(asked, opened, chosen, judges[judge](), budget, "", seed, initial)
    language_model, store = _load(model, encoder)
    cancel = threading.Event()
    with _stop_on_interrupt(cancel):
        events = live.ask(request, language_model, store, cancel=cancel)
        code = _fold(_answered(events, request.verifier), show)
    raise typer.Exit(code)


@app.command()
def replay(
    recording: Annotated[str, typer.Argument(help="A bundle file, the name of a gallery recording, or an episode id.")],
    as_json: Annotated[bool, typer.Option("--json", help="One event as JSON on each line.")] = False,
) -> None:
    """Read a recorded episode. Nothing is asked, run or remembered."""
    bundle = _recording(recording)
    if not as_json:
        typer.echo(telling.plain(telling.recorded(bundle.header)), err=True)
    raise typer.Exit(_fold(bundle.events, _show_json if as_json else _show_text))


def _recording(spec: str) -> trace.Bundle:
    if Path(spec).is_file():
        return trace.read_bundle(Path(spec))
    if spec in {recording.name for recording in recordings.gallery()}:
        return recordings.load(spec)
    if spec.isalnum() and spec.isascii() and live.bundle_path(spec).is_file():
        return trace.read_bundle(live.bundle_path(spec))
    raise BadInput("There is no such file, no recording of this name in the gallery, and no episode with this id.")


@app.command()
def record(
    items: Annotated[Path, typer.Argument(help="A JSON list of sample questions; see docs/recordings.md.")],
    out: Annotated[Path, typer.Option(help="The folder for the bundles.")] = recordings.GALLERY,
    model: Annotated[str, typer.Option(help="embedded, local:…, endpoint:…#…, auto. Default: MERIT_MODEL.")] = "",
    encoder: Annotated[str, typer.Option(help="The encoder of the memory. Default: MERIT_ENCODER.")] = "",
) -> None:
    """Make a gallery: live the questions of a list over a memory of their own and write a bundle of each."""
    from merit import models

    wanted = recordings.read_list(items)
    say = _progress()
    language_model = models.load(model or settings().model, say)
    for item, header in recordings.make(
        wanted, language_model, models.load_encoder(encoder or settings().encoder, say), out
    ):
        name = item.name or f"({item.question_id}, not recorded)"
        ended = "" if header is None else f"{header.outcome or header.ended} after {header.repairs} repairs"
        typer.echo(telling.plain(f"{name}: {ended}" if ended else name))


@app.command()
def fetch() -> None:
    """Fetch and convert the embedded models, so that a later start needs no network."""
    from merit.models import embedded, encoder

    say = _progress()
    embedded.fetch(say)
    encoder.fetch(say)


def open_database(spec: str) -> Database:
    """A sample database by its id, or any SQLite file by its path."""
    if spec in samples.ids():
        return Database.open(samples.path(spec), id=spec)
    try:
        return Database.open(Path(spec))
    except DatabaseNotFound as error:
        raise DatabaseNotFound(f"{error} Sample databases: {', '.join(samples.ids())}.") from None


def find_question(database: Database, text: str, question_id: str, evidence: str) -> Question:
    """The sample question with this id or text if there is one, else the typed question; ``BadInput`` if neither."""
    known = samples.questions(database.id) if _is_sample(database) else []
    if question_id:
        for question in known:
            if question.question_id == question_id:
                return question
        raise BadInput(f"The database {database.id} has no sample question with the id {question_id!r}.")
    typed = live.make_question(text, database.id, evidence)
    for question in known:
        if question.text.strip() == typed.text and typed.evidence in ("", question.evidence.strip()):
            return question
    return typed


def _is_sample(database: Database) -> bool:
    return database.id in samples.ids() and Path(database.path).resolve() == samples.path(database.id).resolve()


def _default_judge(question: Question) -> Judge:
    if question.gold_sql is not None:
        return Judge.GOLD
    return Judge.PERSON if sys.stdin.isatty() else Judge.EXECUTION


def _gold(question: Question) -> Verifier:
    if question.gold_sql is None:
        raise BadInput(
            "Only the sample questions of a sample database have a known answer. Type one of them exactly, give its "
            "--question-id, or choose another --verifier: person, assert or execution."
        )
    return SpiderVerifier(official=False)


def _assertion(
    rows: str | None, row_count: int | None, value: str | None, condition: str | None, ordered: bool
) -> Verifier:
    return AssertionVerifier(
        rows=None if rows is None else _rows(rows),
        row_count=row_count,
        value=None if value is None else _json_or_text(value),
        condition=condition,
        ordered=ordered,
    )


def _rows(text: str) -> list[tuple[Any, ...]]:
    rows = _json_or_text(text)
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise BadInput('The expected rows are a JSON list of lists, such as [["tea", 3.5], ["jam", 4.25]].')
    return [tuple(row) for row in rows]


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _load(model: str, encoder: str) -> tuple[LanguageModel, MemoryStore]:
    from merit import models
    from merit.memory.store import MemoryStore

    say = _progress()
    say("Loading the model …", None)
    language_model = models.load(model or settings().model, say)
    loaded_encoder = models.load_encoder(encoder or settings().encoder, say)
    return language_model, MemoryStore.open(settings().memory_uri, loaded_encoder)


def _progress() -> Callable[[str, float | None], None]:
    """Says on standard error what is being done, once for each step."""
    said: list[str] = []

    def say(message: str, _fraction: float | None) -> None:
        if said[-1:] != [message]:
            said.append(message)
            typer.echo(telling.plain(message), err=True)

    return say


def _without_database(sentence: str) -> Iterator[Event]:
    """What any statement over a missing database comes to (rule 11), without asking a model for one."""
    found = diagnose(Outcome.EXECUTION_ERROR, DATABASE_NOT_FOUND)
    yield Executed(0, Status.EXECUTION_ERROR, (), (), 0, False, DATABASE_NOT_FOUND, 0.0)
    yield Judged(0, Outcome.EXECUTION_ERROR, BY_DATABASE)
    yield Diagnosed(0, found.failure_type, found.subtype, found.rule, DATABASE_NOT_FOUND)
    yield Failed(sentence)


def _answered(events: Iterable[Event], verifier: Any) -> Iterator[Event]:
    """Pass the events on; where a person is asked, ask at the terminal."""
    for event in events:
        yield event
        if isinstance(event, JudgementRequested):
            verifier.answer(_person_says())


def _person_says() -> str:
    answers = {"y": "yes", "yes": "yes", "n": "no", "no": "no", "s": "stop", "stop": "stop"}
    while True:
        typer.echo("    Is this what you meant? [y]es, [n]o, [s]top: ", err=True, nl=False)
        line = sys.stdin.readline()
        if not line:
            return "stop"
        if line.strip().lower() in answers:
            return answers[line.strip().lower()]


def _fold(events: Iterable[Event], show: Callable[[Event], None]) -> int:
    """Show every event; the exit code of the last."""
    code = NOT_SOLVED
    for event in events:
        show(event)
        if isinstance(event, EpisodeFinalised):
            code = CORRECT if event.outcome is Outcome.CORRECT else NOT_SOLVED
        elif isinstance(event, Cancelled):
            code = STOPPED
    return code


def _show_json(event: Event) -> None:
    print(trace.to_line(trace.trimmed(event)), flush=True)


def _show_text(event: Event) -> None:
    lines = telling.tell(event)
    if lines:
        print(lines, flush=True)


@contextmanager
def _stop_on_interrupt(cancel: threading.Event) -> Iterator[None]:
    """The first Ctrl-C asks the episode to stop, so that it ends as Cancelled; a second one ends at once."""

    def interrupted(_number: int, _frame: object) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(sentence: str, code: int) -> NoReturn:
    print(telling.plain(sentence), file=sys.stderr)
    raise SystemExit(code)
