"""Largest Bayes error within a distortion budget beside qif's linear programmes: error, certified gap, seconds, ratio.

    python -m benchmarks.channels.bayes [--only 10 20 40 paris16] [--rounds 3] [--limit 60] [--out FOLDER]

The instances of ``least_leaking``; qif is given the least g-vulnerability of the value with gain P(x | w).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tetraodon.channels import least_leaking

from .common import Instance, Results, Solver, interleaved, options, paris, ratio, square
from .least_leaking import budgets
from .peers import qif_bayes, warm

MAKERS: dict[str, Callable[[], Instance]] = {
    "10": lambda: square(10),
    "20": lambda: square(20),
    "40": lambda: square(40),
    "paris16": lambda: paris(482),
}
TEXT = (
    "Largest Bayes error of the secret within a budget. Bound: no channel within it makes the error larger (certified). Processor "
    "seconds, least of {rounds}; ratio: theirs over ours in this run. Limit {limit:g} s."
)

COLUMNS = "instance, L m, Bayes error, bound, gap, its bits, ours, GiB, qif error, qif, ratio"


def ours(instance: Instance, budget: float) -> dict[str, Any]:
    channel = least_leaking(
        instance.joint, None, distortion=budget, domain=instance.domain, source="public", leakage="bayes"
    )
    told = channel.certificate
    assert told is not None
    return {
        "value": told.value,
        "bound": told.bound,
        "gap": told.gap,
        "bits": channel.leakage(instance.joint),
    }


def main() -> None:
    told = options(__doc__ or "", list(MAKERS)).parse_args()
    columns = COLUMNS.split(", ")
    results = Results("bayes", TEXT.format(rounds=told.rounds, limit=told.limit), columns, told.out)
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
            solvers = [
                Solver("ours", lambda i=instance, b=budget: ours(i, b)),
                Solver("qif", lambda j=joint, c=cost, b=budget: qif_bayes(j, c, b), "qif"),
            ]
            found = interleaved(solvers[:1] if name == "40" else solvers, told.rounds, told.limit)
            mine, other, n = found["ours"], found.get("qif"), found["ours"].numbers
            results.add(
                instance.name, budget, n.get("value"), n.get("bound"), f"{n['gap']:.1e}" if n else None, n.get("bits"),
                mine.text(told.limit), f"{mine.peak:.2f}", other.numbers.get("value") if other else None,
                other.text(told.limit) if other else None, ratio(mine, other, told.limit) if other else None,
            )  # fmt: skip
            results.keep()


if __name__ == "__main__":
    main()
