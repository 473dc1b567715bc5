"""Plain Laplace noise on a table whose sums of neighbouring cells are known: averaging gives the table back.

He, Machanavajjhala, Ding 2014, introduction: cells c_1 … c_k, the sums c_i + c_{i+1} public. Every other cell follows from c_1,

    c_i = (−1)^{i−1} c_1 + s_i,      s_1 = 0,  s_{i+1} = a_i − s_i,

so k noisy cells are k independent noisy copies of c_1 and their mean has 1/k of the variance. Noise that ignores what is known
therefore promises ε and loses k·ε/2: moving from one possible table to the next changes every cell by 1.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

Ints, Floats = np.ndarray, np.ndarray


def noised(counts: Ints, epsilon: float, runs: int, rng: np.random.Generator) -> Floats:
    """Cells with Lap(2/ε) each, what bounded differential privacy asks for without constraints. Shape (runs, k)."""
    return counts + rng.laplace(scale=2 / epsilon, size=(runs, len(counts)))


def first_cell(noisy: Floats, sums: Ints) -> Floats:
    """The mean of the k copies of c_1. Shape (runs,)."""
    known = offsets(sums)
    return ((noisy - known) * signs(len(known))).mean(axis=1)


def table(first: Floats, sums: Ints) -> Ints:
    """The table that a whole number nearest to ``first`` makes. Shape (runs, k)."""
    return np.rint(first).astype(np.int64)[:, None] * signs(len(sums) + 1) + offsets(sums)


def offsets(sums: Ints) -> Ints:
    """s_1 … s_k."""
    found = [0]
    for total in sums.tolist():
        found.append(total - found[-1])
    return np.array(found)


def signs(k: int) -> Ints:
    return 1 - 2 * (np.arange(k) % 2)


def loss(k: int, epsilon: Fraction) -> Fraction:
    """What Lap(2/ε) on every cell loses between neighbouring tables: k cells change by 1 each."""
    return k * epsilon / 2
