"""Least leaking channels beside cvxpy with Clarabel: bits, certified gap, seconds, ratio.

    python -m benchmarks.channels.least_leaking [--only 10 20 40 100 paris16 paris32] [--rounds 3] [--limit 60] [--out FOLDER]

Processor seconds, least of the rounds, interleaved, every call in a process of its own, one BLAS thread. The instances are four
users about the corners of a square, and six people of Gowalla's Paris (needs TETRAODON_DATA).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tetraodon.channels import least_leaking

from .common import Instance, Results, Solver, interleaved, options, paris, ratio, square
from .peers import clarabel_least_leaking, warm

BUDGETS = {"square": (30, 60, 90, 150, 173, 212), "100": (30, 90, 173), "paris": (150, 300, 518, 1150)}
MAKERS: dict[str, Callable[[], Instance]] = {
    "10": lambda: square(10),
    "20": lambda: square(20),
    "40": lambda: square(40),
    "100": lambda: square(100),
    "paris16": lambda: paris(482),
    "paris32": lambda: paris(241),
}
COMPARED = ("10", "20", "paris16")
TEXT = (
    "Least leaking channels. Bits: I(secret; output) of the channel found, as drawn from; bound: no channel within the budget leaks "
    "less (certified). Processor seconds, least of {rounds}; ratio: theirs over ours in this run. Limit {limit:g} s (ours: ten "
    "times that)."
)

COLUMNS = "instance, rows × outputs, L m, bits, bound, gap, Bayes error, ours, GiB, Clarabel bits, its status, Clarabel, ratio"


def ours(instance: Instance, budget: float) -> dict[str, Any]:
    """The public call, from joint table to channel with certificate."""
    channel = least_leaking(instance.joint, None, distortion=budget, domain=instance.domain, source="public")
    told = channel.certificate
    assert told is not None
    return {
        "value": told.value,
        "bound": told.bound,
        "gap": told.gap,
        "error": channel.bayes_error(instance.joint),
        "distortion": channel.distortion(instance.joint.sum(axis=0)),
    }


def budgets(name: str) -> tuple[int, ...]:
    return BUDGETS["paris"] if name.startswith("paris") else BUDGETS.get(name, BUDGETS["square"])


def main() -> None:
    told = options(__doc__ or "", list(MAKERS)).parse_args()
    columns = COLUMNS.split(", ")
    results = Results("least-leaking", TEXT.format(rounds=told.rounds, limit=told.limit), columns, told.out)
    ours(square(4), 90)
    warm()
    for name in told.only:
        try:
            instance = MAKERS[name]()
        except FileNotFoundError as error:
            print(error)
            continue
        joint, cost = instance.rows
        for budget in budgets(name):
            solvers = [Solver("ours", lambda i=instance, b=budget: ours(i, b))]
            if name in COMPARED:
                peer = lambda j=joint, c=cost, b=budget: clarabel_least_leaking(j, c, b)  # noqa: E731
                solvers.append(Solver("clarabel", peer, "cvxpy"))
            found = (
                interleaved(solvers[:1], told.rounds, 10 * told.limit)
                if len(solvers) == 1
                else interleaved(solvers, told.rounds, told.limit)
            )
            mine, other = found["ours"], found.get("clarabel")
            n = mine.numbers
            results.add(
                instance.name, f"{joint.shape[1]} × {cost.shape[1]}", budget, n.get("value"), n.get("bound"),
                f"{n['gap']:.1e}" if n else None, n.get("error"), mine.text(10 * told.limit), f"{mine.peak:.2f}",
                other.numbers.get("value") if other else None, other.numbers.get("status") if other else None, other.text(told.limit) if other else None,
                ratio(mine, other, told.limit) if other else None,
            )  # fmt: skip
            results.keep()


if __name__ == "__main__":
    main()
