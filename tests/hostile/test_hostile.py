"""The whole hostile corpus, as ``python -m tests.hostile.run`` runs it, with a deadline of half a second."""

from __future__ import annotations

import resource
from collections import Counter

import pytest

from merit.database import conversion
from merit.database.worker import MEMORY_BYTES
from tests.hostile.run import Results, run

DEADLINE_S = 0.5


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    patch = pytest.MonkeyPatch()
    patch.setenv("MERIT_HOME", str(tmp_path_factory.mktemp("hostile-home")))
    patch.setattr(conversion, "DEADLINE_S", conversion.DEADLINE_S)
    try:
        return run(tmp_path_factory.mktemp("hostile"), DEADLINE_S)
    finally:
        patch.undo()


@pytest.mark.timeout(400)
def test_nothing_harmful_happens(results: Results) -> None:
    """No exception but a sentence, no byte changed, nothing left behind, nothing forbidden run, nothing late."""
    assert results.faults == []


@pytest.mark.timeout(400)
def test_the_corpus_is_as_large_as_promised(results: Results) -> None:
    assert len(results.files) >= 200
    assert len(results.statements) >= 1000
    kinds = Counter(done.kind for done in results.files)
    assert min(kinds.values()) >= 1
    assert len(kinds) >= 14


@pytest.mark.timeout(400)
def test_files_are_taken_and_refused(results: Results) -> None:
    """A run that refuses everything, or nothing, tests little."""
    refused = [done for done in results.files if done.sentence]
    assert 100 < len(refused) < len(results.files) - 100
    by_kind = {kind: [done for done in results.files if done.kind == kind] for kind in ("cut off", "name", "parquet")}
    assert all(done.sentence for done in by_kind["cut off"])
    assert not any(done.sentence for done in by_kind["name"]), "odd names are no reason to refuse a file"
    assert [done.name for done in by_kind["parquet"] if not done.sentence] == ["good.parquet"]


@pytest.mark.timeout(400)
def test_statements_end_in_every_way(results: Results) -> None:
    ends = Counter(done.status for done in results.statements)
    assert min(ends["EXECUTED"], ends["EXECUTION_ERROR"], ends["TIMEOUT"]) >= 20
    mutated = Counter(done.status for done in results.statements if done.kind == "mutated gold")
    assert mutated["EXECUTED"] >= 60, "mutants must reach the tables to test anything"


@pytest.mark.timeout(400)
def test_memory_stays_under_the_limit(results: Results) -> None:
    assert 0 < results.worker_peak <= MEMORY_BYTES
    assert results.kills > 0, "bombs inside one opcode can only be ended by ending the worker"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20  # in KiB; the whole test run is in it
