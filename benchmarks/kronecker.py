"""Products over several attributes beside rows repeated in every group: exact expected errors under Gaussian noise.

    python benchmarks/kronecker.py

Prints, for queries over two attributes, the error of the best other mechanism of a plan, that of the product, what it gains,
and the processor time of choosing it. The last rows are Laplace noise, where the other is mechanism "optimised" by name.
"""

from __future__ import annotations

import time
from fractions import Fraction

import tetraodon as td
from tetraodon.loss import Loss
from tetraodon.mechanisms import Kronecker, Optimised
from tetraodon.mechanisms.select import candidates, price
from tetraodon.workload import resolve

RHO, EPSILON = Loss("rho", Fraction(1, 2)), Loss("epsilon", Fraction(1))
SECRETS = {
    "within 1 and 1": td.AttributeWise(a=td.Within(1), b=td.Within(1)),
    "within 3 and 3": td.AttributeWise(a=td.Within(3), b=td.Within(3)),
    "within 1, b alone": td.AttributeWise(b=td.Within(1)),
    "all values": td.AttributeWise(),
}
QUERIES = (td.Histogram("a", "b"), td.CDF("a", by="b"), td.Ranges("a", by="b"))


def domain(*sizes: int) -> td.Domain:
    """Ordered attributes a and b."""
    return td.Domain(**{n: td.Integer(0, s - 1) for n, s in zip("ab", sizes, strict=True)})


def told(title: str, other: float, product: float, seconds: float) -> None:
    print(f"{title:<42}{other:>10.3f}{product:>10.3f}{1 - product / other:>9.1%}{seconds:>8.2f} s")


def main() -> None:
    print(f"{'query, cells, secrets':<42}{'other':>10}{'product':>10}{'gain':>9}{'time':>10}")
    square = domain(32, 32)
    cases = [(square, name, query) for name in SECRETS for query in QUERIES]
    cases += [(domain(*sizes), "within 3 and 3", QUERIES[1]) for sizes in ((64, 64), (128, 128), (256, 32))]
    for declared, name, query in cases:
        hood = td.Policy(declared, SECRETS[name]).neighbourhood
        asked = resolve(query, declared)
        other = min(s.expected_error for s in candidates(asked, hood, RHO) if s.mechanism != Kronecker())
        start = time.process_time()
        found = price(Kronecker(), asked, hood, RHO)
        size = " × ".join(str(a.size) for a in declared.values())
        told(f"{query.word}, {size}, {name}", other, found.expected_error, time.process_time() - start)
    small = domain(8, 8)
    hood = td.Policy(small, SECRETS["within 1 and 1"]).neighbourhood
    for query in QUERIES[:2]:
        asked = resolve(query, small)
        other = price(Optimised(), asked, hood, EPSILON).expected_error
        start = time.process_time()
        found = price(Kronecker(), asked, hood, EPSILON)
        told(
            f"{query.word}, 8 × 8, within 1 and 1, Laplace",
            other,
            found.expected_error,
            time.process_time() - start,
        )


if __name__ == "__main__":
    main()
