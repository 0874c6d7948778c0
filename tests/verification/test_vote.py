"""The self-vote: the largest group of equal results, the earliest among equals, and nothing that failed."""

from __future__ import annotations

import pytest

from merit.episode import Execution, Status
from merit.verification import elect


def result(*rows: object, truncated: bool = False) -> Execution:
    return Execution(Status.EXECUTED, ("x",), tuple((row,) for row in rows), truncated=truncated)


ERROR = Execution(Status.EXECUTION_ERROR, error="no such column")


@pytest.mark.parametrize(
    ("results", "winner", "groups"),
    [
        ([result(1), result(2), result(2)], 1, ((1, 2), (0,))),
        ([result(1), result(2)], 0, ((0,), (1,))),
        ([ERROR, ERROR, result(5), ERROR, ERROR], 2, ((2,),)),
        ([ERROR, Execution(Status.TIMEOUT)], None, ()),
        ([], None, ()),
        ([result(1, 2), result(2, 1, 1), result(3)], 0, ((0, 1), (2,))),
        ([result(1, truncated=True), result(1)], 0, ((0,), (1,))),
        ([result(), result(None), result()], 0, ((0, 2), (1,))),
    ],
)
def test_election(results: list[Execution], winner: int | None, groups: tuple[tuple[int, ...], ...]) -> None:
    found = elect(results)
    assert (found.winner, found.groups) == (winner, groups)
