"""Least distortion at a stated epsilon beside qif, HiGHS and cvxpy with Clarabel: loss, certified gap, seconds, ratio.

    python -m benchmarks.channels.least_distortion [--only 5 7 10 …] [--rounds 3] [--limit 60] [--out FOLDER]

Square grids of 1 km cells, ε = 1 for every km between any two cells; an even prior, and an uneven one, which has no symmetry
to gain by. Processor seconds, least of the rounds, interleaved, every call in a process of its own, one BLAS thread. A second
table has the ε that planar noise realises, ours and qif's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tetraodon as td
from tetraodon.channels import least_distortion, planar_geometric, planar_laplace, tight_constraints
from tetraodon.channels.geometry import Geometry

from .common import Results, Solver, Timed, interleaved, options, ratio, unit_grid
from .peers import clarabel_least_distortion, qif_least_distortion, qif_planar, realised, warm

CASES = ("5", "5-uneven", "7", "7-uneven", "10", "10-uneven", "12", "12-uneven", "15", "20")
HIGHS = ("5", "5-uneven", "7", "7-uneven")
CLARABEL = ("5", "5-uneven", "7")
TEXT = (
    "Least expected distance in km with epsilon 1 per km between any two cells. Bound: no channel that keeps it does better "
    "(certified). Realised: epsilon per km of the table that is drawn from, rounded up. Processor seconds, least of {rounds}; "
    "ratios: theirs over ours in this run. Limit {limit:g} s (ours: ten times that). qif and Clarabel give no bound."
)
COLUMNS = "grid, prior, loss km, bound, relative gap, realised, route, ours, GiB, qif loss, qif, ratio to qif, HiGHS, ratio to HiGHS, Clarabel, ratio to Clarabel, tight constraints km, their time"
PLANAR = (
    "Planar noise, epsilon 1 per km on square grids of 1 km cells: the epsilon that the matrix realises, and how far its rows "
    "are from 1 in sum."
)


def case(name: str) -> tuple[td.Domain, np.ndarray]:
    """Grid and prior."""
    n = int(name.split("-")[0])
    even = np.full(n * n, 1 / n**2)
    return unit_grid(n), np.random.default_rng(0).dirichlet(np.ones(n * n)) if "-" in name else even


def ours(domain: td.Domain, prior: np.ndarray, method: str) -> dict[str, Any]:
    """The public call, from prior to channel with certificate."""
    channel = least_distortion(
        prior, epsilon=1, epsilon_per="km", domain=domain, source="public", method=method
    )
    told = channel.certificate
    assert told is not None
    per = channel.epsilon_per("km")
    route = f"{channel.settings['method']}, {channel.settings['pairs']} pairs"
    return {
        "value": told.value,
        "bound": told.bound,
        "gap": told.gap / told.value,
        "realised": float(per),
        "route": route,
    }


def tight(domain: td.Domain, prior: np.ndarray) -> dict[str, Any]:
    return {"value": tight_constraints(domain, 1, "km").distortion(prior)}


def compare(name: str, rounds: int, limit: float) -> dict[str, Timed]:
    domain, prior = case(name)
    cost = Geometry(domain).matrix(None)
    solvers = [
        Solver("ours", lambda: ours(domain, prior, "auto")),
        Solver("tight", lambda: tight(domain, prior)),
    ]
    found = interleaved(solvers, 1, 10 * limit) if domain.size > 144 else {}
    if not found:
        solvers.append(Solver("qif", lambda: qif_least_distortion(prior, cost, cost), "qif"))
        if name in HIGHS:
            solvers.append(Solver("highs", lambda: ours(domain, prior, "highs")))
        if name in CLARABEL:
            solvers.append(Solver("clarabel", lambda: clarabel_least_distortion(prior, cost, cost), "cvxpy"))
        found = interleaved(solvers, rounds, limit)
    return found


def planar(told: Any) -> None:
    columns = [
        "grid",
        "noise",
        "ours realises",
        "ours sums",
        "ours loss km",
        "qif realises",
        "qif sums",
        "qif loss km",
    ]
    results = Results("planar", PLANAR, columns, told.out)
    even: Any = "uniform"
    for n in (5, 10, 15, 20):
        domain = unit_grid(n)
        cost = Geometry(domain).matrix(None)
        for kind, make in (("laplace", planar_laplace), ("geometric", planar_geometric)):
            channel = make(domain, 1, "km")
            try:
                theirs = qif_planar(kind, n, 1.0)
                other = (
                    f"{realised(theirs, cost):.6f}", f"{abs(theirs.sum(axis=1) - 1).max():.0e}",
                    float((theirs * cost).sum() / len(cost)),
                )  # fmt: skip
            except NameError:
                other = ("qif is not installed", "", 0.0)
            exactly = f"{float(channel.epsilon_per('km')):.9f}"
            results.add(f"{n}×{n}", kind, exactly, "0 (exact)", channel.distortion(even), *other)
    results.keep()


def main() -> None:
    told = options(__doc__ or "", CASES).parse_args()
    columns = COLUMNS.split(", ")
    results = Results(
        "least-distortion", TEXT.format(rounds=told.rounds, limit=told.limit), columns, told.out
    )
    domain, prior = case("5")
    ours(domain, prior, "auto")
    warm()
    for name in told.only:
        found = compare(name, told.rounds, told.limit)
        mine, formula, n = found["ours"], found["tight"], found["ours"].numbers
        row: list[object] = [
            "×".join([name.split("-")[0]] * 2), "uneven" if "-" in name else "even", n.get("value"), n.get("bound"),
            f"{n['gap']:.1e}" if n else None, f"{n['realised']:.9f}" if n else None, n.get("route"),
            mine.text(10 * told.limit), f"{mine.peak:.2f}",
        ]  # fmt: skip
        for peer in ("qif", "highs", "clarabel"):
            other = found.get(peer)
            if peer == "qif":
                row.append(other.numbers.get("value") if other else None)
            row += [
                other.text(told.limit) if other else None,
                ratio(mine, other, told.limit) if other else None,
            ]
        results.add(*row, formula.numbers.get("value"), formula.text(told.limit))
        results.keep()
    planar(told)


if __name__ == "__main__":
    main()
