"""How much a release leaks: measures of joint tables and of samples, bounds between them, and trained attackers. What is
information is in bits.

>>> from tetraodon import leakage
>>> table = [[0.45, 0.05], [0.05, 0.45]]  # P(secret, output)
>>> round(leakage.information(table), 4), round(leakage.bayes_error(table), 4)
(0.531, 0.1)
"""

from __future__ import annotations

from .attack_found import Attack, Attacks, Difference
from .attack_information import Information, released_information
from .attacks import attack, attacks, paired
from .bounds import (
    ErrorBounds,
    error_bounds,
    fano_bound,
    fano_entropy,
    hellman_raviv_bound,
    hellman_raviv_entropy,
    santhi_vardy_bound,
    santhi_vardy_entropy,
    sharp_bound,
    sharp_entropy,
)
from .measures import (
    Capacity,
    bayes_error,
    best_rule,
    capacity,
    conditional_entropy,
    cross_entropy,
    entropy,
    guess_information,
    information,
    information_bound,
    min_entropy_capacity,
    min_entropy_leakage,
    prior_vulnerability,
    risk,
    vulnerability,
)
from .samples import (
    Pair,
    Shown,
    batch_information,
    frequencies,
    sample_bayes_error,
    sample_conditional_entropy,
    sample_information,
    sample_min_entropy_leakage,
)
from .tables import normalised

__all__ = [
    "Attack",
    "Attacks",
    "Capacity",
    "Difference",
    "ErrorBounds",
    "Information",
    "Pair",
    "Shown",
    "attack",
    "attacks",
    "batch_information",
    "bayes_error",
    "best_rule",
    "capacity",
    "conditional_entropy",
    "cross_entropy",
    "entropy",
    "error_bounds",
    "fano_bound",
    "fano_entropy",
    "frequencies",
    "guess_information",
    "hellman_raviv_bound",
    "hellman_raviv_entropy",
    "information",
    "information_bound",
    "min_entropy_capacity",
    "min_entropy_leakage",
    "normalised",
    "paired",
    "prior_vulnerability",
    "released_information",
    "risk",
    "sample_bayes_error",
    "sample_conditional_entropy",
    "sample_information",
    "sample_min_entropy_leakage",
    "santhi_vardy_bound",
    "santhi_vardy_entropy",
    "sharp_bound",
    "sharp_entropy",
    "vulnerability",
]
