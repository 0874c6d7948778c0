"""The sources T1–T4, explore and success: what each tells the model, when it stops, and that probes cannot write."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from support import ScriptedModel, build_shop

from merit.crystallization.admission import Admission, admit
from merit.crystallization.asking import Ask, AskedModel, hold
from merit.crystallization.episodes import Episode, Try
from merit.crystallization.examination import Examiner
from merit.crystallization.prompts import Prompt
from merit.crystallization.sources import Case, Source, acquire, success
from merit.database import Database
from merit.episode import Question
from merit.errors import ModelUnavailable
from merit.waiting import Stopped

MARKER = "qzxgoldmarkerqzx"
GOLD = f"SELECT name FROM product WHERE price > 3 /* {MARKER} */"
RIGHT = "```sql\nSELECT name FROM product WHERE price > 3\n```"
WRONG = "```sql\nSELECT name FROM product\n```"


@pytest.fixture
def case(tmp_path: Path) -> Case:
    database = Database.open(build_shop(tmp_path / "shop.sqlite"))
    question = Question("What costs more than three?", "shop", "prices in euros", GOLD, "q1")
    return Case(question, database, database.schema("ddl"), Examiner(), seed=42)


def run(case: Case, source: Source, *answers: str, budget: int = 3) -> tuple[Episode, ScriptedModel]:
    model = ScriptedModel(*answers)
    first = case.attempt(WRONG)
    ((_, episode),) = hold([("q", lambda: acquire(source, case, first, budget))], AskedModel(model, 64, 4))
    assert model.left == 0
    assert not any(MARKER in call.prompt for call in model.history)
    assert MARKER not in repr(episode)
    return episode, model


def test_t1_resamples_with_no_feedback_and_a_seed_of_its_own(case: Case) -> None:
    episode, model = run(case, Source.T1, WRONG, RIGHT)
    assert [call.temperature for call in model.history] == [0.8, 0.8]
    assert len({call.seed for call in model.history}) == 2
    assert len(set(model.prompts)) == 1
    assert "not answer" not in model.prompts[0]
    assert (episode.candidate, episode.correct, episode.usage.calls) == (2, True, 2)


def test_t2_says_one_fixed_sentence(case: Case) -> None:
    episode, model = run(case, Source.T2, WRONG, WRONG, WRONG)
    for prompt in model.prompts:
        assert prompt.endswith("The previous SQL did not answer the question correctly. Please revise it.")
        assert "returned" not in prompt
    assert (episode.candidate, episode.correct) == (3, False)


def test_t3_probes_before_every_revision(case: Case) -> None:
    probes = "```sql\nSELECT max(price) FROM product\n```\n```sql\nSELECT colour FROM product\n```"
    episode, model = run(case, Source.T3, probes, WRONG, probes, RIGHT)
    assert "[What it returned]\nname\ntea\nbread\njam" in model.prompts[0]
    assert "SELECT max(price) FROM product\n-> max(price)\n4.25" in model.prompts[1]
    assert "-> Error: no such column: colour" in model.prompts[1]
    assert (episode.candidate, episode.correct) == (2, True)
    assert (episode.usage.calls, episode.usage.probes) == (4, 4)
    assert [len(attempt.probes) for attempt in episode.tries] == [0, 2, 2]


def test_a_probe_that_would_write_is_refused_and_reported(case: Case) -> None:
    before = case.database.path.read_bytes()
    _, model = run(case, Source.T3, "```sql\nDELETE FROM product\n```", RIGHT)
    assert "readonly" in model.prompts[1]
    assert case.database.path.read_bytes() == before


def test_t4_elects_the_majority_and_ignores_what_fails(case: Case) -> None:
    broken = "```sql\nSELECT colour FROM product\n```"
    tea = "```sql\nSELECT name FROM product WHERE id = 1\n```"
    episode, model = run(case, Source.T4, broken, tea, WRONG, WRONG, broken, RIGHT, broken, broken, broken, RIGHT)
    assert [attempt.sql for attempt in episode.tries[1:]] == [
        "SELECT name FROM product", "SELECT name FROM product WHERE price > 3",
    ]  # fmt: skip
    assert len(model.history) == 10
    assert episode.correct
    ungated = admit([episode], Admission.UNGATED)
    assert (ungated.episodes[0].final_sql, ungated.correct) == ("SELECT name FROM product", 0)


def test_t4_without_one_sample_that_runs_has_no_candidate(case: Case) -> None:
    episode, _ = run(case, Source.T4, *["no SQL"] * 15)
    assert episode.candidate is None
    for admission in Admission:
        assert admit([episode], admission, flip_rate=1.0).episodes == ()


def test_exploration_looks_first_and_answers_once(case: Case) -> None:
    episode, model = run(case, Source.EXPLORE, "```sql\nSELECT count(*) FROM sale\n```", WRONG)
    assert "[Database probes and what they revealed]\nSELECT count(*) FROM sale\n-> count(*)\n3" in model.prompts[1]
    assert "[Previous SQL]" not in model.prompts[1]
    assert (episode.candidate, episode.correct, episode.usage.probes) == (1, False, 1)


def test_a_right_first_answer_is_its_own_episode(case: Case) -> None:
    episode = success(case, case.attempt(RIGHT))
    assert (episode.candidate, episode.correct, episode.repaired, len(episode.tries)) == (0, True, False, 1)


def test_an_answer_without_gold_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    database = Database.open(build_shop(tmp_path / "shop.sqlite"))
    question = Question("?", "shop", gold_sql=f"SELECT {MARKER} FROM product")
    assert Examiner().attempt(question, database, "SELECT 1").correct is None


def test_a_statement_sqlite_cannot_read_is_marked(case: Case) -> None:
    assert case.attempt("```sql\nSELECT name, FROM product\n```").unreadable
    assert not case.attempt("```sql\nSELECT colour FROM product\n```").unreadable


def episodes(correct: int, wrong: int) -> list[Episode]:
    return [
        Episode("?", "", f"q{n}", "shop", "T3", (Try("a", correct=False), Try("b", correct=n < correct)), 1)
        for n in range(correct + wrong)
    ]


def test_flips_are_deterministic_nested_and_about_as_many_as_asked() -> None:
    collected = episodes(200, 200)
    kept = {rate: admit(collected, "noisy", flip_rate=rate, seed=7) for rate in (0.0, 0.05, 0.1, 0.2, 1.0)}
    assert kept[0.0] == admit(collected, "verified")
    assert kept[0.1] == admit(list(collected), "noisy", flip_rate=0.1, seed=7)
    turned = {rate: {e.id for e in found.episodes if not e.correct} for rate, found in kept.items()}
    assert turned[0.0] == set()
    assert turned[0.05] < turned[0.1] < turned[0.2]
    assert [found.flipped for found in kept.values()][-1] == 400
    assert 20 <= kept[0.1].flipped <= 60
    assert kept[1.0].correct == 0
    assert admit(collected, "noisy", flip_rate=0.1, seed=8) != kept[0.1]


class Echo:
    """Answers every prompt with its last word and keeps the sizes of the batches."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def complete(self, prompts: Any, max_new_tokens: int = 0, **_: Any) -> list[Any]:
        from merit.models.language import Completion

        self.batches.append(len(prompts))
        return [Completion(prompt.split()[-1], 1, 1) for prompt in prompts]


def counting(name: int, turns: int) -> Any:
    def talk() -> Any:
        heard = []
        for turn in range(turns):
            answer = yield Ask(Prompt("s", f"say {name}.{turn}"))
            heard.append(answer[0].text)
        return heard

    return talk


def test_dialogues_share_batches_and_each_hears_its_own_answers() -> None:
    model = Echo()
    held = dict(hold([(n, counting(n, n % 4)) for n in range(9)], AskedModel(model, 8, batch=3), width=6))
    assert held == {n: [f"{n}.{turn}" for turn in range(n % 4)] for n in range(9)}
    assert max(model.batches) == 3


def test_a_stop_ends_the_dialogues_and_what_ended_before_is_out() -> None:
    cancel = threading.Event()
    out: list[int] = []

    def listen() -> None:
        for key, _ in hold([(n, counting(n, 1)) for n in range(9)], AskedModel(Echo(), 8), width=1, cancel=cancel):
            out.append(key)
            if key == 2:
                cancel.set()

    with pytest.raises(Stopped):
        listen()
    assert out == [0, 1, 2]


@pytest.mark.parametrize("answer", [None, [], ["text"]])
def test_a_model_that_answers_nonsense_is_told_so(answer: Any) -> None:
    class Odd:
        def complete(self, *_: Any, **__: Any) -> Any:
            return answer

    with pytest.raises(ModelUnavailable):
        list(hold([(1, counting(1, 1))], AskedModel(Odd(), 8)))
