"""How far figures of a sample of the rows are from those of all rows, from public numbers alone.

For groups, clusters and channels that were fixed beforehand, and m of n rows drawn without replacement:

* the mean distance between a row and its donors among all rows is a mean of m numbers from 0 to D, within D √(ln(2/δ)/2m) of that of
  all rows with probability 1 − δ (Hoeffding 1963, who shows it without replacement, too);
* the leakage is L = H(Y) + H(Z) − H(Y, Z), Z the group and the cluster that is drawn, of the mean of m laws, one a row. Another row in
  place of one moves mass 1/m, and an entropy over K places by at most log(K − 1)/m + h(1/m) (Zhang 2007), so L by at most c, the sum
  of three of these. L is then within c √(m ln(2/δ)/2) of its mean over samples (McDiarmid 1989; without replacement, from m = 2
  on: Cortes, Mohri, Pechyony and Rastogi 2008);
* that mean is within 2 log(1 + (K − 1)/m) of the leakage of all rows, K the places of (Y, Z): for each of the three laws
  0 ≤ H(P) − E H(P̂) = E KL(P̂, P) ≤ log(1 + E χ²(P̂, P)) by Jensen's inequality, and E χ² ≤ (K − 1)/m, because what a row adds to a place
  lies between 0 and 1 and rows without replacement vary less.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, log, log2, sqrt

from .distances import highest

RISK = 0.01  # that one of the two bounds does not hold


def error_of(rows: int, values: int, clusters: int, metric: str) -> Mapping[str, float]:
    """How far figures of a sample are from those of all rows, both with 99 % confidence; see the module.

    Args:
        rows: of the sample.
        values: joint private values at most.
        clusters: at most.

    Returns:
        ``distortion`` in the metric's unit (infinite for a metric without a largest distance), ``leakage`` in bits.

    >>> found = error_of(200_000, 74, 20, "gower")
    >>> round(found["distortion"], 4), round(found["leakage"], 2)
    (0.0039, 0.35)
    """
    spread = sqrt(log(4 / RISK) / 2)
    together = values * clusters
    share = 1 / rows
    apart = share * log2(rows) - (1 - share) * log2(1 - share)  # h(1/m)
    moved = sum(share * log2(max(k - 1, 1)) + apart for k in (values, together, together))
    bias = 2 * log2(1 + (together - 1) / rows)
    furthest = highest(metric)
    return {
        "distortion": inf if furthest == inf else furthest * spread / sqrt(rows),
        "leakage": min(moved * sqrt(rows) * spread + bias, log2(values)),  # both lie from 0 to H(Y)
    }
