"""The labelled failures that come along are what their README says, and no right answer stands among them."""

from __future__ import annotations

import re
from collections import Counter

from merit.database import samples
from merit.episode import FailureType
from merit.routing import labelled
from merit.routing.validation import Reference, agreement, validate


def squeezed(sql: str) -> str:
    return re.sub(r"[\s\"`;]+", "", sql).lower()


def test_the_bundled_set_is_what_its_readme_says() -> None:
    failures = labelled.bundled()
    assert len(failures) >= 150
    assert sum(failure.source == "model" for failure in failures) * 2 >= len(failures)
    assert {failure.source for failure in failures} == {"model", "mutation"}
    assert all(failure.label is not None for failure in failures)
    assert {failure.database_id for failure in failures} <= set(samples.ids())
    assert {failure.label for failure in failures} >= set(FailureType) - {FailureType.UNKNOWN}


def test_no_right_answer_stands_in_the_bundled_set() -> None:
    golds = {squeezed(str(question.gold_sql)) for id in samples.ids() for question in samples.questions(id)}
    assert golds
    assert [failure.id for failure in labelled.bundled() if squeezed(failure.sql) in golds] == []


def test_the_readme_of_the_set_tells_its_figures() -> None:
    """Figures in a document go stale; these are computed again."""
    failures = labelled.bundled()
    readme = (labelled.BUNDLED.parent / "README.md").read_text(encoding="utf-8")
    counts = Counter(failure.source for failure in failures)
    assert f"| `model` | {counts['model']} |" in readme
    assert f"| `mutation` | {counts['mutation']} |" in readme
    for reference in (Reference.FIRST, Reference.SECOND, Reference.AGREED):
        found = validate(failures, reference)
        low, high = found.accuracy_interval or (0, 0)
        assert (
            f"| {reference} | {found.labelled} | {found.accuracy:.1%} [{low:.1%}, {high:.1%}] | "
            f"{found.weighted_accuracy:.1%} | {found.macro_f1:.3f} |"
        ).replace("%", " %").replace(" %,", ",").replace(" %]", "]") in readme
    both = agreement(failures, Reference.FIRST, Reference.SECOND)
    assert both is not None
    assert f"{both.plain:.1%}".replace("%", " %") + f" of the {both.count} failures" in readme
    assert f"kappa {both.kappa:.2f}" in readme
