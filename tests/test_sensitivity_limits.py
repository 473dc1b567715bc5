"""Sensitivity where not everything can be gone through: bounds are never below the exact figure, integers never wrap, and what
cannot be priced exactly is refused."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import strategies
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import examples

import tetraodon as td
from tetraodon.errors import PolicyError, SpecificationError, Unsupported
from tetraodon.loss import Loss
from tetraodon.requests import Request, price_all
from tetraodon.sensitivity import arithmetic, joint, kinds, persons, stack, stacked
from tetraodon.sensitivity.arithmetic import root_sum
from tetraodon.sensitivity.classes import PRIME, _small_fraction
from tetraodon.sensitivity.gram import exact_gram
from tetraodon.sensitivity.joint import Joint


def exactly(matrix: Any) -> list[list[int]]:
    rows = matrix.tolist()
    columns = list(zip(*rows, strict=True))
    return [[sum(x * y for x, y in zip(a, b, strict=True)) for b in columns] for a in columns]


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(-(2**29), 2**29), min_size=n, max_size=n), min_size=1, max_size=6
        )
    )
)
@examples(60)
def test_gram_matrices_are_exact_beyond_what_floats_hold(rows: list[list[int]]) -> None:
    matrix = np.array(rows, dtype=np.int64)
    assert exact_gram(matrix).tolist() == exactly(matrix)


@pytest.mark.parametrize("value", [2**26, 2**29, -(2**29) - 1, 3 * 2**28 + 12345])
def test_gram_matrices_of_one_large_entry(value: int) -> None:
    matrix = np.array([[value, 1, -value], [value - 1, 0, 7]], dtype=np.int64)
    assert exact_gram(matrix).tolist() == exactly(matrix)


def test_gram_matrices_that_would_wrap_are_refused() -> None:
    assert exact_gram(np.array([[2**30]])).tolist() == [[2**60]]
    with pytest.raises(Unsupported, match="too large to price exactly"):
        exact_gram(np.array([[2**30], [2**30]]))
    with pytest.raises(Unsupported, match="too large to price exactly"):
        exact_gram(np.array([[2**31]]))


def test_products_whose_norms_would_wrap_are_refused() -> None:
    assert Joint((np.array([[2**60]]),)).norms[0].tolist() == [2**60]
    with pytest.raises(Unsupported, match="too large to price exactly"):
        _ = Joint((np.array([[2**60], [2**60]]),)).norms


# ---------- bounds where there is too much to go through ----------


def terms_of(policy: td.Policy, queries: Any) -> list[Any]:
    requests = [Request(q, Loss("epsilon", Fraction(1, 2)), f"r{i}") for i, q in enumerate(queries)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tetraodon.mechanisms.descent.MOST_STEPS", 20)
        return [term for priced in price_all(policy, requests) for term in priced.strategy.terms]


def limited(terms: Any, policy: td.Policy) -> Any:
    """The same where nothing can be gone through edge by edge or cell by cell."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (stack, persons, kinds):
            patch.setattr(module, "EXACT_WORK", 0)
        kinds.kinds_of.cache_clear()
        try:
            return stacked(terms, policy.neighbourhood)
        finally:
            kinds.kinds_of.cache_clear()


@given(st.data(), strategies.domains(6), st.sampled_from(("public", "secret")), st.integers(1, 2))
@examples(25)
def test_bounds_are_never_below_the_exact_loss(data: Any, domain: Any, presence: str, count: int) -> None:
    policy = td.Policy(domain, data.draw(strategies.secrets(domain)), presence=presence)
    words = ("Histogram", "CDF", "Ranges")
    asked = [
        data.draw(strategies.questions(domain).filter(lambda q: q.word in words)).query()
        for _ in range(count)
    ]
    terms = terms_of(policy, asked)
    assume(terms)
    exact, bound = stacked(terms, policy.neighbourhood), limited(terms, policy)
    assert bound.value >= exact.value
    assert max(exact.by_secret.values(), default=0) == exact.value  # the largest loss is that of some secret
    assert max(bound.by_secret.values(), default=0) == bound.value
    for name, value in exact.by_secret.items():
        assert max(bound.by_secret.get(name, 0), bound.by_secret.get("any", 0)) >= value


@given(st.data(), strategies.domains(8))
@examples(40)
def test_bounds_under_known_counts_are_never_below_the_exact_loss(data: Any, domain: Any) -> None:
    name = data.draw(st.sampled_from([n for n in domain if domain[n].size > 1] or [None]))
    assume(name is not None)
    secrets = data.draw(st.one_of(strategies.secrets(domain), st.just(td.AttributeWise())))
    known: list[Any] = [td.MarginalConstraint(name)]
    if data.draw(st.booleans()):  # some edges stay inside a class
        known = [td.CountConstraint({name: data.draw(strategies.filters(domain[name]))})]
    asked = data.draw(strategies.questions(domain).filter(lambda q: q.word in ("Histogram", "CDF"))).query()
    try:
        terms = terms_of(td.Policy(domain, secrets, known), [asked])
        exact = stacked(terms, td.Policy(domain, secrets, known).neighbourhood)
        bound = limited(terms, td.Policy(domain, secrets, known))
    except (PolicyError, SpecificationError):
        assume(False)
    assert bound.value >= exact.value


def test_the_bound_knows_releases_that_never_meet() -> None:
    """One record is in the north or in the south; both may say all of it, but not twice."""
    domain = td.Domain(region=td.Categorical(["n", "s"]), age=td.Integer(0, 3))
    policy = td.Policy(domain, td.Within(1, on="age"))
    apart = [td.Histogram("age", where={"region": [r]}) for r in ("n", "s")]
    one = stacked(terms_of(policy, apart[:1]), policy.neighbourhood).value
    assert limited(terms_of(policy, apart), policy).value == one
    assert limited(terms_of(policy, [apart[0], apart[0]]), policy).value == 2 * one
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stack, "CONTEXTS", 0)  # too many to tell apart: still a bound
        assert limited(terms_of(policy, apart), policy).value == 2 * one


def test_pairs_of_many_cells_are_refused_rather_than_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Joint((np.eye(3, dtype=np.int64), np.array([[1, 2, 3]])))
    a, b = np.array([0, 0, 4]), np.array([8, 4, 0])
    rows = np.kron(np.eye(3, dtype=np.int64), [[1, 2, 3]])
    assert layer.difference(a, b).tolist() == np.abs(rows[:, a] - rows[:, b]).sum(axis=0).tolist()
    monkeypatch.setattr(joint, "MAX_WORK", 1)
    with pytest.raises(Unsupported, match="too many rows for this secret graph"):
        layer.difference(a, b)


# ---------- known counts ----------


@given(st.integers(-(2**15), 2**15), st.integers(1, 2**15))
@examples(100)
def test_small_fractions_are_found_behind_their_residues(n: int, d: int) -> None:
    told = Fraction(n, d)
    assert _small_fraction(n * pow(d, -1, PRIME) % PRIME) == (told.numerator, told.denominator)


def test_residues_of_no_small_fraction_are_none() -> None:
    value = (2**15 + 1) * pow(2**15 + 3, -1, PRIME) % PRIME
    assert _small_fraction(value) is None
    for v in range(10**9, 10**9 + 2000):
        told = _small_fraction(v)
        assert told is None or (told[0] - v * told[1]) % PRIME == 0


def test_public_tables_that_contradict_each_other_are_refused() -> None:
    domain = td.Domain(a=td.Integer(0, 1), b=td.Integer(0, 1))
    with pytest.raises(SpecificationError, match="different numbers of records"):
        td.Policy(
            domain,
            td.Full(),
            [td.MarginalConstraint("a", answers=[1, 1]), td.MarginalConstraint("b", answers=[1, 2])],
        )
    with pytest.raises(SpecificationError, match="contradict each other"):
        td.Policy(
            domain, td.Full(), [td.MarginalConstraint("a", answers=[1, 1]), td.CountConstraint({"a": [0]}, 2)]
        )


def test_edges_alone_are_not_read_off_cells_that_cannot_be_gone_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = td.Domain(x=td.Integer(0, 9))
    policy = td.Policy(domain, td.Full(), [td.CountConstraint({"x": (0, 4)}, 3)])
    assert policy.sensitivity(td.CDF("x"), reading="edges").value <= policy.sensitivity(td.CDF("x")).value
    monkeypatch.setattr(kinds, "FEW_KINDS", 0)
    again = td.Policy(domain, td.Full(), [td.CountConstraint({"x": (0, 4)}, 4)])
    with pytest.raises(Unsupported, match='use reading="both"'):
        again.sensitivity(td.CDF("x"), reading="edges")


def test_whole_numbers_are_integers() -> None:
    told = [arithmetic.plain(Fraction(v)) for v in ("1/3", "4/2", "0")]
    assert told == [Fraction(1, 3), 2, 0] and [type(v) for v in told] == [Fraction, int, int]


@given(st.lists(st.fractions(0, 100, max_denominator=50), min_size=1, max_size=5))
@examples(100)
def test_sums_of_roots_are_never_too_small_and_hardly_too_large(values: list[Fraction]) -> None:
    """(Σ √v)² in decimals of fifty digits."""
    told = root_sum(values, 2)
    with localcontext() as digits:
        digits.prec = 50
        exact = sum((Decimal(v.numerator) / Decimal(v.denominator)).sqrt() for v in values) ** 2
        found = Decimal(told.numerator) / Decimal(told.denominator)
        assert exact * (1 - Decimal("1e-45")) <= found <= exact + Decimal("1e-9")
    assert root_sum(values, 1) == sum(values)
    assert root_sum([values[0]] * 3, 2) == 9 * values[0]
