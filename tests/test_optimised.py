"""Optimised strategies: golden optima, certificates rechecked from the definitions, and rounding that keeps its promise.

Nothing here uses the package's own algebra: workloads are written out row by row, moves column by column.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import tetraodon as td
from tetraodon.axes import Axis
from tetraodon.errors import Unsupported
from tetraodon.mechanisms.dense import DenseWeights
from tetraodon.mechanisms.moves import Moves, features, gram, in_features, in_units, merged, moves_along
from tetraodon.mechanisms.optimised import (
    Optimum,
    gaussian_strategy,
    laplace_strategy,
    proved_bound,
    whole_strategy,
)
from tetraodon.mechanisms.rounding import exact_gram, largest, rounded
from tetraodon.sensitivity import largest_move
from tetraodon.sensitivity.rows import Matrix as rows_of
from tetraodon.workload import AllRanges, Cells, Prefixes, Rows, SomeRanges, Workload, resolve


def written_out(workload: Workload, size: int) -> np.ndarray:
    """The rows of a workload."""
    if isinstance(workload, Cells):
        spans = [(i, i + 1) for i in range(size)]
    elif isinstance(workload, Prefixes):
        spans = [(0, i + 1) for i in range(size)]
    elif isinstance(workload, AllRanges):
        spans = [(i, j) for i in range(size) for j in range(i + 1, size + 1)]
    elif isinstance(workload, SomeRanges):
        spans = list(zip(workload.lows.tolist(), workload.highs.tolist(), strict=True))
    else:
        return workload.matrix.astype(float)
    return np.array([[float(low <= a < high) for a in range(size)] for low, high in spans])


def columns(moves: Moves) -> np.ndarray:
    """p_e of every move, shape (size, moves), leaves last."""
    listed = []
    for a, b in moves.pairs.tolist():
        p = np.zeros(moves.size)
        p[a], p[b] = 1, -1
        listed.append(p)
    listed += [np.sqrt(c) * np.eye(moves.size)[a] for a, c in enumerate(moves.leaves.tolist()) if c > 0]
    return np.array(listed).reshape(-1, moves.size).T


def public(moves: Moves) -> np.ndarray:
    """The public totals, by flooding."""
    left, rows = set(range(moves.size)), []
    while left:
        found = {left.pop()}
        grown = True
        while grown:
            grown = False
            for a, b in moves.pairs.tolist():
                if (a in found) != (b in found):
                    found |= {a, b}
                    grown = True
        left -= found
        if not any(moves.leaves[a] > 0 for a in found):
            rows.append([float(a in found) for a in range(moves.size)])
    return np.array(rows).reshape(-1, moves.size)


def error(workload: np.ndarray, strategy: np.ndarray, totals: np.ndarray) -> float:
    """Summed variance of the answers by least squares with unit noise, public totals held: through a null space."""
    _, s, vt = np.linalg.svd(np.concatenate([totals, np.zeros((1, totals.shape[1]))]))
    free = vt[int((s > 1e-9).sum()) :].T
    if not free.shape[1]:
        return 0.0
    inverse = np.linalg.pinv(strategy @ free, rcond=1e-9)
    answers = workload @ free
    assert np.abs(answers @ inverse @ (strategy @ free) - answers).max() < 1e-6 * max(
        1, np.abs(answers).max()
    )
    return float(((answers @ inverse) ** 2).sum())


def check(workload: np.ndarray, moves: Moves, found: Optimum, tolerance: float) -> None:
    """Primal and dual values of an optimum, from the definitions."""
    ends, totals = columns(moves), public(moves)
    assert (found.weights >= 0).all() and (found.leaving >= 0).all()
    weights = np.concatenate([found.weights, found.leaving[moves.leaves > 0]])
    if found.value == 0:
        assert error(workload, np.zeros((1, moves.size)), totals) == 0
        return
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    proved = np.linalg.svd(workload @ ends * np.sqrt(weights), compute_uv=False).sum() ** 2
    assert found.bound == pytest.approx(proved, rel=1e-6)
    square = workload.T @ workload
    assert proved_bound(square, moves, found.weights, found.leaving) == pytest.approx(proved, rel=1e-6)
    # Weights that add up to more than 1 prove no more.
    assert proved_bound(square, moves, 2 * found.weights, 2 * found.leaving) == pytest.approx(
        proved, rel=1e-6
    )
    assert ((found.matrix @ ends) ** 2).sum(axis=0).max() <= 1 + 1e-9
    assert found.value == pytest.approx(error(workload, found.matrix, totals), rel=1e-5)
    assert found.bound <= found.value * (1 + 1e-9)
    assert found.value <= (1 + tolerance) * found.bound


@pytest.mark.parametrize(
    ("size", "theta", "golden"),
    [
        (16, 1, 1.7143), (16, 2, 2.5919), (16, 4, 3.5022), (16, 15, 4.2449),
        (64, 1, 1.9176), (64, 2, 3.058), (64, 4, 4.480),
    ],
)  # fmt: skip
def test_golden_optima_of_all_ranges(size: int, theta: int, golden: float) -> None:
    square, count = gram(AllRanges(), size)
    moves = Moves.of(Axis(size, window=theta), size)
    found = gaussian_strategy(square, moves)
    assert count == size * (size + 1) // 2
    assert found.value / count == pytest.approx(golden, rel=0.002)
    assert found.bound / count == pytest.approx(golden, rel=0.002)
    if size == 16:
        check(written_out(AllRanges(), size), moves, found, 1e-3)


def test_golden_dual_of_two_steps() -> None:
    found = gaussian_strategy(gram(AllRanges(), 16)[0], Moves.of(Axis(16, window=2), 16))
    assert 2.5894 / 1.001 <= found.bound / 136 <= 2.5919


def random_moves(rng: np.random.Generator, size: int) -> Moves:
    """Interval graphs, partitions, stars, lists of pairs and ways to leave, at random."""
    kind = int(rng.integers(5))
    leaves = np.where(rng.random(size) < 0.3, rng.integers(1, 3, size), 0) if rng.random() < 0.4 else None
    if kind == 0:
        return Moves.of(Axis(size, window=int(rng.integers(1, size))), size, leaves)
    if kind == 1:
        starts = np.maximum.accumulate(np.minimum(np.arange(size), rng.integers(0, size, size)))
        return Moves.of(Axis(size, starts=np.minimum(starts, np.arange(size))), size, leaves)
    if kind == 2:
        mask = rng.random(size) < 0.6
        mask[-1] = False
        return Moves.of(Axis(size - 1, window=int(rng.integers(0, size - 1)), stars=(mask,)), size, leaves)
    if kind == 3:  # one more position, which counts nowhere
        return Moves.of(Axis(size, window=1, stars=(True,)), size, leaves)
    pairs = np.array([p for p in itertools.combinations(range(size), 2) if rng.random() < 0.3])
    return Moves.of(Axis(size, pairs=pairs.reshape(-1, 2).astype(np.int64)), size, leaves)


def random_workload(rng: np.random.Generator, size: int) -> Workload:
    kind = int(rng.integers(5))
    if kind == 3:
        ends = np.sort(rng.integers(0, size + 1, (int(rng.integers(1, 5)), 2)), axis=1)
        ends = ends[ends[:, 0] < ends[:, 1]]
        return SomeRanges(ends[:, 0], ends[:, 1]) if len(ends) else Cells()
    if kind == 4:
        return Rows(rng.integers(-3, 4, (int(rng.integers(1, 6)), size)))
    return (Cells(), Prefixes(), AllRanges())[kind]


@pytest.mark.parametrize("seed", range(60))
def test_certificates_of_random_problems(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 10))
    moves, workload = random_moves(rng, size), random_workload(rng, size)
    rows = written_out(workload, size)
    square, count = gram(workload, size)
    assert np.array_equal(square, rows.T @ rows) and count == len(rows)
    check(rows, moves, gaussian_strategy(square, moves), 0.01)


@pytest.mark.parametrize(("size", "theta"), [(9, 2), (10, 3), (12, 7), (7, 1)])
def test_symmetry_changes_nothing(size: int, theta: int) -> None:
    rows = written_out(AllRanges(), size)
    mixed = np.random.default_rng(size).permutation(size)
    window = Moves.of(Axis(size, window=theta), size)
    shuffled = Moves.of(Axis(size, pairs=np.sort(mixed[window.pairs], axis=1)), size)
    assert window.is_symmetric and not shuffled.is_symmetric
    plain = gaussian_strategy(rows.T @ rows, window, 1e-4)
    other = rows[:, np.argsort(mixed)]
    assert gaussian_strategy(other.T @ other, shuffled, 1e-4).value == pytest.approx(plain.value, rel=2e-4)
    check(other, shuffled, gaussian_strategy(other.T @ other, shuffled), 1e-3)


@pytest.mark.parametrize(
    "moves",
    [
        Moves.of(Axis(9, starts=np.array([0, 0, 0, 3, 3, 3, 6, 6, 6])), 9),
        Moves.of(Axis(8, starts=np.array([0, 0, 0, 0, 4, 4, 4, 4])), 8),
        Moves.of(Axis(7, window=2), 7, np.array([2.0, 2, 2, 2, 2, 2, 2])),
        Moves.of(Axis(6, pairs=np.array([[0, 5], [1, 4], [2, 3]])), 6),
        Moves.of(Axis(6, pairs=np.array([[0, 1], [4, 5], [2, 3]])), 6, np.array([0.0, 0, 1, 1, 0, 0])),
        Moves.of(Axis(6, pairs=np.array([[0, 2], [3, 5]])), 6),
    ],
)  # fmt: skip
def test_symmetric_graphs_of_several_components(moves: Moves) -> None:
    assert moves.is_symmetric
    for workload in (Cells(), AllRanges()):
        rows = written_out(workload, moves.size)
        check(rows, moves, gaussian_strategy(rows.T @ rows, moves), 1e-3)


def test_a_component_across_the_middle_and_its_mirror_are_not_folded() -> None:
    moves = Moves.of(Axis(6, pairs=np.array([[0, 4], [1, 5]])), 6)
    assert not moves.is_symmetric
    check(np.eye(6), moves, gaussian_strategy(np.eye(6), moves), 1e-3)


def test_cells_that_nothing_tells_apart_are_merged() -> None:
    workload = SomeRanges(np.array([3, 20, 10]), np.array([17, 60, 40]))
    square, _ = gram(workload, 200)
    moves = Moves.of(Axis(200, window=3), 200)
    small = merged(square, moves)
    assert small.moves.size == 6 and np.array_equal(small.square[small.place][:, small.place], square)
    found = gaussian_strategy(square, moves)
    check(written_out(workload, 200), moves, found, 0.01)
    # Cells of two components are never merged, whatever is asked of them.
    parted = Moves.of(Axis(4, starts=np.array([0, 0, 2, 2])), 4)
    assert merged(np.ones((4, 4)), parted).place.tolist() == [0, 0, 1, 1]


def test_features_are_coordinates_modulo_public_totals() -> None:
    moves = Moves.of(Axis(5, pairs=np.array([[0, 2], [1, 4]])), 5, np.array([0.0, 1, 0, 0, 0]))
    told, after = features(moves.components[0], moves.known)
    rows = in_units(np.eye(len(told)), told, after, 5)
    assert len(told) == 3  # {0, 2} has one, {1, 4} two, {3} none
    assert np.array_equal(in_features(rows, told, after), np.eye(3))
    assert not rows[:, [2, 3]].any()
    assert np.array_equal(moves.totals, [[1, 0, 1, 0, 0], [0, 0, 0, 1, 0]])


DOMAIN = td.Domain(
    x=td.Integer(0, 6, missing="secret"), y=td.Integer(0, 4), z=td.Categorical(["p", "q", "r"], other="o")
)
POLICIES = [
    td.Full(),
    td.AttributeWise(),
    td.AttributeWise(x=td.Within(2), y=td.Within(1)),
    td.AttributeWise(x=td.Full(), z=td.Full()),
    td.Partition(blocks={"x": 3, "y": 5}),
    td.Within(2, metric=td.L1(x=1, y=1)),
    td.Within(2, on="y"),
    td.Nothing(),
]
QUERIES = [
    td.CDF("y"),
    td.Ranges("y", by="z"),
    td.Histogram("x", "z"),
    td.Histogram("x", bins={"x": 2}, where={"y": (1, 3)}),
    td.CDF("y", by="x", where={"z": ["p", "q"]}),
    td.Histogram("z", "y", where={"y": (1, 3)}),
]


@pytest.mark.parametrize("query", range(len(QUERIES)))
@pytest.mark.parametrize("policy", range(len(POLICIES)))
def test_moves_along_a_query_cost_what_the_policy_says(query: int, policy: int) -> None:
    asked = resolve(QUERIES[query], DOMAIN)
    hood = td.Policy(DOMAIN, POLICIES[policy]).neighbourhood
    moves = moves_along(asked, hood.graph)
    rng = np.random.default_rng(policy)
    matrix = rng.integers(-5, 6, (3, asked.n_positions))
    matrix[0] = 1  # a total: it moves only if a record can leave
    for power in (1, 2):
        assert largest(matrix, moves, power) == largest_move(asked, hood, (rows_of(matrix),), power).value


def test_moves_along_listed_edges_are_at_least_what_the_policy_says() -> None:
    domain = td.Domain(x=td.Integer(0, 3), z=td.Categorical(["p", "q", "r"]))
    pairs = [((0, "p"), (1, "p")), ((1, "p"), (2, "q")), ((3, "q"), (3, "r")), ((2, "q"), (0, "q"))]
    hood = td.Policy(domain, td.Edges(pairs)).neighbourhood
    for query in (td.CDF("x"), td.CDF("x", by="z"), td.CDF("x", where={"z": ["p", "q"]})):
        asked = resolve(query, domain)
        moves = moves_along(asked, hood.graph)
        for seed in range(5):
            matrix = np.random.default_rng(seed).integers(-5, 6, (2, 4))
            for power in (1, 2):
                true = largest_move(asked, hood, (rows_of(matrix),), power).value
                assert largest(matrix, moves, power) >= true
    asked = resolve(td.CDF("x", by="z"), domain)
    moves = moves_along(asked, hood.graph)
    assert moves.pairs.tolist() == [[0, 1], [0, 2]] and moves.leaves.tolist() == [0, 2, 2, 2]


@pytest.mark.parametrize("query", range(5))
@pytest.mark.parametrize("policy", [0, 2, 4, 5])
def test_whole_strategies_keep_the_promised_error(query: int, policy: int) -> None:
    asked = resolve(QUERIES[query], DOMAIN)
    hood = td.Policy(DOMAIN, POLICIES[policy]).neighbourhood
    rows = written_out(asked.workload, asked.n_positions)
    for power in (1, 2):
        found = whole_strategy(asked.workload, moves_along(asked, hood.graph), power, 10**6, work=1e7)
        weights = DenseWeights.of(found.matrix, 1.0, found.exact)
        # Public totals cost nothing under the policy, and no answer is left open.
        assert not len(found.exact) or largest_move(asked, hood, (rows_of(found.exact),), power).value == 0
        own = float(weights.rows_variance(rows).sum())
        if not len(found.matrix):
            assert own == found.value == 0
            continue
        move = largest_move(asked, hood, (rows_of(found.matrix),), power).value
        assert own * float(move) ** (2 / power) == pytest.approx(found.value, rel=5e-3)
        assert found.bound <= found.value


def test_4096_positions_are_the_limit() -> None:
    with pytest.raises(Unsupported, match="4,096"):
        gram(AllRanges(), 4097)
    with pytest.raises(Unsupported, match="4,096"):
        Moves.of(Axis(5000, window=4999), 5000)
    with pytest.raises(Unsupported, match="512"):
        laplace_strategy(np.eye(513), Moves.of(Axis(513, window=1), 513))


def trees(size: int, theta: int) -> list[np.ndarray]:
    """Named strategies with plain budgets: cells, prefix sums, trees inside blocks."""
    listed = [np.eye(size), np.tril(np.ones((size, size)))[:-1]]
    for block in (theta, 2 * theta, size):
        for fanout in (2, 4):
            rows = [np.arange(size) < end for end in range(block, size, block)]
            waiting = [(s, min(block, size - s)) for s in range(0, size, block)]
            while waiting:
                start, width = waiting.pop()
                step = -(-width // fanout)
                for at in range(start, start + width, step) if width > 1 else ():
                    child = min(step, start + width - at)
                    rows.append((np.arange(size) >= at) & (np.arange(size) < at + child))
                    waiting.append((at, child))
            listed.append(np.array(rows, dtype=float))
    return listed


def laplace_error(workload: np.ndarray, moves: Moves, strategy: np.ndarray) -> float:
    """Mean squared error of an answer at ε = 1."""
    moved = np.abs(strategy @ columns(moves)).sum(axis=0).max()
    return 2 * error(workload, strategy, public(moves)) * float(moved) ** 2 / len(workload)


def against_named(size: int, theta: int, work: float) -> float:
    rows, moves = written_out(AllRanges(), size), Moves.of(Axis(size, window=theta), size)
    named = trees(size, theta)
    found = laplace_strategy(rows.T @ rows, moves, named, work)
    own = laplace_error(rows, moves, found.matrix)
    assert own == pytest.approx(2 * found.value / len(rows), rel=1e-6)
    assert np.abs(found.matrix @ columns(moves)).sum(axis=0).max() <= 1 + 1e-9
    assert own <= min(laplace_error(rows, moves, s) for s in named) * (1 + 1e-9)
    return own


def test_laplace_with_next_to_no_work_is_still_the_best_start() -> None:
    rows, moves = written_out(AllRanges(), 12), Moves.of(Axis(12, window=1), 12)
    prefixes = np.tril(np.ones((12, 12)))[:-1]
    found = laplace_strategy(rows.T @ rows, moves, [1000.0 * prefixes, np.zeros((2, 12))], work=0.0)
    assert 2 * found.value / len(rows) <= laplace_error(rows, moves, prefixes) * (1 + 1e-9)


@pytest.mark.parametrize(("theta", "table"), [(2, 12.8), (4, 23.0)])
def test_laplace_at_least_as_good_as_the_table(theta: int, table: float) -> None:
    assert against_named(16, theta, 2e9) <= table


def test_laplace_when_only_some_directions_are_asked_for() -> None:
    rows = written_out(SomeRanges(np.array([1, 4]), np.array([3, 7])), 8)
    moves = Moves.of(Axis(8, window=2), 8)
    found = laplace_strategy(rows.T @ rows, moves, work=2e7)
    assert laplace_error(rows, moves, found.matrix) <= laplace_error(rows, moves, np.eye(8))
    assert laplace_error(rows, moves, found.matrix) == pytest.approx(2 * found.value / 2, rel=1e-3)


def test_laplace_with_cells_that_can_be_left() -> None:
    rows, moves = np.eye(5), Moves.of(Axis(5, window=1), 5, np.full(5, 2.0))
    found = laplace_strategy(rows, moves, work=2e7)
    moved = [np.abs(found.matrix[:, a] - found.matrix[:, b]).sum() for a, b in moves.pairs.tolist()]
    assert max(moved) <= 1 + 1e-9 and 2 * np.abs(found.matrix).sum(axis=0).max() <= 1 + 1e-9
    assert found.value <= 5 * 4 * (1 + 1e-9)  # cells with scale 2


@pytest.mark.slow
@pytest.mark.parametrize("size", [16, 24, 48, 64, 96])
@pytest.mark.parametrize("theta", [2, 4, 8])
def test_laplace_never_worse_than_named(size: int, theta: int) -> None:
    own = against_named(size, theta, 3e10)
    assert own <= {(16, 4): 23.0, (64, 4): 42.8, (16, 2): 12.8}.get((size, theta), np.inf)


def slowly(matrix: np.ndarray, moves: Moves, power: int) -> int:
    """The largest move in Python integers."""
    found = [0]
    for a, b in moves.pairs.tolist():
        found.append(sum(abs(int(r[a]) - int(r[b])) ** power for r in matrix))
    for a, c in enumerate(moves.leaves.tolist()):
        found.append(int(np.ceil(c)) * sum(abs(int(r[a])) ** power for r in matrix))
    return max(found)


@pytest.mark.parametrize("seed", range(25))
def test_rounded_strategies_are_whole_and_lose_nothing(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    size = int(rng.integers(2, 10))
    moves, workload = random_moves(rng, size), random_workload(rng, size)
    rows, totals = written_out(workload, size), public(moves)
    best = gaussian_strategy(rows.T @ rows, moves)
    whole = rounded(best.matrix, rows.T @ rows, moves, 10**9)
    assert whole.dtype == np.int64
    assert int(np.abs(whole).max(initial=0)) * 10**9 < 2**61
    for power in (1, 2):
        assert largest(whole, moves, power) == slowly(whole, moves, power)
    if not len(whole):
        assert best.value == 0
        return
    price = Fraction(largest(whole, moves, 2), 2**32)
    own = error(rows, whole / 2**16, totals) * float(price)
    assert own == pytest.approx(best.value, rel=2e-3, abs=1e-9)
    # The exact residual of W B⁺ B = W with the totals held.
    stacked = np.concatenate([whole / np.abs(whole).max(), totals])
    kept = rows @ np.linalg.pinv(stacked, rcond=1e-10) @ stacked
    assert np.abs(kept - rows).max() < 1e-9 * max(1.0, np.abs(rows).max())


def test_rounding_adds_the_directions_that_it_loses() -> None:
    moves = Moves.of(Axis(4, window=1), 4)
    tiny = np.diag([1.0, 1.0, 1e-9])[:, :3] @ np.tril(np.ones((3, 4)))
    whole = rounded(tiny, np.eye(4), moves, 10)
    stacked = np.concatenate([whole.astype(float), np.ones((1, 4))])
    assert np.linalg.matrix_rank(stacked) == 4
    assert rounded(np.zeros((0, 4)), np.eye(4), moves, 10).shape == (3, 4)
    # Cells that nothing tells apart need no row.
    assert rounded(np.zeros((0, 4)), np.ones((4, 4)), moves, 10).shape == (0, 4)


def test_rows_are_shifted_towards_zero_only_where_the_total_is_public() -> None:
    rows = np.array([[5.0, 6.0, 7.0]])
    closed, open_ = Moves.of(Axis(3, window=1), 3), Moves.of(Axis(3, window=1), 3, np.ones(3))
    assert rounded(rows, np.ones((3, 3)), closed, 1)[0].tolist() == [-65536, 0, 65536]
    assert rounded(rows, np.ones((3, 3)), open_, 1)[0].tolist() == [5 * 65536, 6 * 65536, 7 * 65536]


def test_too_many_records_are_refused() -> None:
    moves = Moves.of(Axis(3, window=1), 3)
    with pytest.raises(Unsupported, match="2\\^61"):
        rounded(np.eye(3), np.eye(3), moves, 2**46)
    with pytest.raises(Unsupported, match="rounded"):
        rounded(np.eye(3) * 2.0**50, np.eye(3), moves, 1)
    assert len(rounded(np.eye(3), np.eye(3), moves, 2**44)) == 3


@pytest.mark.parametrize("size", [1, 2**12, 2**20 + 1, 2**26 - 1, 2**29])
def test_exact_gram(size: int) -> None:
    rng = np.random.default_rng(size)
    matrix = rng.integers(-size, size + 1, (7, 5))
    matrix[0, 0], matrix[1, 1] = size, -size
    true = matrix.astype(object).T @ matrix.astype(object)
    assert exact_gram(matrix).tolist() == true.tolist()
    assert exact_gram(matrix).dtype == np.int64


def test_gram_refuses_what_could_wrap() -> None:
    with pytest.raises(Unsupported):
        exact_gram(np.full((3, 2), 2**30))
    with pytest.raises(Unsupported):
        largest(np.full((4, 2), 2**59), Moves.of(Axis(2, window=1), 2), 1)


def test_the_same_declarations_give_the_same_strategy() -> None:
    square, _ = gram(AllRanges(), 10)
    moves = Moves.of(Axis(10, window=2), 10)
    first, second = (laplace_strategy(square, moves, work=1e8) for _ in range(2))
    assert np.array_equal(first.matrix, second.matrix)
    assert np.array_equal(gaussian_strategy(square, moves).matrix, gaussian_strategy(square, moves).matrix)
