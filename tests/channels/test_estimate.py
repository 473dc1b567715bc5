"""Histograms behind outputs: unbiased inverses, likeliest ones, certificates, coverage, and what is not identified."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tetraodon as td
from tetraodon.channels.channel import Channel
from tetraodon.channels.estimates import bootstrap, estimate, invert
from tetraodon.channels.geometry import plain_domain
from tetraodon.channels.likelihood import Moves, central, likeliest, operator_of
from tetraodon.channels.shift import Shift
from tetraodon.channels.table import Table
from tetraodon.errors import SpecificationError, Unsupported


def response(n: int, keep: float) -> np.ndarray:
    """Randomised response."""
    return np.full((n, n), (1 - keep) / (n - 1)) + np.eye(n) * (keep - (1 - keep) / (n - 1))


def spread(n: int, rate: float) -> np.ndarray:
    """Exponential weights by distance on a square grid."""
    place = np.stack(np.divmod(np.arange(n * n), n), axis=1)
    weight = np.exp(-rate * np.sqrt(((place[:, None] - place) ** 2).sum(axis=-1)))
    return weight / weight.sum(axis=1, keepdims=True)


def put_through(matrix: np.ndarray, true: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.sum([rng.multinomial(n, row) for n, row in zip(true, matrix, strict=True)], axis=0)


# ---------- the inverse ----------


@pytest.mark.parametrize("columns", [3, 5])
def test_the_inverse_is_unbiased_and_its_covariance_exact(columns: int) -> None:
    """Over every way in which five rows can come out, with its probability."""
    matrix = np.random.default_rng(columns).dirichlet(np.ones(columns), 3)
    rows = [0, 0, 1, 2, 2]
    true = np.bincount(rows, minlength=3)
    mean, second = np.zeros(3), np.zeros((3, 3))
    for way in itertools.product(range(columns), repeat=5):
        chance = math.prod(matrix[w, z] for w, z in zip(rows, way, strict=True))
        found = invert(matrix, np.bincount(way, minlength=columns)).values
        mean += chance * found
        second += chance * np.outer(found - true, found - true)
    assert mean == pytest.approx(true, abs=1e-9)
    a = np.linalg.pinv(matrix)
    one = invert(
        matrix, true @ matrix
    )  # the expected outputs: the estimate is the truth, and so is the covariance
    assert one.values == pytest.approx(true, abs=1e-9)
    assert one.covariance == pytest.approx(second, abs=1e-9)
    if columns == 3:
        assert one.values == pytest.approx((true @ matrix) @ a)


def test_the_inverse_of_randomised_response_by_fractions() -> None:
    keep, lie = Fraction(3, 4), Fraction(1, 8)
    outputs = [50, 30, 20]
    found = invert(response(3, 0.75), outputs)
    exact = [(v - 100 * lie) / (keep - lie) for v in outputs]
    assert found.values == pytest.approx([float(v) for v in exact])
    assert found.values.sum() == pytest.approx(100) and found.rank == 3 and found.method == "inverse"
    low, high = found.lower[0], found.upper[0]
    assert (low + high) / 2 == pytest.approx(found.values[0])
    assert high - found.values[0] == pytest.approx(1.959964 * math.sqrt(found.covariance[0, 0]), rel=1e-6)


def test_the_inverse_uses_the_channel_alone() -> None:
    """It is linear in the counts, whatever they are."""
    matrix = np.random.default_rng(0).dirichlet(np.ones(6), 4)
    rng = np.random.default_rng(1)
    one, two = rng.integers(0, 50, (2, 6))
    both = invert(matrix, one + two).values
    assert both == pytest.approx(invert(matrix, one).values + invert(matrix, two).values)


@pytest.mark.parametrize("cells", [[2], [-1], [0.0], [True]])
def test_sums_name_cells_that_exist(cells: Any) -> None:
    with pytest.raises(SpecificationError, match="total"):
        invert(np.eye(2), [1, 2]).total(cells)


def test_no_variance_is_below_the_weighted_inverse() -> None:
    """For equally frequent values, the plain pseudo-inverse is never better."""
    matrix = np.random.default_rng(4).dirichlet(np.full(9, 0.4), 4)
    outputs = 1000 * matrix.mean(axis=0)
    found = invert(matrix, outputs)
    plain = np.linalg.pinv(matrix)
    assert np.linalg.norm(matrix @ plain - np.eye(4)) < 1e-9
    other = plain.T @ np.diag(outputs) @ plain - np.diag(np.full(4, 250))
    assert (np.diagonal(found.covariance) <= np.diagonal(other) + 1e-6).all()
    assert np.trace(found.covariance) < 0.98 * np.trace(other)


def test_an_inverse_that_does_not_exist_is_refused_with_the_rank() -> None:
    zero_leakage = np.tile([0.2, 0.3, 0.5], (4, 1))
    for matrix, rank in (
        (zero_leakage, 1),
        (spread(3, 1)[:, :5] / spread(3, 1)[:, :5].sum(1, keepdims=True), 5),
    ):
        with pytest.raises(SpecificationError, match=f"not identified: the channel has rank {rank} for"):
            invert(matrix, np.ones(matrix.shape[1]))


def test_covers() -> None:
    """Intervals of both ways hold the true counts about as often as they say."""
    rng = np.random.default_rng(12)
    matrix, true = spread(4, 1.0), np.r_[np.full(8, 60), np.full(4, 0), np.full(4, 400)]
    inside: dict[str, list[np.ndarray]] = {"inverse": [], "likelihood": []}
    sums = []
    for _ in range(150):
        outputs = put_through(matrix, true, rng)
        for found in (invert(matrix, outputs), estimate(matrix, outputs)):
            inside[found.method].append((found.lower <= true) & (true <= found.upper))
            _, low, high = found.total([12, 13])
            sums.append(low <= true[12] + true[13] <= high)
    assert 0.92 < np.mean(inside["inverse"]) < 0.98
    assert np.mean(inside["likelihood"]) > 0.93
    assert np.mean(sums) > 0.92


def test_a_single_row_far_from_the_others_is_not_ruled_out() -> None:
    """Where no output is seen, an interval that took that for certain knowledge would stop short of one row."""
    rng = np.random.default_rng(21)
    matrix, true = spread(4, 2.0), np.zeros(16, dtype=int)
    true[[0, 15]] = 50, 1
    found = [estimate(matrix, put_through(matrix, true, rng)) for _ in range(60)]
    assert np.mean([(e.lower[15] <= 1 <= e.upper[15]) for e in found]) > 0.9


def test_rows_of_one_person_need_the_persons() -> None:
    """A permanent answer: each person's ten rows are one draw. Counted as independent rows, intervals are far too short."""
    rng = np.random.default_rng(2)
    matrix, true = response(4, 0.6), np.array([100, 50, 30, 20])
    persons = np.repeat(np.arange(4), true)
    plain, kept = [], []
    for _ in range(100):
        drawn = np.array([rng.choice(4, p=matrix[w]) for w in persons])
        by_person = 10 * np.eye(4)[drawn]
        for told, outputs in ((plain, by_person.sum(axis=0)), (kept, by_person)):
            for found in (invert(matrix, outputs), estimate(matrix, outputs)):
                told.append((found.lower <= 10 * true) & (10 * true <= found.upper))
    assert np.mean(plain) < 0.7 and np.mean(kept) > 0.94


# ---------- the likeliest histogram ----------


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 6), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_the_update_is_monotone_and_its_gap_holds(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(m, 0.7), n)
    shares = rng.dirichlet(np.ones(n)) @ matrix
    counts = rng.multinomial(200, shares / shares.sum()).astype(float)
    law = operator_of(Table.of(matrix))
    rough = likeliest(law, counts, np.full(n, 1 / n), 0.5, 10_000)
    fine = likeliest(law, counts, np.full(n, 1 / n), 1e-7, 20_000)
    assert (np.diff(fine.path) >= -1e-9).all()
    assert rough.gap <= 0.5 and fine.gap <= 1e-3
    assert rough.log_likelihood <= fine.log_likelihood + 1e-9
    assert fine.log_likelihood <= rough.log_likelihood + rough.gap + 1e-9
    for other in rng.dirichlet(np.full(n, 0.5), 200):  # no law is likelier than the gap allows
        with np.errstate(divide="ignore"):
            told = counts[counts > 0] @ np.log((other @ matrix)[counts > 0])
        assert told <= fine.log_likelihood + fine.gap + 1e-9


@settings(deadline=None, max_examples=80)
@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from([0.05, 0.3, 3.0]), st.integers(0, 2**32 - 1))
def test_the_interior_point_certifies_the_same_optimum(n: int, m: int, even: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(m, even) + 1e-3, n)
    shares = rng.dirichlet(np.full(n, 0.3)) @ matrix
    counts = rng.multinomial(int(10 ** rng.uniform(0, 6)), shares / shares.sum()).astype(float)
    inner = central(matrix, counts, 1e-6)
    outer = likeliest(operator_of(Table.of(matrix)), counts, np.full(n, 1 / n), 1e-3, 20_000)
    assert inner.gap <= 1e-6 and len(inner.path) <= 30
    assert inner.law.sum() == pytest.approx(1) and (inner.law >= 0).all()
    seen = counts > 0
    assert inner.log_likelihood == pytest.approx(
        counts[seen] @ np.log((inner.law @ matrix)[seen]), rel=1e-12, abs=1e-9
    )
    assert inner.log_likelihood >= outer.log_likelihood - 1e-6 - 1e-12 * counts.sum()
    assert inner.log_likelihood <= outer.log_likelihood + outer.gap + 1e-6


def test_one_plain_step_is_the_textbook_update() -> None:
    matrix, counts, law = response(3, 0.7), np.array([5.0, 3, 2]), np.array([0.2, 0.3, 0.5])
    by_hand = [
        sum(counts[z] / 10 * law[w] * matrix[w, z] / (law @ matrix)[z] for z in range(3)) for w in range(3)
    ]
    path = likeliest(operator_of(Table.of(matrix)), counts, law, 1e-9, 1).path
    twice = np.array(by_hand)
    twice = twice * (matrix @ (counts / 10 / (twice @ matrix)))
    assert (
        path[1] >= counts @ np.log(twice @ matrix) - 1e-12
    )  # two updates, and an extrapolation only if it is likelier


def test_both_ways_agree_inside() -> None:
    """A square channel of full rank, all counts positive: the likeliest histogram is the inverse."""
    matrix, true = spread(3, 1.5), np.full(9, 1000)
    outputs = put_through(matrix, true, np.random.default_rng(0))
    one, two = invert(matrix, outputs), estimate(matrix, outputs, gap=1e-8)
    assert (one.values > 0).all()
    assert two.values == pytest.approx(one.values, abs=0.5)
    assert np.diagonal(two.covariance) == pytest.approx(np.diagonal(one.covariance), rel=0.05)


def test_it_beats_the_inverse_where_counts_are_sparse() -> None:
    matrix, true = spread(6, 0.7), np.zeros(36, dtype=int)
    true[[7, 8, 28]] = 500, 300, 1200
    outputs = put_through(matrix, true, np.random.default_rng(5))
    one, two = invert(matrix, outputs), estimate(matrix, outputs)
    assert np.abs(two.values - true).sum() < 0.5 * np.abs(one.values - true).sum()
    assert (two.values >= 0).all() and two.values.sum() == pytest.approx(2000)
    assert two.law.sum() == pytest.approx(1) and (two.lower >= 0).all() and (two.upper <= 2000).all()


def test_what_is_not_identified_is_said_and_has_no_interval() -> None:
    """Two values share a row; the others are told. Their sum is known, each of them is not."""
    matrix = np.array([[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    found = estimate(matrix, [450, 300, 250])
    assert found.rank == 3 and found.identified.tolist() == [False, False, True, True]
    assert not found.is_identified and str(found).startswith(
        "not identified: the channel has rank 3 for 4 values"
    )
    assert "2 of the counts are determined" in str(found)
    assert found.lower[:2].tolist() == [0, 0] and found.upper[:2].tolist() == [1000, 1000]
    apart = invert(matrix[1:], [450, 300, 250])
    assert found.values[2:] == pytest.approx(apart.values[1:], abs=1)
    assert found.upper[2:] - found.lower[2:] == pytest.approx((apart.upper - apart.lower)[1:], rel=0.05)
    other = estimate(matrix, [450, 300, 250], start=[0.7, 0.1, 0.1, 0.1])  # another of the likeliest
    assert other.log_likelihood == pytest.approx(found.log_likelihood, abs=0.02)
    assert abs(other.values[0] - found.values[0]) > 50
    with pytest.raises(Unsupported, match="not identified"):
        found.total([0, 1])


def test_a_channel_that_tells_nothing() -> None:
    found = estimate(np.tile([0.25, 0.75], (3, 1)), [30, 70])
    assert found.rank == 1 and not found.identified.any()
    assert found.values == pytest.approx(np.full(3, 100 / 3))  # where it started


def test_degenerate_channels() -> None:
    one = invert([[1.0]], [7])
    assert one.values.tolist() == [7.0] and one.covariance.tolist() == [[0.0]]
    assert estimate([[0.25, 0.75]], [3, 4]).values.tolist() == [7.0]
    truth = estimate(np.eye(3), [5, 0, 2])
    assert truth.values == pytest.approx([5, 0, 2], abs=0.01)
    assert truth.lower[0] == pytest.approx(5, abs=0.01) == truth.upper[0]


# ---------- channels ----------


def test_channels_and_matrices_agree() -> None:
    matrix = spread(3, 1.0)
    domain = td.Domain(x=td.Numeric(0, 3, cells=3), y=td.Numeric(0, 3, cells=3))
    outputs = np.arange(1, 10)
    made = Channel.of_matrix(matrix, domain)
    for way in (invert, estimate):
        assert way(made, outputs).values == pytest.approx(way(matrix, outputs).values)
    twice = made.then(made)
    assert invert(twice, outputs).values == pytest.approx(invert(matrix @ matrix, outputs).values)


def test_inputs_that_share_a_row_are_not_told_apart() -> None:
    law = Table.of([[0.9, 0.1], [0.2, 0.8]], row_of=np.array([0, 1, 1]))
    found = estimate(Channel(plain_domain(3), law, plain_domain(2)), [40, 60])
    assert found.rank == 2 and found.identified.tolist() == [True, False, False]


def shift(rows: int, columns: int, seed: int = 0) -> Shift:
    drop = np.abs(np.arange(1 - rows, rows))[:, None] + np.abs(np.arange(1 - columns, columns))
    weight = np.exp(-0.8 * drop) * np.random.default_rng(seed).uniform(0.8, 1.2, drop.shape)
    return Shift.of(weight / weight.sum())


@pytest.mark.parametrize("shape", [(1, 5), (4, 7), (6, 1), (1, 1)])
def test_translation_invariant_laws_by_transforms(shape: tuple[int, int]) -> None:
    law = shift(*shape)
    matrix, rng = law.rows(np.arange(law.n_inputs)), np.random.default_rng(3)
    value = rng.random(law.n_inputs)
    assert Moves(law).push(value) == pytest.approx(value @ matrix)
    assert Moves(law).pull(value) == pytest.approx(matrix @ value)


def test_the_public_name_stays_a_function() -> None:
    """A module of the same name would take its place once it is imported."""
    assert td.channels.estimate is estimate and td.channels.invert is invert


def test_a_large_grid_without_a_matrix() -> None:
    """66 × 66 cells: 19 million probabilities that are never written out."""
    n, rng = 66, np.random.default_rng(8)
    law = shift(n, n)
    true = np.zeros(n * n, dtype=int)
    true[rng.integers(0, n * n, 30)] += 2000
    domain = td.Domain(x=td.Numeric(0, n, cells=n), y=td.Numeric(0, n, cells=n))
    made = Channel(domain, law)
    held = np.flatnonzero(true)
    outputs = put_through(law.rows(held), true[held], rng)
    found = estimate(made, outputs, gap=100)
    assert found.gap <= 100 and found.rank is None and found.covariance is None
    assert not found.identified.any() and "not worked out" in str(found)
    assert found.values[held].sum() > 0.8 * true.sum()
    with pytest.raises(Unsupported, match="2\\^24"):
        invert(made, outputs)


def test_bootstrap_intervals_of_rows_and_of_persons() -> None:
    rng = np.random.default_rng(3)
    matrix, true = response(4, 0.7), np.array([400, 300, 200, 100])
    outputs = put_through(matrix, true, rng)
    low, high = bootstrap(matrix, outputs, np.random.default_rng(1), resamples=100)
    again = bootstrap(matrix, outputs, np.random.default_rng(1), resamples=100)
    found = estimate(matrix, outputs)
    assert np.array_equal(low, again[0]) and (low < found.values).all() and (found.values < high).all()
    # Rows are resampled as if drawn from a population: longer than an interval about these rows.
    assert ((high - low) > 0.9 * (found.upper - found.lower)).all()
    persons = np.repeat(np.eye(4), outputs, axis=0) * 5
    wide = bootstrap(matrix, persons, np.random.default_rng(1), resamples=100)
    assert ((wide[1] - wide[0]) > 3 * (high - low)).all()


# ---------- refusals ----------


@pytest.mark.parametrize("way", [invert, estimate])
@pytest.mark.parametrize(
    ("channel", "outputs", "says"),
    [
        (np.eye(2), [1, 2, 3], "2 outputs"),
        (np.eye(2), [0, 0], "nothing is counted"),
        (np.eye(2), [1, -1], "below 0"),
        (np.eye(2), [1, math.nan], "finite"),
        (np.eye(2), [], "empty"),
        (np.eye(2), ["a", "b"], "numbers"),
        (np.eye(2), [[[1, 2]]], "shape"),
        (np.eye(2), [[1, 2]], "two persons"),
        ([[0.5, 0.5, 0]], [1, 1, 1], "never gives"),
        ([[0.5, 0.4]], [1, 1], "sum to 1"),
    ],
)
def test_mistakes_are_named(way: Any, channel: Any, outputs: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        way(channel, outputs)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"level": 1.0}, "level"),
        ({"level": math.nan}, "level"),
        ({"gap": 0.0}, "gap"),
        ({"rounds": 0}, "rounds"),
        ({"start": [1.0]}, "start"),
        ({"start": [0.0, 0.0]}, "start"),
        ({"start": [1.0, 0.0]}, "impossible"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        estimate(np.eye(2), [1, 2], **settings)
