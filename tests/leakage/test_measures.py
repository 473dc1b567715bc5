"""Measures of joint tables against exact sums over fractions, scipy, closed forms and the degenerate tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tetraodon import leakage
from tetraodon.errors import SpecificationError

BSC = [[0.45, 0.05], [0.05, 0.45]]


@st.composite
def tables(draw: st.DrawFn, secrets: int = 5, outputs: int = 6) -> np.ndarray:
    """Counts of a small table, zeros, empty rows and empty columns included."""
    shape = draw(st.integers(1, secrets)), draw(st.integers(1, outputs))
    cells = st.lists(st.integers(0, 9), min_size=math.prod(shape), max_size=math.prod(shape))
    counts = np.array(draw(cells.filter(any)), dtype=np.int64).reshape(shape)
    return counts


def exact(counts: np.ndarray) -> list[list[Fraction]]:
    total = int(counts.sum())
    return [[Fraction(v, total) for v in row] for row in counts.tolist()]


def h(p: list[Fraction]) -> float:
    """Entropy of exact probabilities, summed without rounding of the sum."""
    return math.fsum(-float(v) * math.log2(v) for v in p if v)


def columns(p: list[list[Fraction]]) -> list[list[Fraction]]:
    return [list(c) for c in zip(*p, strict=True)]


@settings(deadline=None, max_examples=150)
@given(tables())
def test_measures_agree_with_exact_sums(counts: np.ndarray) -> None:
    p = exact(counts)
    joint = leakage.normalised(counts)
    px, pz = [sum(row) for row in p], [sum(c) for c in columns(p)]
    whole = h([v for row in p for v in row])
    assert leakage.entropy(joint) == pytest.approx(whole, abs=1e-12)
    assert leakage.entropy(joint.sum(axis=1)) == pytest.approx(h(px), abs=1e-12)
    assert leakage.conditional_entropy(joint) == pytest.approx(whole - h(pz), abs=1e-12)
    assert leakage.information(joint) == pytest.approx(h(px) + h(pz) - whole, abs=1e-12)
    most = sum(max(c) for c in columns(p))
    assert leakage.vulnerability(joint) == pytest.approx(float(most), abs=1e-15)
    assert leakage.bayes_error(joint) == pytest.approx(float(1 - most), abs=1e-15)
    assert leakage.prior_vulnerability(joint) == pytest.approx(float(max(px)), abs=1e-15)
    assert leakage.min_entropy_leakage(joint) == pytest.approx(math.log2(most / max(px)), abs=1e-12)
    rule = leakage.best_rule(joint)
    assert sum(p[x][z] for z, x in enumerate(rule.tolist())) == most


@settings(deadline=None, max_examples=60)
@given(tables(3, 4), st.data())
def test_rules_and_classifiers_against_every_possibility(counts: np.ndarray, data: st.DataObject) -> None:
    """B(X|Z) is the least risk of all rules; B(X|Y) is the least risk of all readings of the labels."""
    p = exact(counts)
    n, m = counts.shape
    joint = leakage.normalised(counts)
    risks = [1 - sum(p[x][z] for z, x in enumerate(f)) for f in itertools.product(range(n), repeat=m)]
    assert leakage.bayes_error(joint) == pytest.approx(float(min(risks)), abs=1e-15)
    rule = data.draw(st.lists(st.integers(0, n - 1), min_size=m, max_size=m))
    assert leakage.risk(joint, rule) == pytest.approx(
        float(1 - sum(p[x][z] for z, x in enumerate(rule))), abs=1e-15
    )
    readings = [
        1 - sum(p[reading[y]][z] for z, y in enumerate(rule))
        for reading in itertools.product(range(n), repeat=n)
    ]
    assert leakage.bayes_error(joint, rule) == pytest.approx(float(min(readings)), abs=1e-15)
    onehot = np.eye(n)[rule]
    assert leakage.bayes_error(joint, onehot) == leakage.bayes_error(joint, rule)
    assert leakage.risk(joint, onehot) == leakage.risk(joint, rule)
    assert leakage.bayes_error(joint, rule) == pytest.approx(leakage.bayes_error(joint @ onehot), abs=1e-15)
    renamed = [label * 10**12 for label in rule]  # labels are names, not places in a table
    assert leakage.bayes_error(joint, renamed) == leakage.bayes_error(joint, rule)


@settings(deadline=None, max_examples=100)
@given(tables(), st.integers(0, 2**32 - 1))
def test_what_a_classifier_shows_is_at_most_the_information(counts: np.ndarray, seed: int) -> None:
    joint = leakage.normalised(counts)
    q = np.random.default_rng(seed).dirichlet(np.ones(len(joint)), joint.shape[1])
    truth = leakage.information(joint)
    bound = leakage.information_bound(joint, q)
    by_hand = leakage.entropy(joint.sum(axis=1)) + float((joint * np.log2(q.T)).sum())
    assert bound == pytest.approx(by_hand, abs=1e-12)
    assert bound <= truth + 1e-12
    assert leakage.cross_entropy(joint, q) >= leakage.conditional_entropy(joint) - 1e-12
    assert leakage.guess_information(joint, q) <= truth + 1e-12
    column = joint.sum(axis=0)
    posterior = np.where(column > 0, joint / np.where(column > 0, column, 1), 1 / len(joint)).T
    assert leakage.information_bound(joint, posterior) == pytest.approx(truth, abs=1e-12)
    assert leakage.cross_entropy(joint, posterior) == pytest.approx(
        leakage.conditional_entropy(joint), abs=1e-12
    )


def test_against_scipy() -> None:
    rng = np.random.default_rng(5)
    joint = rng.dirichlet(np.full(70, 0.3)).reshape(7, 10)
    assert leakage.entropy(joint.sum(axis=1)) == pytest.approx(stats.entropy(joint.sum(axis=1), base=2))
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    assert leakage.information(joint) == pytest.approx(
        stats.entropy(joint.ravel(), product.ravel(), base=2), rel=1e-12
    )
    given_z = sum(pz * stats.entropy(c, base=2) for c, pz in zip(joint.T, joint.sum(axis=0), strict=True))
    assert leakage.conditional_entropy(joint) == pytest.approx(given_z, rel=1e-12)


def test_golden_symmetric_channel_both_estimates() -> None:
    """The posterior's own guesses, drawn, carry 0.3199 of the 0.5310 bits."""
    posterior = [[0.9, 0.1], [0.1, 0.9]]
    assert leakage.information_bound(BSC, posterior) == pytest.approx(0.5310, abs=5e-5)
    assert leakage.guess_information(BSC, posterior) == pytest.approx(0.3199, abs=5e-5)
    assert leakage.guess_information(BSC, [[1, 0], [0, 1]]) == pytest.approx(0.5310, abs=5e-5)


def test_a_wrong_certainty_shows_nothing() -> None:
    assert leakage.cross_entropy(BSC, [[1, 0], [0, 1]]) == math.inf
    assert leakage.information_bound(BSC, [[1, 0], [0, 1]]) == -math.inf
    assert leakage.cross_entropy([[0.5, 0], [0, 0.5]], [[1, 0], [0, 1]]) == 0


def test_swapped_labels_are_read_the_other_way_round() -> None:
    assert leakage.bayes_error(BSC, [1, 0]) == pytest.approx(0.1)
    assert leakage.risk(BSC, [1, 0]) == pytest.approx(0.9)


@pytest.mark.parametrize(
    "joint",
    [
        [[1.0]],
        [[0.25, 0.75]],  # one secret
        [[0.25], [0.75]],  # one output
        [[0.0, 0.0], [0.25, 0.75]],  # a secret that never occurs
        [[0.0, 0.25], [0.0, 0.75]],  # an output that never comes
        [[0.12, 0.28], [0.18, 0.42]],  # independent
    ],
)
def test_degenerate_tables_tell_nothing(joint: list[list[float]]) -> None:
    p = np.array(joint)
    assert leakage.information(p) == pytest.approx(0, abs=1e-30)
    assert leakage.min_entropy_leakage(p) == pytest.approx(0, abs=1e-12)
    assert leakage.bayes_error(p) == pytest.approx(1 - p.sum(axis=1).max())
    assert leakage.conditional_entropy(p) == pytest.approx(leakage.entropy(p.sum(axis=1)))


def test_small_leakage_keeps_its_digits() -> None:
    """A bit that errs in 1/2 − e leaks 2 e² / ln 2 bits, far below the rounding of a difference of entropies."""
    for e in (1e-5, 1e-8, 1e-12):
        joint = np.array([[0.25 + e / 2, 0.25 - e / 2], [0.25 - e / 2, 0.25 + e / 2]])
        e = float(4 * joint[0, 0] - 1) / 2  # as the doubles hold it
        assert leakage.information(joint) == pytest.approx(2 * e * e / math.log(2), rel=1e-6)
    assert leakage.bayes_error([[1.0, 1e-40], [0, 1e-60]]) == pytest.approx(1e-60, rel=1e-12)


def test_near_independence_against_fifty_digits() -> None:
    """Uneven tables a little off independence, from where the series takes over to far beyond it."""
    with localcontext() as context:
        context.prec = 50
        for e in (1e-2, 3e-3, 9e-4, 1e-4, 1e-6, 1e-9):
            joint = np.array([[0.06 + e, 0.14 - e], [0.24 - e, 0.56 + e]])
            p = [[Decimal(v) for v in row] for row in joint.tolist()]
            whole = sum(map(sum, p))
            p = [[v / whole for v in row] for row in p]
            px, pz = [sum(row) for row in p], [a + b for a, b in zip(*p, strict=True)]
            terms = [v * (v / (px[x] * pz[z])).ln() for x, row in enumerate(p) for z, v in enumerate(row)]
            truth = float(sum(terms) / Decimal(2).ln())
            assert leakage.information(joint) == pytest.approx(truth, rel=max(1e-11, 1e-15 / e))


def test_tiny_probabilities_do_not_overflow() -> None:
    joint = np.array([[1e-300, 0, 0], [0, 5e-324, 0], [0, 0, 1.0]])
    assert 0 <= leakage.information(joint) < 1e-290
    assert leakage.entropy([1.0, 5e-324]) == pytest.approx(0, abs=1e-300)
    assert leakage.normalised([5e-324, 5e-324]).tolist() == [0.5, 0.5]
    assert leakage.normalised([1.7e308, 1.7e308]).tolist() == [0.5, 0.5]


# ---------- capacities ----------


@pytest.mark.parametrize(
    ("channel", "truth"),
    [
        ([[0.9, 0.1], [0.1, 0.9]], 1 + 0.9 * math.log2(0.9) + 0.1 * math.log2(0.1)),
        ([[0.7, 0.3, 0], [0, 0.3, 0.7]], 0.7),  # erasure
        ([[1, 0], [0.5, 0.5]], math.log2(5 / 4)),  # Z channel
        (np.eye(5), math.log2(5)),
        (np.full((4, 3), 1 / 3), 0.0),
        ([[1.0]], 0.0),
        ([[1, 0], [0, 1], [0.5, 0.5]], 1.0),  # the third secret is of no use to a sender
        ([[0.5, 0.5], [0.5, 0.5], [1, 0], [1, 0]], math.log2(5 / 4)),  # twins
    ],
)
def test_capacity_of_known_channels(channel: Any, truth: float) -> None:
    found = leakage.capacity(channel, gap=1e-8)
    assert found.value <= truth + 1e-12 and truth <= found.bound + 1e-12
    assert 0 <= found.gap <= 1e-8
    assert leakage.information(found.prior[:, None] * np.asarray(channel)) == pytest.approx(found.value)


@settings(deadline=None, max_examples=60)
@given(tables(), st.integers(0, 2**32 - 1))
def test_no_prior_carries_more_than_the_capacity(counts: np.ndarray, seed: int) -> None:
    k = (counts + 1e-3) / (counts + 1e-3).sum(axis=1, keepdims=True)
    found = leakage.capacity(k)
    assert 0 <= found.gap <= 1e-6
    worst = leakage.min_entropy_capacity(k)
    uniform = np.full((len(k), 1), 1 / len(k)) * k
    assert leakage.min_entropy_leakage(uniform) == pytest.approx(worst, abs=1e-12)
    for prior in np.random.default_rng(seed).dirichlet(np.full(len(k), 0.5), 20):
        joint = leakage.normalised(prior[:, None] * k)
        assert leakage.information(joint) <= found.bound + 1e-12
        assert leakage.min_entropy_leakage(joint) <= worst + 1e-12
    assert worst >= found.value - 1e-12  # min-entropy capacity is never below Shannon capacity


def test_capacity_of_a_larger_channel_is_certified() -> None:
    k = np.random.default_rng(3).dirichlet(np.full(60, 0.2), 40)
    found = leakage.capacity(k, gap=1e-7)
    d = (k * np.log2(np.where(k > 0, k, 1) / (found.prior @ k))).sum(axis=1)
    assert found.gap <= 1e-7 and found.bound <= d.max() + 1e-9 and found.prior.sum() == pytest.approx(1)


# ---------- what is refused ----------

MEASURES: list[Callable[[Any], Any]] = [
    leakage.conditional_entropy, leakage.information, leakage.bayes_error, leakage.best_rule, leakage.vulnerability,
    leakage.prior_vulnerability, leakage.min_entropy_leakage, leakage.error_bounds,
    lambda p: leakage.cross_entropy(p, [[0.5, 0.5]] * 2), lambda p: leakage.information_bound(p, [[0.5, 0.5]] * 2),
    lambda p: leakage.guess_information(p, [[0.5, 0.5]] * 2), lambda p: leakage.risk(p, [0, 0]),
]  # fmt: skip
BAD: list[Any] = [
    [[0.5, 0.3], [0.1, math.nan]], [[0.5, math.inf], [0, 0]], [[1.5, -0.5], [0, 0]], [[-0.0, 1.0], [0, 1e-8]], [], [[]],
    0.5, [0.5, 0.5], [[[1.0]]], [[3, 1], [0, 4]], [[1, 0], [0, 1]], [[0.5], [0.25, 0.25]], [["0.5", "0.5"]],
    [[True, False]], [[0.5 + 0j, 0.5]], [[None, 1.0]], None, np.ma.masked_array([[0.5, 0.5]], [[True, False]]),
    np.zeros((2, 2)),
]  # fmt: skip


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_what_is_no_joint_table_is_refused(measure: Callable[[Any], Any], bad: Any) -> None:
    with pytest.raises(SpecificationError, match="joint"):
        measure(bad)


@pytest.mark.parametrize("bad", [*BAD[:5], [], 0.5, None], ids=range(8))
def test_what_is_no_law_is_refused(bad: Any) -> None:
    with pytest.raises(SpecificationError, match="law"):
        leakage.entropy(bad)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: leakage.normalised([0, 0]), "0"),
        (lambda: leakage.normalised([1, -1]), "below 0"),
        (lambda: leakage.cross_entropy(BSC, [[0.5, 0.5]]), "outputs"),
        (lambda: leakage.cross_entropy(BSC, [[0.5, 0.6]] * 2), "every row"),
        (lambda: leakage.cross_entropy(BSC, [[1 + 1e-6, 0]] * 2), "every row"),
        (lambda: leakage.bayes_error(BSC, [0]), "rule"),
        (lambda: leakage.bayes_error(BSC, [0.0, 1.0]), "rule"),
        (lambda: leakage.bayes_error(BSC, [0, -1]), "rule"),
        (lambda: leakage.bayes_error(BSC, [[0], [0, 1]]), "rule"),
        (lambda: leakage.bayes_error(BSC, [[1, 0]]), "rule"),
        (lambda: leakage.risk(BSC, [0, 2]), "from 0 to 1"),
        (lambda: leakage.capacity([[0.5, 0.4]]), "every row"),
        (lambda: leakage.capacity([[1.0]], gap=0), "gap"),
        (lambda: leakage.capacity([[1.0]], gap=math.nan), "gap"),
        (lambda: leakage.min_entropy_capacity([1.0]), "channel"),
    ],
)
def test_other_mistakes_are_named(ask: Callable[[], Any], says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        ask()


def test_frames_are_tables_too() -> None:
    import pandas as pd
    import polars as pl

    for frame in (pd.DataFrame(BSC), pl.DataFrame(np.array(BSC))):
        assert leakage.information(frame) == leakage.information(BSC)


def test_no_entry_is_shown() -> None:
    with pytest.raises(SpecificationError) as told:
        leakage.information([[0.123456, 0.3], [0.2, 0.5]])
    assert "0.123456" not in str(told.value) and "1.12" not in str(told.value)
