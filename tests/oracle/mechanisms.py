"""Mechanisms from their definitions: dense rows, exact costs by going through every edge, least squares by linear algebra.

The shape of a strategy is built here again from (size, block, fan-out) by plain recursion; from a priced strategy only what
a reader of the release would be told is used: shape, noise scales, which rows are exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from oracle import brute
from scipy.linalg import null_space

Piece = tuple[int, int]
Place = tuple[Any, int] | None  # (group, position) of a record, None where the filter leaves it out
Table = np.ndarray[Any, Any]


# ---------- shapes ----------


def depth_of(block: int, fanout: int) -> int:
    """Levels until ⌈·/fanout⌉, repeated, comes to one position."""
    depth = 0
    while block > 1:
        block = math.ceil(Fraction(block, fanout))
        depth += 1
    return depth


def blocks(size: int, block: int) -> list[Piece]:
    """The blocks as (start, end)."""
    return [(s, min(s + block, size)) for s in range(0, size, block)]


def children(piece: Piece, fanout: int) -> list[Piece]:
    """Pieces of width ⌈width/fanout⌉, the last possibly shorter."""
    start, end = piece
    step = math.ceil(Fraction(end - start, fanout))
    return [(s, min(s + step, end)) for s in range(start, end, step)]


def levels(size: int, block: int, fanout: int) -> list[list[Piece]]:
    """The pieces of every level below the blocks; a piece of one position has no children."""
    found, above = [], blocks(size, block)
    for _ in range(depth_of(block, fanout)):
        above = [c for p in above if p[1] - p[0] > 1 for c in children(p, fanout)]
        found.append(above)
    return found


def range_rows(pieces: Sequence[Piece], size: int) -> Table:
    """One 0/1 row per piece."""
    rows = np.zeros((len(pieces), size), dtype=np.int64)
    for r, (start, end) in enumerate(pieces):
        rows[r, start:end] = 1
    return rows


def part_rows(strategy: Any) -> list[Table]:
    """Dense rows (rows, positions) of every part of a strategy."""
    size = strategy.resolved.n_positions
    if strategy.forest is None:
        matrix = np.array(strategy.resolved.workload.matrix)
        return [matrix] if len(strategy.parts) == 1 else [row[None, :] for row in matrix]
    block, fanout = strategy.forest.block, strategy.forest.fanout
    chain = [(0, end) for _, end in blocks(size, block)]
    return [range_rows(p, size) for p in [chain, *levels(size, block, fanout)]]


def released(strategy: Any) -> tuple[Table, Table, Table]:
    """(noisy rows, their scales' variances, exact rows) of one group."""
    size = strategy.resolved.n_positions
    noisy, variances, exact = [np.zeros((0, size))], [np.zeros(0)], [np.zeros((0, size))]
    for part, rows in zip(strategy.parts, part_rows(strategy), strict=True):
        scale = strategy.scale(part)
        exact.append(rows[part.exact])
        if scale is not None:
            noisy.append(rows[~part.exact])
            variances.append(np.full(int((~part.exact).sum()), laplace_variance(float(scale))))
    return np.concatenate(noisy), np.concatenate(variances), np.concatenate(exact)


def laplace_variance(scale: float) -> float:
    """Σ z² P(z) of discrete Laplace noise, from its law: 2q/(1 − q)², q = e^(−1/scale)."""
    q = math.exp(-1 / scale)
    return 2 * q / math.expm1(-1 / scale) ** 2


# ---------- exact cost ----------


def places(asked: Any, domain: Any, axis: str | None) -> list[Place]:
    """(group, position along the axis) of every cell of the whole domain, in the order of ``brute.tuples``."""
    names = list(domain)
    at = {n: brute.positions(domain[n], asked.bins.get(n), asked.where.get(n)) for n in names}
    split = [n for n in (*asked.by, *(asked.attributes if asked.word == "Histogram" else ())) if n != axis]
    found: list[Place] = []
    for record in brute.tuples(domain):
        seen = {n: at[n][i] for n, i in zip(names, record, strict=True)}
        inside = all(p is not None for p in seen.values())
        position = 0 if axis is None else seen[axis]
        found.append((tuple(seen[n] for n in split), position) if inside else None)
    return found


def edge_places(where: Sequence[Place], edges: Iterator[tuple[int, int]] | set[tuple[int, int]]) -> Table:
    """Distinct moves of a record along an edge, shape (moves, 3): position before, position after, changes group.

    A record that counts nowhere has position −1.
    """
    moves = set()
    for a, b in edges:
        x, y = where[a], where[b]
        if x == y:
            continue
        p, q = (-1 if w is None else w[1] for w in (x, y))
        moves.add((p, q, x is not None and y is not None and x[0] != y[0]))
    return np.array(sorted(moves), dtype=np.int64).reshape(-1, 3)


def exact_cost(parts: Sequence[tuple[Table, Fraction | None]], moves: Table) -> Fraction:
    """max over the moves of Σ_r |A[r, before] − A[r, after]| / scale_r, in fractions.

    Args:
        parts: (rows, scale) of the noisy rows; a scale of None is an exact row, which must not move at all.

    Raises:
        AssertionError: an exact row moves along some edge.
    """
    shifts = []
    for rows, scale in parts:
        # Column −1 is nowhere.
        padded = np.concatenate([rows, np.zeros((len(rows), 1), dtype=np.int64)], axis=1)
        apart = np.abs(padded[:, moves[:, 0]]).sum(axis=0) + np.abs(padded[:, moves[:, 1]]).sum(axis=0)
        within = np.abs(padded[:, moves[:, 0]] - padded[:, moves[:, 1]]).sum(axis=0)
        shift = np.where(moves[:, 2] == 1, apart, within)
        if scale is None:
            assert not shift.any(), "a row that is published exactly moves along an edge"
        else:
            shifts.append((shift, scale))
    if not shifts or not len(moves):
        return Fraction(0)
    distinct = np.unique(np.stack([s for s, _ in shifts], axis=1), axis=0)
    return max(sum(Fraction(int(d)) / s for d, (_, s) in zip(row, shifts, strict=True)) for row in distinct)


def strategy_cost(strategy: Any, moves: Table) -> Fraction:
    """The cost of a priced strategy over explicit moves; exact rows are checked not to move."""
    parts: list[tuple[Table, Fraction | None]] = []
    for part, rows in zip(strategy.parts, part_rows(strategy), strict=True):
        scale = strategy.scale(part)
        parts.append((rows[part.exact], None))
        if scale is not None:
            parts.append((rows[~part.exact], scale))
    return exact_cost(parts, moves)


def threshold_cost(strategy: Any, theta: int) -> Fraction:
    """The same for |x − y| ≤ θ on one long axis, edge by edge over offsets, without dense rows."""
    size, forest = strategy.resolved.n_positions, strategy.forest
    chain, *_trees = strategy.parts
    ends = np.array([e for _, e in blocks(size, forest.block)])
    loud = ends[~chain.exact]
    passed = np.searchsorted(loud, np.arange(size), side="right")
    labels = []
    for pieces in levels(size, forest.block, forest.fanout):
        label = np.full(size, -1)
        for number, (start, end) in enumerate(pieces):
            label[start:end] = number
        labels.append(label)
    exact = ends[chain.exact]
    # Each edge's shifts (rows of the chain passed; 0, 1 or 2 rows of each level) as one number; seen numbers are marked.
    radix = 3 ** len(labels)
    seen = np.zeros((len(loud) + 1) * radix, dtype=bool)
    for offset in range(1, theta + 1):
        x, y = np.arange(size - offset), np.arange(offset, size)
        held = np.searchsorted(exact, y, side="right") - np.searchsorted(exact, x, side="right")
        assert not held.any(), "a row that is published exactly moves along an edge"
        code = (passed[y] - passed[x]) * radix
        for number, label in enumerate(labels):
            a, b = label[x], label[y]
            code += np.where(a == b, 0, (a >= 0).astype(np.int64) + (b >= 0)) * 3**number
        seen[code] = True
    codes = [int(c) for c in np.flatnonzero(seen)]
    scales = [strategy.scale(p) for p in strategy.parts]
    assert all(
        s is not None or p.exact.all() or not p.weight for s, p in zip(scales, strategy.parts, strict=True)
    )
    prices = [Fraction(0) if s is None else 1 / s for s in scales]
    return max(
        c // radix * prices[0] + sum((c // 3**k % 3 * v for k, v in enumerate(prices[1:])), Fraction(0))
        for c in codes
    )


# ---------- least squares with exact rows ----------


@dataclass(frozen=True)
class Least:
    """argmin Σ (a_r·x − y_r)²/v_r subject to exact rows, and the covariance of the solution."""

    gain: Table
    """x̂ = gain @ [noisy values; exact values]."""
    covariance: Table


def least_squares(noisy: Table, variances: Table, exact: Table) -> Least:
    """Solve in the null space of the exact rows."""
    size = noisy.shape[1]
    free = null_space(exact) if len(exact) else np.eye(size)
    particular = np.linalg.pinv(exact) if len(exact) else np.zeros((size, 0))
    if not free.shape[1]:
        return Least(
            np.concatenate([np.zeros((size, len(noisy))), particular], axis=1), np.zeros((size, size))
        )
    root = 1 / np.sqrt(variances)
    seen = root[:, None] * (noisy @ free)
    assert np.linalg.matrix_rank(seen) == free.shape[1], "the rows do not determine the cells"
    inverse = np.linalg.pinv(seen)
    gain = free @ inverse * root
    covariance = free @ (inverse @ inverse.T) @ free.T
    return Least(np.concatenate([gain, particular - gain @ (noisy @ particular)], axis=1), covariance)


def workload_rows(strategy: Any) -> Table:
    """The rows of the question along its axis, divided by nothing."""
    size, asked = strategy.resolved.n_positions, strategy.resolved.workload
    kind = type(asked).__name__
    if kind == "Cells":
        return np.eye(size)
    if kind == "Prefixes":
        return range_rows([(0, j) for j in range(1, size + 1)], size)
    if kind == "AllRanges":
        return range_rows(list(itertools.combinations(range(size + 1), 2)), size)
    if kind == "SomeRanges":
        return range_rows(list(zip(asked.lows.tolist(), asked.highs.tolist(), strict=True)), size)
    return np.array(asked.matrix, dtype=float)


def answer_variances(strategy: Any) -> Table:
    """Exact variance of every answer of the workload under least squares, in the rows' own unit."""
    covariance = least_squares(*released(strategy)).covariance
    rows = workload_rows(strategy)
    return np.einsum("ri,ij,rj->r", rows, covariance, rows)


# ---------- the published Ordered Hierarchical tree ----------


@dataclass(frozen=True)
class Node:
    """One noisy range of the published tree.

    Attributes:
        start, end: positions.
        scale: of its Laplace noise.
        used: number of prefix sums F_0 … F_T whose sum of nodes holds this one.
    """

    start: int
    end: int
    scale: Fraction
    used: int


def best_split(size: int, theta: int, fanout: int) -> Fraction:
    """ε_S* as a share of ε: minimises c1/ε_S² + c2/ε_H²."""
    if theta >= size:
        return Fraction(0)
    depth = depth_of(theta, fanout)
    if not depth:
        return Fraction(1)
    c1 = 4 * (size - theta) / (size + 1)
    c2 = 8 * (fanout - 1) * depth**3 * size / (size + 1)
    return Fraction(c1 ** (1 / 3) / (c1 ** (1 / 3) + c2 ** (1 / 3)))


def published_tree(size: int, theta: int, fanout: int, share: Fraction, first_block: str) -> list[Node]:
    """The OH tree at ε = 1 with ε_S = share, the total public.

    Args:
        first_block: "published" (H_1 and s_1 get the whole ε: Lap(2h)) or "repaired" (treated like the others).
    """
    depth, cut = depth_of(theta, fanout), blocks(size, theta)
    nodes: list[Node] = []
    for number, (start, end) in enumerate(cut):
        whole = len(cut) == 1 or (first_block == "published" and number == 0)
        tree = None if not depth else Fraction(2 * depth) / (1 if whole else 1 - share)
        if number + 1 < len(cut):
            chain = tree if (tree is not None and first_block == "published" and number == 0) else 1 / share
            after = cut[number + 1]
            nodes.append(Node(0, end, chain, after[1] - after[0]))
        above = [(start, end)]
        for _ in range(depth):
            fresh = []
            for parent in above:
                if parent[1] - parent[0] < 2:
                    continue
                for s, e in children(parent, fanout):
                    assert tree is not None
                    nodes.append(Node(s, e, tree, parent[1] - e))
                    fresh.append((s, e))
            above = fresh
    return nodes


def tree_cost(nodes: Sequence[Node], size: int, theta: int) -> Fraction:
    """max over |x − y| ≤ θ of Σ |change| / scale, node by node."""
    columns = [{i for i, n in enumerate(nodes) if n.start <= x < n.end} for x in range(size)]
    pairs = ((x, y) for x in range(size) for y in range(x + 1, min(x + theta, size - 1) + 1))
    return max(sum((1 / nodes[i].scale for i in columns[x] ^ columns[y]), Fraction(0)) for x, y in pairs)


def walk_error(nodes: Sequence[Node], size: int) -> float:
    """Mean squared error of a uniformly random range l ≤ r, answered as a difference of two prefix walks, 2·scale² each.

    A node counts where exactly one of the two prefixes uses it: 2c(M − c) of the M(M − 1) ordered pairs of the M = T + 1
    prefixes, c of which use it.
    """
    points = size + 1
    total = sum(2 * float(n.scale) ** 2 * 2 * n.used * (points - n.used) for n in nodes)
    return total / (points * (points - 1))
