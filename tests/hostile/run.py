"""Let the hostile files and statements loose on the product and print what came of them.

    python -m tests.hostile.run --deadline 2

A file is uploaded as a person would, then everything a page shows of a database is asked of it; links and logs are
opened where they lie. Statements run on a small database. Watched: exceptions that are no sentence, bytes that
changed, files that appeared, time beyond the deadline, memory of the workers. What takes longer than it may while
others run is run again alone: then it must keep to its time.
"""

# ruff: noqa: T201 (printing the table is its work)

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from merit.database import Database, check_upload, conversion, execution, samples, uploads
from merit.database.diagram import diagram
from merit.database.health import health
from merit.database.suggestions import suggest_questions
from merit.database.worker import MEMORY_BYTES
from merit.episode import Status
from merit.errors import MeritError
from merit.settings import settings
from tests.hostile.files import ORDINARY, HostileFile, built, files
from tests.hostile.statements import Statement, statements

TABLES_LOOKED_AT = 4
WORDS = (
    "CREATE VIRTUAL TABLE words USING fts5(a); INSERT INTO words VALUES('word');"
    "CREATE TABLE seq(a INTEGER PRIMARY KEY AUTOINCREMENT);"
)
EXPECTED_STATUS = frozenset({Status.EXECUTED, Status.EXECUTION_ERROR, Status.TIMEOUT})
OPENING_TAKES_AT_MOST_S = 40.0
"""Schema of a file with exploding views: what ``schema`` and ``upload`` grant in all, and a conversion."""


@dataclass
class Outcome:
    """What came of one file (``sentence`` "" when it was taken) or one statement (``status``)."""

    kind: str
    name: str
    seconds: float = 0.0
    sentence: str = ""
    status: str = ""
    faults: list[str] = field(default_factory=list)


@dataclass
class Results:
    """Everything that was seen. ``slowest_s``: the longest statement; ``worker_peak``: bytes."""

    deadline_s: float
    files: list[Outcome] = field(default_factory=list)
    statements: list[Outcome] = field(default_factory=list)
    kills: int = 0
    worker_peak: int = 0
    slowest_s: float = 0.0
    run_again: int = 0
    left_behind: list[str] = field(default_factory=list)

    @property
    def limit_s(self) -> float:
        """What a statement may take: the deadline and 10 % of it or half a second, the larger."""
        return self.deadline_s + max(0.1 * self.deadline_s, 0.5)

    @property
    def faults(self) -> list[str]:
        """Everything that should not have been, in words."""
        found = [
            f"{done.kind}, {done.name[:80]!r}: {fault}"
            for done in self.files + self.statements
            for fault in done.faults
        ]
        return found + [f"left behind: {path}" for path in self.left_behind]


def fingerprint(path: Path) -> str:
    """The content of a file or of a folder of files, links not followed."""
    if path.is_symlink() or not (path.is_file() or path.is_dir()):
        return f"{path.lstat().st_mode} {os.readlink(path) if path.is_symlink() else ''}"
    if path.is_dir():
        return " ".join(f"{inner.name}:{fingerprint(inner)}" for inner in sorted(path.iterdir()))
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def watched(results: Results) -> Iterator[None]:
    """Count the workers that are killed and remember the largest memory one of them had."""

    def peak(worker: execution.Worker) -> None:
        try:
            status = Path(f"/proc/{worker.process.pid}/status").read_text()
        except OSError:
            return
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                results.worker_peak = max(results.worker_peak, int(line.split()[1]) * 1024)

    original = execution.Worker.kill

    def kill(worker: execution.Worker) -> None:
        results.kills += 1
        peak(worker)
        original(worker)

    execution.Worker.kill = kill  # type: ignore[method-assign]
    try:
        yield
    finally:
        execution.Worker.kill = original  # type: ignore[method-assign]
        for idle in execution._pool._idle:
            peak(idle)


def timed(work: Callable[[], object]) -> float:
    """How long it takes, in seconds."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def try_statement(database: Database, statement: Statement, results: Results) -> Outcome:
    """Run one statement."""
    done = Outcome(statement.kind, statement.sql)
    started = time.monotonic()
    try:
        found = database.execute(statement.sql, results.deadline_s)
    except Exception as error:  # noqa: BLE001 (any exception here is what is looked for)
        done.faults.append(f"raised {type(error).__name__}: {error}")
        return done
    done.seconds = time.monotonic() - started
    done.status = str(found.status)
    if found.status not in EXPECTED_STATUS:
        done.faults.append(f"ended as {found.status}")
    if statement.refused and found.status is Status.EXECUTED:
        done.faults.append("was run")
    if found.status is not Status.EXECUTED and (found.rows or not found.error):
        done.faults.append("failed with rows or without a message")
    if len(found.rows) > 1000:
        done.faults.append(f"returned {len(found.rows)} rows")
    return done


def look_at(database: Database, results: Results, done: Outcome) -> None:
    """Everything a page shows of a database."""
    listing, ddl = database.schema("listing"), database.schema("ddl")
    drawn = diagram(database)
    health(database, results.deadline_s)
    suggest_questions(database)
    if "<script" in drawn or "\x00" in drawn:
        done.faults.append("its diagram is not escaped")
    for text in (listing, ddl, drawn):
        text.encode("utf-8", "surrogatepass")
    for table in database.tables[:TABLES_LOOKED_AT]:
        for ask in (database.preview, database.row_count):
            work = partial(ask, table.name, timeout_s=results.deadline_s)
            seconds = timed(work)
            if seconds > results.limit_s:
                database.execute("SELECT 1")  # a worker that is up: its start is not the statement's time
                seconds = timed(work)
                results.run_again += 1
            results.slowest_s = max(results.slowest_s, seconds)
            if seconds > results.limit_s:
                done.faults.append(f"{ask.__name__} took {seconds:.2f} s, again too")


def try_file(file: HostileFile, owner: str, results: Results) -> Outcome:
    """Upload one file, or open it where it lies, and look at it."""
    done = Outcome(file.kind, file.client_name)
    place = file.path.parent if file.kind == "log beside" else file.path
    before = fingerprint(place)
    started = time.monotonic()
    try:
        if file.uploaded:
            with file.path.open("rb") as stream:
                upload = uploads.add(owner, stream, file.client_name)
            kept = fingerprint(upload.path.parent)
            look_at(Database.open(upload.path, upload.database_id), results, done)
            if fingerprint(upload.path.parent) != kept:
                done.faults.append("the upload changed")
            uploads.remove(owner, upload.id)
        else:
            report = check_upload(file.path)
            database = Database.open(file.path)
            done.sentence = report.reason
            look_at(database, results, done)
    except MeritError as error:
        done.sentence = str(error)
        if not done.sentence.endswith((".", "?")) or len(done.sentence) > 1500 or "\n" in done.sentence:
            done.faults.append(f"no sentence: {done.sentence[:100]!r}")
    except Exception as error:  # noqa: BLE001 (any other exception is what is looked for)
        done.faults.append(f"raised {type(error).__name__}: {error} {traceback.format_exc()[-500:]}")
    done.seconds = time.monotonic() - started
    if fingerprint(place) != before:
        done.faults.append("the file changed")
    if done.seconds > OPENING_TAKES_AT_MOST_S:
        done.faults.append(f"took {done.seconds:.1f} s in all")
    return done


def run(folder: Path, deadline_s: float, threads: int = 2) -> Results:
    """All files and all statements. ``folder`` is written to; MERIT_HOME must be one's own."""
    results = Results(deadline_s)
    conversion.DEADLINE_S = max(5.0, 2 * deadline_s)
    (folder / "files").mkdir()
    corpus = files(folder / "files")
    target = built(folder / "target.sqlite", ORDINARY + WORDS)
    elsewhere = folder / "elsewhere.db"
    all_statements = statements(str(elsewhere))
    databases = {id: Database.open(samples.path(id)) for id in samples.ids()}
    database = databases[""] = Database.open(target)
    before = {id: fingerprint(known.path) for id, known in databases.items()}
    names = set(os.listdir(folder))
    with watched(results), ThreadPoolExecutor(threads) as pool:
        results.files = list(pool.map(lambda one: try_file(one[1], f"owner{one[0]}", results), enumerate(corpus)))
        results.statements = list(
            pool.map(lambda one: try_statement(databases[one.sample], one, results), all_statements)
        )
        for number, (statement, done) in enumerate(zip(all_statements, results.statements, strict=True)):
            if done.seconds > results.limit_s:
                database.execute("SELECT 1")
                again = try_statement(databases[statement.sample], statement, results)
                if again.seconds > results.limit_s:
                    again.faults.append(f"took {again.seconds:.2f} s, alone too")
                results.run_again += 1
                results.statements[number] = again
        results.slowest_s = max(results.slowest_s, *(done.seconds for done in results.statements))
        if database.execute("SELECT count(*) FROM product").rows != ((17,),):
            results.left_behind.append("the database no longer answers")
    results.left_behind += [
        f"a change in {id or target}" for id in before if fingerprint(databases[id].path) != before[id]
    ]
    results.left_behind += sorted(set(os.listdir(folder)) - names)
    results.left_behind += [str(path) for path in settings().uploads_dir.glob("*/*") if path.name != ".seen"]
    if Path("/tmp/merit-hostile.db").exists():
        results.left_behind.append("/tmp/merit-hostile.db")
    return results


def main() -> None:
    """Print the table; exit code 1 when something was not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deadline", type=float, default=2.0, help="seconds a statement may take")
    parser.add_argument("--all", action="store_true", help="name every refused file, not one per sentence")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="merit-hostile-") as folder:
        os.environ["MERIT_HOME"] = str(Path(folder) / "home")
        work = Path(folder) / "work"
        work.mkdir()
        started = time.monotonic()
        results = run(work, options.deadline)
        print(f"{len(results.files)} files, {len(results.statements)} statements, {time.monotonic() - started:.0f} s\n")
        print_files(results, options.all)
        print_statements(results)
    print(f"workers killed: {results.kills}")
    print(f"slowest statement: {results.slowest_s:.2f} s, allowed {results.limit_s:.2f} s")
    print(f"run again alone: {results.run_again}")
    print(f"largest memory of a worker: {results.worker_peak >> 20} MiB of {MEMORY_BYTES >> 20}")
    print(f"largest memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")
    print(f"files changed or left behind, exceptions, late statements: {len(results.faults)}")
    for fault in results.faults:
        print("  ", fault)
    sys.exit(bool(results.faults))


def print_files(results: Results, every: bool) -> None:
    """Per kind how many were taken and refused, and with which sentences."""
    print(f"{'files':<18}{'all':>5}{'taken':>7}{'refused':>9}")
    for kind in dict.fromkeys(done.kind for done in results.files):
        found = [done for done in results.files if done.kind == kind]
        refused = [done for done in found if done.sentence]
        print(f"{kind:<18}{len(found):>5}{len(found) - len(refused):>7}{len(refused):>9}")
        for sentence, count in Counter(done.sentence for done in refused).items():
            named = [done.name for done in refused if done.sentence == sentence]
            shown = named if every else [*named[:2], *["…"] * (count > 2)]
            print(f"    {count:>3} × {sentence}  [{', '.join(shown)}]")
    print()


def print_statements(results: Results) -> None:
    """Per kind how they ended."""
    print(f"{'statements':<22}{'all':>5}{'executed':>10}{'error':>8}{'timeout':>9}{'slowest':>9}")
    for kind in dict.fromkeys(done.kind for done in results.statements):
        found = [done for done in results.statements if done.kind == kind]
        ends = Counter(done.status for done in found)
        slowest = max(done.seconds for done in found)
        print(
            f"{kind:<22}{len(found):>5}{ends['EXECUTED']:>10}{ends['EXECUTION_ERROR']:>8}{ends['TIMEOUT']:>9}{slowest:>8.2f}s"
        )
    print()


if __name__ == "__main__":
    main()
