"""The known faults of the two official evaluation scripts, by name, so that each can be switched (spec §6).

They are facts about published scores. One is not reproduced: that the timeout of the Spider script never fires.

What this module does not know: how a verifier acts on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Fault(StrEnum):
    """One fault each; the comment says which script has it (taoyds/test-suite-sql-eval @ e97acc5,
    DAMO-ConvAI @ 483554e)."""

    VALUE_BECOMES_1 = "value becomes 1"
    """Spider: every substring ``value`` of the prediction becomes ``1`` before it runs."""
    CURRENT_YEAR_2020 = "current year is 2020"
    """Spider: ``YEAR(CURDATE())`` becomes 2020 on both sides."""
    JOINED_OPERATORS = "operators are joined"
    """Spider: ``> =``, ``< =`` and ``! =`` lose their space on both sides, inside literals too."""
    QUICK_REJECT = "quick reject"
    """Spider: rows are first compared sorted by text and type name, so (1, 10) is unlike (1.0, 10)."""
    DISTINCT_CUTS = "distinct removal cuts"
    """Spider without ``keep_distinct``: removing DISTINCT keeps only the first statement."""
    SHARED_DEADLINE = "shared deadline"
    """BIRD: one deadline for both queries, so a slow gold makes a finished prediction wrong."""
    EMPTY_RUNS = "empty answers run"
    """Both: an empty answer runs, has no rows, and equals a gold without rows."""
    GOLD_FAILURE_IS_MISMATCH = "failing gold is a mismatch"
    """BIRD: a gold query that fails makes the prediction wrong instead of being reported."""


PUBLISHED = frozenset(Fault)
"""The published mode: all faults, also the two that the product never has unless they are asked for by name."""

OFFICIAL = PUBLISHED - {Fault.EMPTY_RUNS, Fault.GOLD_FAILURE_IS_MISMATCH}
"""What ``official=True`` means: compared like the scripts, but empty answers are wrong and failing gold is reported."""


def chosen(official: bool, faults: Iterable[Fault | str] | None) -> frozenset[Fault]:
    """The faults that are on: those named, else all official ones or none."""
    if faults is not None:
        return frozenset(Fault(fault) for fault in faults)
    return OFFICIAL if official else frozenset()
