"""Products of strategies beside the matrices they stand for, written out cell by cell on tiny domains."""

from __future__ import annotations

import itertools
import math
from functools import reduce

import numpy as np
import pytest

from tetraodon.axes import Axis
from tetraodon.errors import Unsupported
from tetraodon.mechanisms import kronecker, products
from tetraodon.mechanisms.dense import DenseWeights
from tetraodon.mechanisms.kronecker import Kronecker, kronecker_strategy, options
from tetraodon.mechanisms.moves import Moves, gram
from tetraodon.mechanisms.optimised import gaussian_strategy
from tetraodon.mechanisms.products import Term, price
from tetraodon.workload import AllRanges, Prefixes


def whole(factors) -> np.ndarray:
    """The product as a matrix of Python integers over all cells, in row-major order."""
    return reduce(np.kron, [f.astype(object) for f in factors])


def slowly(terms: list[Term], attributes: list[Moves], graph: str, power: int) -> int:
    """The price from the definition: every pair of cells that the graph joins."""
    sizes = [f.shape[1] for f in terms[0].factors]
    cells = list(itertools.product(*map(range, sizes)))
    at = {c: i for i, c in enumerate(cells)}
    stacked = [(t.weight, whole(t.factors)) for t in terms]

    def cost(x: int, y: int | None) -> int:
        total = 0
        for weight, matrix in stacked:
            move = matrix[:, x] - (0 if y is None else matrix[:, y])
            total += weight * sum(abs(int(v)) ** power for v in move)
        return total

    if graph == "full":
        return max((cost(x, y) for x, y in itertools.combinations(range(len(cells)), 2)), default=0)
    found = [0]
    for cell in cells:
        for j, moves in enumerate(attributes):
            for a, b in moves.pairs.tolist():
                if cell[j] == a:
                    found.append(cost(at[cell], at[(*cell[:j], b, *cell[j + 1 :])]))
            found.append(int(np.ceil(moves.leaves[cell[j]])) * cost(at[cell], None))
    return max(found)


def random_case(seed: int) -> tuple[list[Term], list[Moves]]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, int(rng.integers(1, 4))).tolist()
    large = int(rng.choice([1, 1, 1000]))
    attributes, terms = [], []
    for size in sizes:
        pairs = [p for p in itertools.combinations(range(size), 2) if rng.random() < 0.7]
        leaves = rng.integers(0, 3, size) * (rng.random() < 0.3)
        attributes.append(Moves(size, np.array(pairs, dtype=np.int64).reshape(-1, 2), leaves.astype(float)))
    for _ in range(int(rng.integers(1, 4))):
        factors = tuple(rng.integers(-2, 3, (int(rng.integers(1, 4)), size)) * large for size in sizes)
        terms.append(Term(factors, int(rng.integers(1, 9))))
    return terms, attributes


@pytest.mark.parametrize("graph", ["cartesian", "full"])
@pytest.mark.parametrize("seed", range(40))
def test_price_is_exact(seed: int, graph: str) -> None:
    terms, attributes = random_case(seed)
    for power in (1, 2):
        assert price(terms, attributes, graph, power) == (slowly(terms, attributes, graph, power), True)


@pytest.mark.parametrize("graph", ["cartesian", "full"])
@pytest.mark.parametrize("seed", range(40))
def test_price_of_large_cases_is_a_bound(seed: int, graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "FRONT", 0)
    monkeypatch.setattr(products, "CELLS", 0)
    terms, attributes = random_case(seed)
    for power in (1, 2):
        found, exact = price(terms, attributes, graph, power)
        true = slowly(terms, attributes, graph, power)
        assert found >= true
        assert not exact or found == true


def test_bounds_are_close_where_terms_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "CELLS", 0)
    eye = np.eye(3, dtype=np.int64)
    assert price([Term((eye, eye), 7)], [], "full", 2) == (14, False)
    assert price([Term((eye, eye), 7)], [], "full", 1) == (14, False)


def test_products_beyond_64_bits_are_priced_in_whole_numbers() -> None:
    big = np.array([[2**20, -(2**20)]])
    line = Moves.of(Axis(2, window=1), 2)
    terms = [Term((big, big, big, big), 3)]
    assert price(terms, [line] * 4, "cartesian", 2) == (3 * 4 * 2**160, True)
    assert price(terms, [line] * 4, "full", 2) == (3 * 4 * 2**160, True)


@pytest.mark.parametrize("seed", range(15))
def test_apply_estimate_and_error_are_those_of_the_whole_matrix(seed: int) -> None:
    terms, _ = random_case(seed)
    rng = np.random.default_rng(seed)
    for term in terms:
        sizes = [f.shape[1] for f in term.factors]
        table = rng.integers(0, 9, sizes)
        matrix = whole(term.factors).astype(np.int64)
        values = term.apply(table)
        assert np.array_equal(values.reshape(-1), matrix @ table.reshape(-1))
        noisy = values + rng.normal(size=values.shape)
        inverse = np.linalg.pinv(matrix.astype(float))
        plain = inverse @ noisy.reshape(-1)
        np.testing.assert_allclose(term.estimate(noisy).reshape(-1), plain, atol=1e-8)
        squares = [(w := rng.integers(-2, 3, (3, s)).astype(float)).T @ w for s in sizes]
        asked = reduce(np.kron, squares)
        assert term.error(squares) == pytest.approx(float((asked * (inverse @ inverse.T)).sum()), abs=1e-9)


def test_a_public_total_is_held() -> None:
    rng = np.random.default_rng(5)
    factors = (rng.integers(-3, 4, (4, 3)), rng.integers(-3, 4, (3, 2)))
    term = Term(factors, 1)
    squares = [gram(AllRanges(), 3)[0], np.eye(2)]
    weights = DenseWeights.of(whole(factors).astype(np.int64), 1.0, np.ones((1, 6), dtype=np.int64))
    asked = np.kron(*squares)
    assert term.error_with_total(squares) == pytest.approx(float((asked * weights.covariance).sum()))
    assert term.error_with_total(squares) < term.error(squares)
    noisy = rng.normal(size=(4, 3)) * 10
    told = weights.estimate(np.append(noisy.reshape(-1), 17.0)[None, :])
    np.testing.assert_allclose(term.estimate(noisy, total=17).reshape(-1), told[0], atol=1e-9)


def test_rows_beyond_64_bits_are_refused() -> None:
    big = np.array([[2**20]])
    with pytest.raises(Unsupported, match="2\\^61"):
        Term((big, big, big), 1).apply(np.array([[[2]]]))


def dense_error(found: Kronecker, workloads: list[list[np.ndarray]]) -> float:
    """Summed squared error at ε = 1 or ρ = 1/2, term by term, from the written-out matrices."""
    total = 0.0
    for term, squares in zip(found.terms, workloads, strict=True):
        inverse = np.linalg.pinv(whole(term.factors).astype(float))
        scale = found.move / term.weight
        noise = scale if found.power == 2 else 2 * scale**2
        total += float((reduce(np.kron, squares) * (inverse @ inverse.T)).sum()) * noise
    return total


LINE3, LINE4 = Moves.of(Axis(3, window=1), 3), Moves.of(Axis(4, window=1), 4)
RANGES3, RANGES4 = gram(AllRanges(), 3)[0], gram(AllRanges(), 4)[0]
CASES = [
    ([[RANGES3, RANGES4]], [LINE3, LINE4]),
    ([[np.eye(3), np.ones((4, 4))], [np.ones((3, 3)), RANGES4], [np.ones((3, 3)), np.ones((4, 4))]], [LINE3, LINE4]),
    ([[gram(Prefixes(), 3)[0], np.eye(4)], [np.eye(3), RANGES4]], [LINE3, Moves(4, LINE4.pairs[:0], np.zeros(4))]),
    ([[RANGES3, RANGES4]], [Moves(3, LINE3.pairs, np.array([0.0, 0, 1])), LINE4]),
]  # fmt: skip


@pytest.mark.parametrize("graph", ["cartesian", "full"])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_strategies_are_priced_and_promise_their_error(
    case: int, power: int, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kronecker, "WORK", 1e6)
    monkeypatch.setattr(kronecker, "EDGES", (4.0, 2.0, 1.0, 0.5, 0.25))
    workloads, attributes = CASES[case]
    found = kronecker_strategy(workloads, attributes, graph, power, 10**6)
    terms = list(found.terms)
    assert (found.move, found.is_exact) == (slowly(terms, attributes, graph, power), True)
    assert found.error == pytest.approx(dense_error(found, workloads), rel=1e-9)
    for term, squares in zip(terms, workloads, strict=True):
        assert term.ceiling * 10**6 < 2**61
        for factor, square in zip(term.factors, squares, strict=True):
            kept = np.linalg.pinv(factor.astype(float)) @ factor
            np.testing.assert_allclose(square @ kept, square, atol=1e-7 * float(square.max()))
    # Equal shares of noise on plain factors (cells where anything is asked of an attribute) are no better.
    plain = [
        Term(tuple(np.eye(len(v)) if v.min() < v.max() else np.ones((1, len(v))) for v in squares), 1)
        for squares in workloads
    ]
    plain = [Term(tuple(f.astype(np.int64) for f in t.factors), 1) for t in plain]
    move = slowly(plain, attributes, graph, power)
    named = Kronecker(tuple(plain), move, True, power, 0.0)
    assert found.error <= dense_error(named, workloads) * 1.001


def test_two_lines_beat_named_factors_and_respect_the_bound_of_all_strategies() -> None:
    squares = [gram(AllRanges(), 6)[0]] * 2
    line = Moves.of(Axis(6, window=1), 6)
    found = kronecker_strategy([squares], [line, line], "cartesian", 2, 10**6)
    prefixes = np.tril(np.ones((6, 6), dtype=np.int64))
    eye = np.eye(6, dtype=np.int64)
    for factors in itertools.product((prefixes, eye), repeat=2):
        term = Term(factors, 1)
        named = Kronecker((term,), slowly([term], [line, line], "cartesian", 2), True, 2, 0.0)
        assert found.error < 0.95 * dense_error(named, [squares])
    at = np.arange(36).reshape(6, 6)
    pairs = np.concatenate(
        [np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2), np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)]
    )
    # Without a public total: every cell can also be left, at next to no cost.
    free = Moves(36, pairs, np.full(36, 1e-3))
    bound = gaussian_strategy(np.kron(*squares), free, 0.01).bound
    assert bound <= found.error <= 2 * bound


def test_the_choice_of_edges_is_near_the_best_of_many() -> None:
    """For one product the whole trade-off is one number κ: no finer grid does much better."""
    squares, line = (
        [gram(AllRanges(), 8)[0], np.eye(5)],
        [Moves.of(Axis(8, window=1), 8), Moves.of(Axis(5, window=4), 5)],
    )
    found = kronecker_strategy([squares], line, "cartesian", 2, 10**3)
    tried = []
    for edge in np.geomspace(0.05, 4, 60):
        errors = []
        for square, moves in zip(squares, line, strict=True):
            best = gaussian_strategy(square, Moves(moves.size, moves.pairs, np.full(moves.size, edge)), 1e-3)
            errors.append(best.value / edge)
        tried.append(math.prod(errors) * edge)
    assert found.error <= 1.02 * min(tried)
    assert found.error >= 0.98 * min(tried)


def test_factors_and_weights_are_about_the_best_of_all_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terms that share an edge's price: all factors on offer with all weights on a grid."""
    monkeypatch.setattr(kronecker, "EDGES", (4.0, 1.0, 0.25))
    monkeypatch.setattr(kronecker, "FANOUTS", ())
    attributes = [LINE4, Moves.of(Axis(3, window=2), 3)]
    for asked in (
        [[RANGES4, np.eye(3)], [np.eye(4), np.ones((3, 3))]],
        [[RANGES4, RANGES3], [np.ones((4, 4)), np.eye(3)]],
    ):
        found = kronecker_strategy(asked, attributes, "cartesian", 2, 1000)
        offered = [[options(v, m, 2) for v, m in zip(squares, attributes, strict=True)] for squares in asked]
        least = math.inf
        for first, second in itertools.product(*(itertools.product(*term) for term in offered)):
            errors = [math.prod(o.error for o in term) for term in (first, second)]
            for ratio in np.geomspace(0.02, 50, 80):
                price_ = max(x.edge + ratio * y.edge for x, y in zip(first, second, strict=True))
                least = min(least, (errors[0] + errors[1] / ratio) * price_)
        assert 0.95 * least <= found.error <= 1.005 * least


def test_options_that_cannot_answer_are_left_out() -> None:
    moves = Moves.of(Axis(4, window=1), 4)
    given = np.ones((1, 4))
    assert all(len(o.matrix) > 1 for o in options(np.eye(4), moves, 2, [given]))
    [only] = options(np.ones((4, 4)), moves, 2)
    assert only.matrix.shape == (1, 4) and only.edge == 0 and only.error == 1


def test_no_room_for_records_is_refused() -> None:
    line = Moves.of(Axis(4, window=1), 4)
    with pytest.raises(Unsupported, match="2\\^61"):
        kronecker_strategy([[RANGES4] * 6], [line] * 6, "cartesian", 2, 2**40)


def test_weights_share_the_budget_as_a_fine_search_does() -> None:
    found = kronecker_strategy(
        [[np.eye(4), np.ones((4, 4))], [np.ones((4, 4)), RANGES4]], [LINE4] * 2, "full", 2, 100
    )
    first, second = found.terms
    own = []
    for ratio in np.geomspace(0.1, 10, 101):
        terms = [
            Term(first.factors, 1000),
            Term(second.factors, round(1000 * second.weight / first.weight * ratio)),
        ]
        move = slowly(terms, [], "full", 2)
        own.append(
            first.error([np.eye(4), np.ones((4, 4))]) * move / 1000
            + second.error([np.ones((4, 4)), RANGES4]) * move / terms[1].weight
        )
    assert found.error <= 1.05 * min(own)
