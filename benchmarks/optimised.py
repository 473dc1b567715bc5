"""Optimised strategies: certified Gaussian optima and their time beside a plain dense solver, and Laplace beside named ones.

    OPENBLAS_NUM_THREADS=1 python benchmarks/optimised.py [gaussian] [laplace] [kronecker]

Prints tables and writes nothing. Times depend on the machine; the column "dense" is the same dual ascent without folding,
features or large steps, in the same run, wherever that takes less than a minute. Targets: a certified 1 % at 256, 1024 and
2048 positions in about 1, 15 and 60 seconds; Laplace errors at or below 12.8 (16 positions, within 2), 23.0 (16, 4) and 42.8
(64, 4).
"""

from __future__ import annotations

import sys
import time
from itertools import product

import numpy as np

from tetraodon.axes import Axis
from tetraodon.mechanisms.forest import Forest
from tetraodon.mechanisms.kronecker import kronecker_strategy
from tetraodon.mechanisms.moves import Moves, features, forest_rows, gram, in_features
from tetraodon.mechanisms.optimised import gaussian_strategy, laplace_strategy
from tetraodon.mechanisms.rounding import largest, rounded
from tetraodon.workload import AllRanges, Cells, Prefixes

LONGEST_DENSE = 256


def dense(square: np.ndarray, moves: Moves, tolerance: float) -> float:
    """Dual ascent with w ← w·g on all of the space, one position dropped."""
    size, (a, b) = moves.size, moves.pairs.T
    values, vectors = np.linalg.eigh(square)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    centred = root - root[:, -1:]  # modulo the total
    weights, best, bound = np.full(len(a), 1 / len(a)), np.inf, 0.0
    while True:
        load = np.zeros((size, size))
        load[a, b] = load[b, a] = -weights
        np.fill_diagonal(load, -load.sum(axis=1))
        values, vectors = np.linalg.eigh(centred @ load @ centred.T)
        values = np.maximum(values, 1e-13 * values[-1])
        half = (vectors * values**-0.25).T @ centred
        x = half.T @ half
        moved = x[a, a] + x[b, b] - 2 * x[a, b]
        trace = float(np.sqrt(values).sum())
        best, bound = min(best, trace * float(moved.max())), max(bound, trace**2)
        if best <= (1 + tolerance) * bound:
            return best
        weights = weights * moved
        weights /= weights.sum()


def gaussian() -> None:
    print(
        "Gaussian: error per answer at unit sigma | workload, positions, within, value, bound, CPU seconds, dense"
    )
    cases = [(AllRanges(), k, theta, 1e-3) for k in (16, 64) for theta in (1, 2, 4, k - 1)]
    cases += [(AllRanges(), 256, 16, 1e-3)]
    cases += [(w, 256, 16, 1e-2) for w in (AllRanges(), Prefixes(), Cells())]
    cases += [(AllRanges(), 512, 511, 1e-2), (AllRanges(), 1024, 16, 1e-2), (AllRanges(), 2048, 16, 1e-2)]
    for workload, size, theta, tolerance in cases:
        square, count = gram(workload, size)
        moves = Moves.of(Axis(size, window=theta), size)
        start = time.process_time()
        found = gaussian_strategy(square, moves, tolerance)
        took, other = time.process_time() - start, ""
        if size <= LONGEST_DENSE:
            start = time.process_time()
            dense(square, moves, tolerance)
            other = f"{(time.process_time() - start) / took:.1f}x"
        name = type(workload).__name__
        print(
            f"{name:>10} {size:5} {theta:5} {found.value / count:9.4f} {found.bound / count:9.4f} {took:8.2f} {other:>6}"
        )
        whole = rounded(found.matrix, square, moves, 10**6)
        price = largest(whole, moves, 2) / 2**32
        print(f"{'':>10} rounded to whole numbers: largest squared move {price:.6f} of 1")


def laplace_value(square: np.ndarray, moves: Moves, strategy: np.ndarray) -> float:
    """tr(V (AᵀA)⁻¹)·max ‖A p_e‖₁², modulo the total."""
    told, after = features(moves.components[0], moves.known)
    rows = in_features(strategy, told, after)
    asked = in_features(in_features(square, told, after).T, told, after)
    worst = np.abs(strategy[:, moves.pairs[:, 0]] - strategy[:, moves.pairs[:, 1]]).sum(axis=0).max()
    return float(np.trace(np.linalg.solve(rows.T @ rows, asked))) * float(worst) ** 2


def laplace() -> None:
    print(
        "Laplace: error per range at epsilon 1 | positions, within, best named start, optimised, CPU seconds"
    )
    for size, theta in product((16, 24, 48, 64, 96), (2, 4, 8)):
        square, count = gram(AllRanges(), size)
        moves = Moves.of(Axis(size, window=theta), size)
        blocks = sorted({theta, 2 * theta, size})
        named = [np.eye(size), np.tril(np.ones((size, size)))[:-1]]
        named += [forest_rows(Forest(size, block, fanout)) for block in blocks for fanout in (2, 4)]
        plain = min(2 * laplace_value(square, moves, s) / count for s in named)
        start = time.process_time()
        found = laplace_strategy(square, moves, named)
        took = time.process_time() - start
        print(f"{size:5} {theta:3} {plain:9.2f} {2 * found.value / count:9.2f} {took:8.1f}")


def kronecker() -> None:
    print(
        "Kronecker, Gaussian: two attributes within 1 of each other | workload, error at rho 1/2 beside cells, CPU seconds"
    )
    line = [Moves.of(Axis(size, window=1), size) for size in (64, 48)]
    ranges = [gram(AllRanges(), m.size)[0] for m in line]
    cells = [np.eye(m.size) for m in line]
    totals = [np.ones_like(c) for c in cells]
    for name, asked in (
        ("all boxes", [ranges]),
        ("both margins", [(cells[0], totals[1]), (totals[0], cells[1])]),
        ("ranges of both", [(ranges[0], totals[1]), (totals[0], ranges[1])]),
    ):
        start = time.process_time()
        found = kronecker_strategy(asked, line, "cartesian", 2, 10**6)
        took = time.process_time() - start
        plain = sum(2 * np.trace(p[0]) * np.trace(p[1]) for p in asked)
        print(f"{name:>16} {found.error / plain:9.4f} {took:8.2f}")


if __name__ == "__main__":
    for part in sys.argv[1:] or ("gaussian", "laplace", "kronecker"):
        {"gaussian": gaussian, "laplace": laplace, "kronecker": kronecker}[part]()
