"""Components over hand-made events: prompt, diagnosis, memory, change; text from outside is never markup."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from merit import events as ev
from merit.episode import FailureType, Outcome, Polarity, Status
from merit.memory.entry import EntryView
from merit.memory.retrieval import Candidate, Pool, Retrieval
from merit.sql_change import difference
from merit.ui import charts, diagnosis, memory, prompts, sql, theme

HOSTILE = "<script>alert(1)</script> $5 $6 *a* :red[b]"
PROMPT = (
    "PROMPT_VERSION: spider-repair-v3\n\nCONFIRMED SUCCESSFUL REPAIR DIRECTIONS:\ncard\n\n"
    "OBSERVED FAILED DIRECTIONS:\n(none)\n\nCURRENT FEEDBACK:\nStatus: X\n\nDATABASE SCHEMA:\nt\n\nQUESTION:\n"
    "OBSERVED FAILED DIRECTIONS:\nwhy?\n\nLOCAL ATTEMPT HISTORY:\nh\n\nREPAIR RULES:\n- r\n"
)


def text_of(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


def entry(polarity: Polarity = Polarity.POSITIVE, question: str = "Which?", new: str = "SELECT b FROM t") -> EntryView:
    worked = polarity is Polarity.POSITIVE
    return EntryView(
        polarity, FailureType.RESULT_MISMATCH, question, "schema", "shop", "SELECT a FROM t", new,
        Outcome.DENOTATION_MISMATCH, None, Outcome.CORRECT if worked else Outcome.DENOTATION_MISMATCH,
        "q", "e", 5, 1, successes=2 if worked else 0, failures=0 if worked else 1,
    )  # fmt: skip


def candidate(identifier: str, final: float, dense: float = 0.0, bm25: float = 0.0) -> Candidate:
    return Candidate(identifier, dense, bm25, True, final, dense, bm25)


def test_the_prompt_is_shown_character_by_character_with_its_blocks_tinted() -> None:
    assert "".join(block.text for block in prompts.blocks(PROMPT)) == PROMPT
    tones = {block.text.split("\n")[0]: block.tone for block in prompts.blocks(PROMPT)}
    assert tones["CONFIRMED SUCCESSFUL REPAIR DIRECTIONS:"] == "good"
    assert tones["OBSERVED FAILED DIRECTIONS:"] == "broken"
    assert text_of(prompts.text(PROMPT)) == PROMPT


def test_a_heading_inside_the_question_starts_no_block() -> None:
    """A question may hold any text; the words of an earlier heading in it once tinted half the prompt."""
    question = next(block for block in prompts.blocks(PROMPT) if block.text.startswith("QUESTION:"))
    assert "why?" in question.text
    assert question.tone == "accent"


@given(st.text(st.characters(exclude_categories=("Cs", "Cc", "Cf", "Co", "Cn")), max_size=200))
def test_any_prompt_is_shown_as_it_is(prompt: str) -> None:
    assert text_of(prompts.text(prompt)) == prompt


def test_the_budget_says_numbers_and_what_was_left_out() -> None:
    said = text_of(prompts.budget(ev.PromptBuilt(1, "repair", "x", 900, ("positive 3", "attempt 1")), 1536))
    assert "900 of 1,536 tokens" in said
    assert "positive 3, attempt 1" in said


def test_the_diagnosis_names_rule_type_and_message() -> None:
    diagnosed = ev.Diagnosed(0, FailureType.SCHEMA_LINKING, "Missing Column", 3, f"no such column: {HOSTILE}")
    markup = diagnosis.line(diagnosed, Outcome.EXECUTION_ERROR)
    assert "<script" not in markup
    said = text_of(markup)
    assert "SLSchema Linking" in said
    assert "rule 3" in said
    assert "no such column: <script>" in said


def test_chosen_entries_show_mark_change_and_score() -> None:
    positive, negative = entry(), entry(Polarity.NEGATIVE, new="SELECT c FROM t")
    retrieval = Retrieval(
        (positive,),
        (negative,),
        {
            "positive": Pool(12, 5, False, 5, (candidate(positive.id, 0.91),)),
            "negative": Pool(3, 1, True, 3, (candidate(negative.id, 0.55),)),
        },
    )
    said = text_of(memory.line(ev.Retrieved(1, retrieval)))
    assert "+ column changed: a → b 0.91" in said
    assert "− column changed: a → c 0.55" in said
    assert "from 12 that worked, 5 of this type; from 3 that failed, 1 of this type" in said
    assert [taken.candidate.final for taken in memory.taken(retrieval, Polarity.POSITIVE) if taken.candidate] == [0.91]


def test_an_empty_memory_says_so() -> None:
    pools = {"positive": Pool(0, 0, True, 0), "negative": Pool(0, 0, True, 0)}
    assert "nothing yet" in memory.line(ev.Retrieved(1, Retrieval((), (), pools)))


def test_a_card_holds_no_markup_from_outside() -> None:
    card = memory.card(entry(question=HOSTILE, new=f"SELECT '{HOSTILE}'"))
    assert "<script" not in card
    assert HOSTILE in text_of(card)
    assert "worked 2×, failed 0×" in text_of(card)


def test_bars_add_up_to_the_score_and_tell_what_was_not_taken_without_colour() -> None:
    figure = charts.score_bars(
        [charts.Bar("1", 0.6, 0.2, 0.1, True), charts.Bar("2", 0.3, 0.1, 0.0, False)], dark=False
    )
    assert [bar.name for bar in figure.data] == ["meaning (dense)", "words (BM25)", "same type"]
    assert sum(bar.x[0] for bar in figure.data) == 0.9
    assert figure.data[0].marker.pattern.shape == ("", "/")
    assert figure.data[0].marker.color == theme.ACCENT.light


def test_the_short_change_counts_what_it_leaves_out() -> None:
    change = difference("SELECT a FROM t", "SELECT DISTINCT b FROM t WHERE c = 1 ORDER BY d LIMIT 2")
    assert sql.short(change).endswith("· 2 more")
    assert text_of(sql.text_change(difference("SELECT '<b>'", "SELECT 1"))) == "− SELECT '<b>'+ SELECT 1"


def test_statuses_have_words() -> None:
    assert set(theme.OUTCOMES) >= {Outcome(status) for status in Status if status in tuple(Outcome)}
