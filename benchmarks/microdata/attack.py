"""Attackers on what every method publishes, in both scenarios, at the same budget and requirements.

    python -m benchmarks.microdata.attack [--only made-up …] [--models random-forest …] [--draws 4] [--thorough] [--out FOLDER]

Scenario I: the attacker learnt on clean rows; II: on published ones. Figures: mean absolute error of a number (more protects better),
share right of a category (less does), over ``--draws`` draws, each with a split into halves of its own, the same of all methods.
Difference: optimal minus the method, paired by draw, person and split, with its 99 % interval. "original" publishes everybody's own
columns beside even groups.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.channels.common import Results
from tetraodon.errors import Refused, TetraodonError
from tetraodon.leakage.attackers import MODELS, require
from tetraodon.leakage.attacks import attack, paired

from .common import METHODS, Made, even_start, holds, made, released
from .people import CASES, Case

RESULTS = Path(__file__).parent / "results"
BUDGETS = {"made-up": "0.17", "check-ins": "0.40", "young-people": "0.033", "big-five": "0.032"}
SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    ("random-forest", "number"): {"trees": 30},
    ("random-forest", "category"): {"trees": 30},
    ("xgboost", "number"): {"trees": 40},
}
SLOW = {("xgboost", "category")}  # one model for each of 67 cells: minutes for each split
COLUMNS = "people, attacker, scenario, method, leakage bits, figure, optimal, difference, 99 % from, to"
TEXT = (
    "{draws} draws, halves; the forest has 30 trees, XGBoost 40 of depth 5. Figure: years of "
    "error on average, of cells (check-ins) the share right. Guessing without looking: {guess}."
)


def everything(case: Case, budget: str) -> list[Made]:
    """Every method that has something within the budget, and the original."""
    prepared = case.prepared(distortion=budget)
    start = even_start(case, prepared)
    found = []
    for name in METHODS:
        try:
            found.append(made(name, case, prepared, start))
        except Refused:
            print(f"{case.name}: {name} has nothing within the budget")
    holds(case, prepared, found)
    told = np.zeros((len(prepared.present), int(start.max()) + 1, prepared.clusters.number))
    np.add.at(told, (case.codes, start[case.codes], prepared.clusters.labels), 1 / len(case.codes))
    own = np.arange(len(case.codes))
    return [Made("original", start, _leak(told.reshape(len(told), -1)), None, 0.0, 0.0, lambda: own), *found]


def _leak(joint: Any) -> float:
    there = joint > 0
    alone = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    return float((joint[there] * np.log(joint[there] / alone[there])).sum())


def attacked(
    case: Case, budget: str, models: list[str], draws: int, thorough: bool, results: Results
) -> None:
    """The rows of one kind of people."""
    found = everything(case, budget)
    drawn: dict[str, list[pa.Table]] = {
        m.name: [released(case, m, m.donors()) for _ in range(draws)] for m in found
    }
    for model in models:
        settings = SETTINGS.get((model, case.kind))
        if (model, case.kind) in SLOW and not thorough:
            print(f"{case.name}: {model} skipped; --thorough runs it")
            continue
        for scenario in ("I", "II"):
            for each in found:
                told = paired(
                    case.table, drawn["optimal"], drawn[each.name], case.secret, model, scenario=scenario,
                    kind=case.kind, settings=settings, rng=np.random.default_rng(1),
                )  # fmt: skip
                results.add(
                    case.name, model, scenario, each.name, f"{each.leak / np.log(2):.4f}", f"{told.second:.4f}",
                    f"{told.first:.4f}", f"{told.difference:+.4f}", f"{told.interval[0]:+.4f}", f"{told.interval[1]:+.4f}",
                )  # fmt: skip
            results.keep()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__ or "", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--thorough", action="store_true", help="XGBoost on cells, too")
    parser.add_argument("--out", type=Path, default=RESULTS)
    told = parser.parse_args()
    cases, models = {}, []
    for name in told.only:
        try:
            cases[name] = CASES[name]()
        except FileNotFoundError as error:
            print(f"{name}: {error}")
    for model in told.models:
        try:
            require(model)
            models.append(model)
        except TetraodonError as error:
            print(f"{model}: skipped: {error}")
    guess = ", ".join(f"{c.name} {_blind(c):.4f}" for c in cases.values())
    results = Results("attack", TEXT.format(draws=told.draws, guess=guess), COLUMNS.split(", "), told.out)
    for name, case in cases.items():
        attacked(case, BUDGETS[name], models, told.draws, told.thorough, results)


def _blind(case: Case) -> float:
    """What a guess without looking comes to."""
    told = case.table.select([case.secret, case.names[0]])
    rng = np.random.default_rng(1)
    return attack(
        told, told, case.secret, "group-median", features=[case.names[0]], kind=case.kind, rng=rng
    ).baseline


if __name__ == "__main__":
    main()
