"""Who may say that an answer is right: a benchmark's gold, an assertion, a person, or nobody (spec §6, §8).

Gold stays in here: what a verifier gives out is a ``Verdict``, and where gold itself fails a ``GoldUnavailable``
without the database's message.

What this package does not know: the loop, prompts, memory.
"""

from __future__ import annotations

from merit.verification.assertion import AssertionVerifier
from merit.verification.base import Verifier
from merit.verification.bird import BirdVerifier, bird_equal
from merit.verification.compared import Comparison, compare_verdicts
from merit.verification.execution_only import ExecutionOnlyVerifier
from merit.verification.faults import PUBLISHED, Fault
from merit.verification.person import PersonVerifier
from merit.verification.spider import SpiderVerifier, spider_equal
from merit.verification.vote import Election, elect

__all__ = [
    "PUBLISHED",
    "AssertionVerifier",
    "BirdVerifier",
    "Comparison",
    "Election",
    "ExecutionOnlyVerifier",
    "Fault",
    "PersonVerifier",
    "SpiderVerifier",
    "Verifier",
    "bird_equal",
    "compare_verdicts",
    "elect",
    "spider_equal",
]
