"""Accounts and known counts against what slips between two releases: shortened titles, free releases, dropped rows."""

from __future__ import annotations

from fractions import Fraction

import pytest

import tetraodon as td
from tetraodon.errors import DataError


def test_c28_every_known_count_is_compared_with_the_table_also_where_two_read_alike() -> None:
    domain = td.Domain(c=td.Categorical(list("abcdefgh")))
    table = td.Table({"c": list("aabbccddee")}, domain)
    true, false = (
        td.CountConstraint({"c": list(codes)}, answer=n) for codes, n in (("abcdef", 10), ("abcdgh", 3))
    )
    policy = td.Policy(domain, td.Full(), [true, false])
    assert len({known.title for known in policy.known}) == 1  # titles are shortened
    session = td.Session(table, policy, epsilon=1)
    with pytest.raises(DataError, match="does not have the stated answers"):
        session.release(td.Histogram("c"), epsilon=1)
    assert not session.ledger.spent


def test_an_account_in_rho_stays_exact_beside_a_pure_release_that_is_free() -> None:
    domain = td.Domain(a=td.Integer(0, 3), b=td.Categorical(["x", "y"]))
    table = td.Table({"a": [0, 1, 3], "b": ["x", "y", "y"]}, domain)
    session = td.Session(table, td.Policy(domain, td.Full()), rho=9, delta="1e-6")
    session.release(td.Histogram("a"), rho="2/7", name="gaussian")
    session.release(td.Linear([[1, 1]], "b"), epsilon="1/3", name="free")
    for value, loss in enumerate(["1/7", "1/3", "1/11"]):
        session.release(td.Histogram("a", where={"a": [value]}), epsilon=loss, name=f"only {value}")
    spent = session.ledger.spent
    assert isinstance(spent, Fraction)
    assert spent == Fraction(2, 7) + Fraction(1, 98) + Fraction(1, 18)  # no edge meets all three filters
