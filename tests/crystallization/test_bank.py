"""Banks and how cards are found: scopes, methods, keys, ties, the shelf; checked against plain reckoning."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support import HashEncoder

from merit.crystallization.bank import Banks, Hit, Key, Lookup, Method, Scope, Vectors
from merit.crystallization.cards import Card, CardFormat
from merit.crystallization.shelf import Shelf
from merit.errors import BadInput
from merit.memory.texts import tokenise

SCHEMAS = {
    "shop": "CREATE TABLE product (id, name, price)",
    "store": "CREATE TABLE product (id, name, cost)",
    "zoo": "CREATE TABLE animal (species, cage, keeper)",
}
QUESTIONS = {
    "shop": ["cheapest product of all", "names of products sold in may", "how many sales were made", "most sold tea"],
    "store": ["products that cost nothing", "which product is dear"],
    "zoo": ["oldest animal of the zoo", "keepers without an animal"],
}
ASKED = "which product was sold most in may"


def card(database: str, number: int, question: str) -> Card:
    sql = f"SELECT {number} FROM {database}"
    return Card(CardFormat.W0, f"q{number}", database, question, sql, f"Q: {question}\n```sql\n{sql}\n```")


@pytest.fixture
def banks() -> Banks:
    cards = [card(name, n, text) for name, texts in QUESTIONS.items() for n, text in enumerate(texts)]
    return Banks(tuple(cards), SCHEMAS, Vectors(HashEncoder(128)))


def found(hits: tuple[Hit, ...]) -> list[str]:
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [hit.card.id for hit in hits]


def cosine(one: str, other: str) -> float:
    vectors = HashEncoder(128).encode([one, other]).astype(float)
    return float(vectors[0] @ vectors[1])


def test_the_default_is_cosine_to_the_source_question_in_the_same_database(banks: Banks) -> None:
    hits = banks.retrieve(ASKED, "shop/new", "shop", Lookup(k=3))
    expected = sorted(range(4), key=lambda n: -cosine(ASKED, QUESTIONS["shop"][n]))[:3]
    assert found(hits) == [f"shop/q{n}" for n in expected]
    assert hits[0].score == pytest.approx(cosine(ASKED, QUESTIONS["shop"][expected[0]]))


def test_bm25_ranks_as_reckoned_by_hand(banks: Banks) -> None:
    texts = [tokenise(text) for text in QUESTIONS["shop"]]
    mean = sum(map(len, texts)) / len(texts)

    def score(tokens: list[str]) -> float:
        total, counts = 0.0, Counter(tokens)
        for word in tokenise(ASKED):
            holders = sum(word in other for other in texts)
            idf = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
            total += idf * counts[word] * 2.5 / (counts[word] + 1.5 * (0.25 + 0.75 * len(tokens) / mean))
        return total

    hits = banks.retrieve(ASKED, "shop/new", "shop", Lookup(k=4, method=Method.BM25))
    assert {hit.card.id: pytest.approx(hit.score) for hit in hits} == {
        f"shop/q{n}": score(tokens) for n, tokens in enumerate(texts)
    }
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_hybrid_is_the_mean_of_both_stretched(banks: Banks) -> None:
    by = {
        method: {h.card.id: h.score for h in banks.retrieve(ASKED, "shop/new", "shop", Lookup(k=4, method=method))}
        for method in (Method.DENSE, Method.BM25, Method.HYBRID)
    }

    def stretched(scores: dict[str, float]) -> dict[str, float]:
        low, high = min(scores.values()), max(scores.values())
        return {name: (score - low) / (high - low) for name, score in scores.items()}

    dense, words = stretched(by[Method.DENSE]), stretched(by[Method.BM25])
    assert by[Method.HYBRID] == {name: pytest.approx((dense[name] + words[name]) / 2) for name in dense}


def test_mmr_takes_the_nearest_first_and_then_the_unlike(banks: Banks) -> None:
    near, far = "which product was sold in may", "most tea by far"
    twins = Banks((card("shop", 0, near), card("shop", 1, near), card("shop", 2, far)), SCHEMAS, banks.vectors)
    assert found(twins.retrieve(ASKED, "x", "shop", Lookup(k=2))) == ["shop/q0", "shop/q1"]
    hits = twins.retrieve(ASKED, "x", "shop", Lookup(k=2, method=Method.MMR))
    assert found(hits) == ["shop/q0", "shop/q2"]
    assert hits[1].score == pytest.approx(0.5 * cosine(ASKED, far) - 0.5 * cosine(near, far))
    assert hits[1].score > 0.5 * cosine(ASKED, near) - 0.5
    assert len(twins.retrieve(ASKED, "x", "shop", Lookup(k=9, method=Method.MMR))) == 3


def test_scopes(banks: Banks) -> None:
    assert {hit.card.database_id for hit in banks.retrieve(ASKED, "x", "shop", Lookup(k=9, scope=Scope.FOREIGN))} == {
        "store", "zoo",
    }  # fmt: skip
    assert banks.nearest("shop") == "store"
    assert found(banks.retrieve(ASKED, "x", "shop", Lookup(scope=Scope.SIMILAR)))[0].startswith("store/")
    assert banks.retrieve(ASKED, "x", "empty", Lookup()) == ()
    assert Banks((), SCHEMAS, banks.vectors).retrieve(ASKED, "x", "shop", Lookup(scope=Scope.SIMILAR)) == ()


def test_random_depends_on_seed_and_question_alone(banks: Banks) -> None:
    def draw(question: str, seed: int) -> list[str]:
        return found(banks.retrieve(ASKED, question, "shop", Lookup(k=4, method=Method.RANDOM, seed=seed)))

    assert draw("shop/a", 7) == draw("shop/a", 7)
    assert sorted(draw("shop/a", 7)) == sorted(draw("shop/b", 8))
    assert len({tuple(draw(f"shop/{n}", 7)) for n in range(12)}) > 3


def test_retention_removes_the_own_card_and_replay_keeps_it(banks: Banks) -> None:
    own = QUESTIONS["shop"][2]
    assert found(banks.retrieve(own, "shop/q2", "shop", Lookup(k=1))) == ["shop/q2"]
    without = found(banks.retrieve(own, "shop/q2", "shop", Lookup(k=9), exclude_own=True))
    assert len(without) == 3
    assert "shop/q2" not in without
    # The same id in another database is another question.
    assert "zoo/q1" in found(banks.retrieve(own, "shop/q1", "zoo", Lookup(k=9), exclude_own=True))


def test_the_payload_key_reads_the_card_too(banks: Banks) -> None:
    question = "SELECT 3 FROM shop"
    assert found(banks.retrieve(question, "x", "shop", Lookup(k=1, key=Key.PAYLOAD, method=Method.BM25))) == ["shop/q3"]
    assert banks.retrieve(question, "x", "shop", Lookup(k=1, method=Method.BM25))[0].score == 0.0


def test_ties_go_to_the_card_collected_first(banks: Banks) -> None:
    same = Banks(tuple(card("shop", n, "the same question") for n in (5, 3, 4)), SCHEMAS, banks.vectors)
    for method in (Method.DENSE, Method.BM25, Method.HYBRID, Method.MMR):
        assert found(same.retrieve(ASKED, "x", "shop", Lookup(method=method))) == ["shop/q5", "shop/q3", "shop/q4"]


def test_no_cards_at_all_is_no_lookup() -> None:
    with pytest.raises(BadInput):
        Lookup(k=0)


def test_the_digest_tells_any_change(banks: Banks) -> None:
    assert Banks(banks.cards, SCHEMAS, banks.vectors).digest == banks.digest
    assert Banks(banks.cards[::-1], SCHEMAS, banks.vectors).digest != banks.digest
    assert Banks(banks.cards[:-1], SCHEMAS, banks.vectors).digest != banks.digest


def test_a_shelf_gives_banks_and_vectors_back_without_encoding_again(banks: Banks, tmp_path: Path) -> None:
    digest = Shelf.open(tmp_path / "shelf", HashEncoder(128)).keep(banks)
    again = Shelf.open(tmp_path / "shelf", HashEncoder(128))
    assert again.keep(banks) == digest
    back = again.banks(digest, SCHEMAS)
    assert back is not None
    assert back.cards == banks.cards
    assert np.array_equal(back.vectors([ASKED]), banks.vectors([ASKED]))
    back.vectors.encoded = 0
    assert found(back.retrieve(ASKED, "x", "shop", Lookup())) == found(banks.retrieve(ASKED, "x", "shop", Lookup()))
    assert back.vectors.encoded == 0
    assert again.banks("0" * 64, SCHEMAS) is None
    assert again.banks("x' OR true --", SCHEMAS) is None
    assert Shelf.open(tmp_path / "shelf", HashEncoder(64)).banks(digest, SCHEMAS) is None
