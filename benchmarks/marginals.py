"""Marginals of the sample table: exact expected errors of every choice, and what the last step gains in fact.

    python benchmarks/marginals.py

Prints, for all pairs and all triples of six attributes, the mean squared error of a published cell: of one ``Histogram`` a
table with the budget split evenly (sequential composition), of each choice of ``Marginals``, and, over draws from the sample
table, of the linear estimate, of clipping it, and of the nearest possible tables that agree.
"""

from __future__ import annotations

import sys
import time
from fractions import Fraction
from importlib import resources

import numpy as np

import tetraodon as td
from tetraodon.loss import Loss
from tetraodon.marginals.answers import table_answers
from tetraodon.marginals.asked import ask
from tetraodon.marginals.select import candidates
from tetraodon.noise import discrete_gaussian_variance, discrete_laplace_variance, reserve

DRAWS = 5
SOURCE = str(resources.files("tetraodon").joinpath("data", "adult.parquet"))
DOMAIN = td.Domain(
    age=td.Integer(17, 90),
    sex=td.Categorical(["Female", "Male"]),
    race=td.Categorical(["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]),
    education_num=td.Integer(1, 16),
    hours_per_week=td.Integer(1, 99),
    income=td.Categorical(["<=50K", ">50K"]),
)
POLICIES = {
    "full": td.Full(),
    "attribute-wise": td.AttributeWise(),
    "age within 5, hours within 10": td.AttributeWise(age=td.Within(5), hours_per_week=td.Within(10)),
}
LOSSES = (Loss("epsilon", Fraction(1)), Loss("rho", Fraction(1, 2)))
QUERIES = {k: td.Marginals(k, bins={"age": 5, "hours_per_week": 10}) for k in (2, 3)}


def one_by_one(tables: int, loss: Loss) -> float:
    """Variance of a cell if every table is a release of its own with its share of the budget (histograms move by 2)."""
    share = loss.amount / tables
    if loss.unit == "epsilon":
        return discrete_laplace_variance(2 / share)
    return discrete_gaussian_variance(1 / share)


def main() -> None:
    table = td.Table(SOURCE, DOMAIN)
    counts = table.counts()
    for k, query in QUERIES.items():
        asked = ask(query, DOMAIN)
        true = asked.tabulate(counts, asked.tables)
        for name, secrets in POLICIES.items():
            policy = td.Policy(DOMAIN, secrets)
            for loss in LOSSES:
                start = time.perf_counter()
                ranked = candidates(asked, policy.neighbourhood, loss)
                took = time.perf_counter() - start
                print(f"{k}-way, {name}, {loss.show()} (plan {took:.1f} s)")
                print(
                    f"  {'a histogram each, budget split':<40} {one_by_one(len(asked.tables), loss):>12,.1f}"
                )
                for s in ranked:
                    print(f"  {s.mechanism.words:<40} {s.expected_error:>12,.1f}")
                best, held = ranked[0], counts.domain.select(*asked.domain.names)
                assert held.names == asked.domain.names
                errors, took = np.zeros(3), 0.0
                for _ in range(DRAWS):
                    drawn = reserve([], gaussian=best.draws) if best.is_gaussian else reserve(best.draws)
                    with drawn as noise:
                        noisy = best.observe(best.tabulate(counts), counts.total, noise)
                    start = time.perf_counter()
                    found = table_answers(best, noisy)
                    took += (time.perf_counter() - start) / DRAWS
                    for t, truth in true.items():
                        made = (found.linear[t], np.maximum(found.linear[t], 0), found.tables[t][0])
                        errors += [float(((m - truth) ** 2).sum()) / asked.n_cells / DRAWS for m in made]
                told = " ".join(f"{e:,.1f}" for e in errors)
                print(f"  in fact: linear, clipped, possible: {told} ({took:.2f} s a release)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
