"""Leakage by round where a generator answers a frozen classifier: cross-entropy swaps for ever, information does not.

    python -m benchmarks.learned.rounds [--out FOLDER]

Four users on a 10 × 10 grid, L = 90 m. In each round the classifier is the posterior of the last channel (with a floor) and the
channel the best answer to it within the budget, softened by a little entropy: once it maximises cross-entropy, once it takes a
step of mirror descent on the same objective, which at the posterior is a step on the information itself.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.channels.common import Results, square
from tetraodon.channels.lower_bound import Problem, leaked, posterior

RESULTS = Path(__file__).parent / "results"
BUDGET, SOFT, FLOOR, STEP = 90.0, 1 / 400, 1e-3, 1.0
ROUNDS = 400
SHOWN = (0, 1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 399)


def answered(problem: Problem, gain: Any, start: Any, rate: float) -> Any:
    """Rows ∝ start · exp(−rate (gain + λ cost)) with the λ that spends the budget."""

    def rows(lam: float) -> Any:
        told = np.log(np.maximum(start, 1e-300)) - rate * (gain + lam * problem.cost)
        told = np.exp(told - told.max(axis=1, keepdims=True))
        return told / told.sum(axis=1, keepdims=True)

    low, high = 0.0, 1.0
    while problem.distortion(rows(high)) > problem.budget and high < 1e6:
        high *= 2
    for _ in range(60):
        half = (low + high) / 2
        low, high = (half, high) if problem.distortion(rows(half)) > problem.budget else (low, half)
    return rows(high)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the table")
    told = parser.parse_args()
    joint, cost = square(10).rows
    problem = Problem.of(joint, cost, BUDGET)
    text = "Bits by round: the best answer to a frozen classifier under cross-entropy, and steps on the same objective (information)."
    results = Results(
        "rounds", text, ["round", "cross-entropy, best answers", "information, steps"], told.out
    )
    even = np.full(cost.shape, 1 / cost.shape[1])
    swapping = stepping = answered(problem, np.zeros(cost.shape), even, 1.0)
    for round_ in range(ROUNDS):
        if round_ in SHOWN:
            results.add(round_, leaked(problem, swapping), leaked(problem, stepping))
        given = np.maximum(np.exp(posterior(problem, swapping)) * problem.prior[:, None], FLOOR)
        blamed = np.log(given / given.sum(axis=0) / problem.prior[:, None])
        swapping = answered(problem, problem.given.T @ blamed, even, 1 / SOFT)
        seen = np.maximum(posterior(problem, stepping), -50.0)
        stepping = answered(problem, problem.given.T @ seen, stepping, STEP)
    results.keep()


if __name__ == "__main__":
    main()
