"""The strategies of spec §4 as data: what each one may remember, how it ranks, what it writes. Never a subclass.

What this module does not know: how retrieval, prompts or the loop act on these fields. It only states them,
so that a new strategy is a row here (or ``dataclasses.replace`` of a row) and no new code anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from merit.episode import FailureType, Polarity
from merit.errors import BadInput, UnknownStrategy


class Scope(StrEnum):
    """Entries of which databases are legal: every one, the question's own, or all but its own."""

    ANY = "any"
    SAME = "same"
    OTHER = "other"


class TypeFilter(StrEnum):
    """Whether a pool is narrowed to the predicted failure type: always, for reliable types only, or never."""

    HARD = "hard"
    RELIABILITY = "reliability"
    NONE = "none"


class Selection(StrEnum):
    """How entries are taken from the candidates: by rank, or by a seeded shuffle with all scores 0."""

    RANKED = "ranked"
    RANDOM = "random"


class Causality(StrEnum):
    """Which part of the stream may be seen: the past, the failures of the whole stream, or a finished pass."""

    CAUSAL = "causal"
    TRANSDUCTIVE = "transductive"
    LEAKY = "leaky"


class Regime(StrEnum):
    """When an episode stops: at a confirmed denotation, or as soon as the SQL executes (spec §1)."""

    DENOTATION_CONFIRMED = "denotation_confirmed"
    DBMS_ONLY = "dbms_only"


RELIABLE_TYPES = frozenset({FailureType.SYNTAX, FailureType.SCHEMA_LINKING, FailureType.EXECUTION})
"""The types that a DBMS message gives away (spec §4, ``merit_reliability``)."""


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """One way to repair; the defaults are MERIT Full (paper, Algorithm 1 and Eq. 5–8; spec §4).

    * ``title``, ``description``: words for the screen.
    * ``max_repairs``: at most so many repairs whatever the budget (0: the first answer stands), None: no cap.
    * ``uses_memory``: retrieves before each repair. ``stores_positive``, ``stores_negative``: what an episode
      may leave behind; ``keep_both`` lets a pooled strategy keep negatives as well (published code does not).
    * ``k_positive``, ``k_negative``: most entries shown of each polarity. ``pooled``: one pool without type
      and polarity instead, most entries ``k_pooled``.
    * ``type_filter`` with ``min_typed``: the smallest typed pool that is not given up for the legal one;
      ``hard_types``, ``type_bonus``: for ``TypeFilter.RELIABILITY`` only, the types that are filtered hard
      and what an equal type adds to the score of all others.
    * ``dense_weight``, ``bm25_weight``: non-negative, sum 1. ``flat_pool_score``: min–max value where max = min
      (Eq. 7: 0; the published code: 1, but 0 if the flat value itself is 0).
    * ``selection_seed``: seed of ``Selection.RANDOM``.
    * ``own_question``: entries of the question itself are legal; possible only where not causal.
    * ``reflects``: a verbal reflection after every unsuccessful attempt.
    * ``static_examples``: the same four solved examples in every repair prompt.
    """

    name: str
    title: str
    description: str
    max_repairs: int | None = None
    uses_memory: bool = True
    stores_positive: bool = True
    stores_negative: bool = True
    keep_both: bool = False
    scope: Scope = Scope.ANY
    k_positive: int = 3
    k_negative: int = 1
    pooled: bool = False
    k_pooled: int = 4
    type_filter: TypeFilter = TypeFilter.HARD
    min_typed: int = 3
    hard_types: frozenset[FailureType] = RELIABLE_TYPES
    type_bonus: float = 0.0
    dense_weight: float = 0.75
    bm25_weight: float = 0.25
    flat_pool_score: float = 0.0
    selection: Selection = Selection.RANKED
    selection_seed: int = 42
    causal: Causality = Causality.CAUSAL
    own_question: bool = False
    reflects: bool = False
    static_examples: bool = False
    regime: Regime = Regime.DENOTATION_CONFIRMED

    def __post_init__(self) -> None:
        for field, kind in (
            ("scope", Scope),
            ("type_filter", TypeFilter),
            ("selection", Selection),
            ("causal", Causality),
            ("regime", Regime),
        ):
            try:
                object.__setattr__(self, field, kind(getattr(self, field)))
            except ValueError:
                known = ", ".join(kind)
                raise BadInput(f"The {field} of a strategy is one of: {known}; not {getattr(self, field)!r}.") from None
        if min(self.k_positive, self.k_negative, self.k_pooled, self.min_typed, self.max_repairs or 0) < 0:
            raise BadInput("The counts of a strategy (shown entries, smallest typed pool, repairs) cannot be negative.")
        if min(self.dense_weight, self.bm25_weight) < 0 or abs(self.dense_weight + self.bm25_weight - 1) > 1e-9:
            raise BadInput("The two weights of a strategy, dense and BM25, are not negative and add up to 1.")
        if self.own_question and self.causal is Causality.CAUSAL:
            raise BadInput("A causal strategy never sees entries of its own question.")

    def stores(self, polarity: Polarity) -> bool:
        """Whether a finished episode of this strategy may leave an entry of this polarity."""
        if polarity is Polarity.POSITIVE:
            return self.stores_positive
        return self.stores_negative or self.keep_both

    def repairs(self, budget: int) -> int:
        """How many repairs a budget really allows."""
        return budget if self.max_repairs is None else min(budget, self.max_repairs)


class StrategyTable(Mapping[str, Strategy]):
    """Strategies by name, in the order of spec §4; an unknown name raises ``UnknownStrategy``, which lists them."""

    def __init__(self, strategies: Iterable[Strategy]) -> None:
        self._by_name = {strategy.name: strategy for strategy in strategies}

    def __getitem__(self, name: str) -> Strategy:
        try:
            return self._by_name[name]
        except (KeyError, TypeError):
            raise UnknownStrategy(name, self._by_name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        return f"StrategyTable({', '.join(self)})"


STRATEGIES = StrategyTable(
    (
        Strategy(
            name="iterative",
            title="Repair without memory",
            description="Tries again with the error message and its own earlier attempts. Remembers nothing.",
            uses_memory=False,
            stores_positive=False,
            stores_negative=False,
        ),
        Strategy(
            name="merit",
            title="MERIT",
            description="Before each repair, recalls up to three corrections that worked and one that failed, "
            "for the same type of error, from earlier questions only.",
        ),
        Strategy(
            name="merit_reliability",
            title="MERIT, trusting clear types only",
            description="Like MERIT, but insists on the same error type only where the database message names it; "
            "otherwise an equal type is a small plus.",
            type_filter=TypeFilter.RELIABILITY,
            type_bonus=0.10,
        ),
        Strategy(
            name="dynamic_rag",
            title="Plain retrieval",
            description="Recalls the four most similar earlier corrections, whatever their error type.",
            pooled=True,
            type_filter=TypeFilter.NONE,
            stores_negative=False,
        ),
        Strategy(
            name="reflexion",
            title="Verbal reflection",
            description="After each failed attempt the model writes down what it learnt from it and reads all of these "
            "notes before the next one. Nothing is kept for later questions.",
            uses_memory=False,
            stores_positive=False,
            stores_negative=False,
            reflects=True,
        ),
        Strategy(
            name="no_negative",
            title="MERIT without failed directions",
            description="Like MERIT, but neither keeps nor recalls corrections that failed.",
            k_negative=0,
            stores_negative=False,
        ),
        Strategy(
            name="no_type_filter",
            title="MERIT without error types",
            description="Like MERIT, but recalls from all earlier corrections, whatever their error type.",
            type_filter=TypeFilter.NONE,
        ),
        Strategy(
            name="random_same_type",
            title="Random corrections of the same type",
            description="Like MERIT, but draws at random among the corrections of the same error type.",
            selection=Selection.RANDOM,
        ),
        Strategy(
            name="no_dense",
            title="MERIT by words only",
            description="Like MERIT, but ranks by shared words alone (BM25), without sentence vectors.",
            dense_weight=0.0,
            bm25_weight=1.0,
        ),
        Strategy(
            name="no_bm25",
            title="MERIT by meaning only",
            description="Like MERIT, but ranks by sentence vectors alone, without shared words.",
            dense_weight=1.0,
            bm25_weight=0.0,
        ),
        Strategy(
            name="cross_database",
            title="MERIT from other databases",
            description="Like MERIT, but recalls only corrections made on other databases.",
            scope=Scope.OTHER,
        ),
        Strategy(
            name="same_database",
            title="MERIT from this database",
            description="Like MERIT, but recalls only corrections made on the same database, so that no values of one "
            "database reach the prompts of another.",
            scope=Scope.SAME,
        ),
        Strategy(
            name="zero_shot",
            title="First answer only",
            description="The first answer stands; nothing is repaired.",
            max_repairs=0,
            uses_memory=False,
            stores_positive=False,
            stores_negative=False,
        ),
        Strategy(
            name="static_examples",
            title="Repair with fixed examples",
            description="Repairs without memory, with the same four solved examples in every prompt.",
            uses_memory=False,
            stores_positive=False,
            stores_negative=False,
            static_examples=True,
        ),
        Strategy(
            name="transductive",
            title="All failures known beforehand",
            description="Not causal: the first failures of the whole stream, the question's own included, are in "
            "memory before it starts; what is learnt on the way is added only at the end.",
            causal=Causality.TRANSDUCTIVE,
            own_question=True,
        ),
        Strategy(
            name="leaky",
            title="Looking ahead",
            description="Not causal: repairs with the memory that a finished MERIT pass over the whole stream left. "
            "Shows what looking ahead would buy.",
            causal=Causality.LEAKY,
            own_question=True,
        ),
    )
)


def get(name: str) -> Strategy:
    """The strategy of this name; ``UnknownStrategy`` lists the known names."""
    return STRATEGIES[name]
