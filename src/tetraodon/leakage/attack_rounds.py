"""Rounds of an attack: who is known, who is asked, what each guess costs, and what the mean cost may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .attack_features import Features, Secret
from .attackers import Attacker, by_group, central
from .tables import Floats, Ints

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass(frozen=True, eq=False, repr=False)
class Round:
    """One split of the people: the part of each, and a seed for each part's model."""

    part: Ints
    seeds: tuple[int, ...]

    def folds(self) -> Iterator[tuple[Any, Any, int]]:
        """(known, asked, seed) of each part: masks of people."""
        for fold, seed in enumerate(self.seeds):
            asked = self.part == fold
            yield ~asked, asked, seed


def split(people: int, folds: int, repeats: int, rng: Generator) -> list[Round]:
    """Random splits into parts of equal size; everybody is asked once in each."""
    return [
        Round(
            rng.permutation(np.arange(people) % folds),
            tuple(int(s) for s in rng.integers(0, 2**31 - 1, folds)),
        )
        for _ in range(repeats)
    ]


def losses(
    attacker: Attacker, seen: Features, secret: Secret, rounds: list[Round], scenario: str, ceiling: bool
) -> Floats:
    """What each guess costs, shape (rounds, people): a distance, or 1 for a wrong and 0 for a right one.

    Args:
        scenario: "II" learns on published rows, "I" on clean ones; both ask about published rows.
        ceiling: the same attacker, who learns on clean rows and asks about clean rows.
    """
    from ..files import sealed

    told = np.zeros((len(rounds), len(secret.values)))
    learnt = seen.clean if ceiling or scenario == "I" else seen.released
    asked_of = seen.clean if ceiling else seen.released
    for i, once in enumerate(rounds):
        for known, asked, seed in once.folds():
            secrets = secret.values[known]
            if attacker.model == "group-median":
                said = by_group(seen.group[known], secrets, seen.group[asked], secret.ordered)
            else:
                said = sealed(
                    "attack", attacker.model, attacker.guess,
                    learnt[known], secrets, asked_of[asked], seen, secret, seed,
                )  # fmt: skip
            told[i, asked] = cost(said, secret.values[asked], secret.ordered)
    return told


def prior_losses(secret: Secret, rounds: list[Round]) -> Floats:
    """As ``losses``, of an attacker who knows the secrets of the same people and looks at nothing."""
    told = np.zeros((len(rounds), len(secret.values)))
    for i, once in enumerate(rounds):
        for known, asked, _ in once.folds():
            said = central(secret.values[known], secret.ordered)
            told[i, asked] = cost(said, secret.values[asked], secret.ordered)
    return told


def cost(said: Any, values: Any, ordered: bool) -> Floats:
    """The distance of each guess, or whether it is wrong."""
    return np.asarray(np.abs(said - values) if ordered else said != values, dtype=np.float64)


def mean_interval(told: Floats, level: float) -> tuple[float, float, float]:
    """The mean of a table (rounds, people), and where the mean over all such people and rounds lies.

    Student's t with the variance s²(people's means)/people + s²(rounds' means)/rounds: people and rounds are both samples,
    and what both vary by is counted twice, which errs on the wide side. Degrees of freedom by Satterthwaite.

    >>> mean_interval(np.array([[0.0, 1.0, 2.0, 1.0]]), 0.9)
    (1.0, 0.039..., 1.960...)
    """
    from scipy.stats import t

    rounds, people = told.shape
    mean = float(told.mean())
    parts = [(float(told.mean(axis=0).var(ddof=1)) / people, people - 1)]
    if rounds > 1:
        parts.append((float(told.mean(axis=1).var(ddof=1)) / rounds, rounds - 1))
    variance = sum(v for v, _ in parts)
    if variance == 0:
        return mean, mean, mean
    freedom = variance**2 / sum(v**2 / n for v, n in parts)
    half = float(t.ppf((1 + level) / 2, freedom)) * variance**0.5
    return mean, mean - half, mean + half


def share_interval(told: Floats, level: float) -> tuple[float, float, float]:
    """As ``mean_interval`` for a table of 0 and 1: Wilson's interval for as many people as have that variance.

    It has a width even where every entry is the same.
    """
    from scipy.stats import norm

    rounds, people = told.shape
    p = float(told.mean())
    variance = float(told.mean(axis=0).var(ddof=1)) / people
    if rounds > 1:
        variance += float(told.mean(axis=1).var(ddof=1)) / rounds
    n = min(p * (1 - p) / variance, rounds * people) if variance > 0 else people
    z = float(norm.ppf((1 + level) / 2))
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5 / (1 + z * z / n)
    return p, max(0.0, middle - half), min(1.0, middle + half)
