"""What attacks found: one attacker, several of them, and one against two releases. All of it is private."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..terminal import text_of
from . import attack_words as words

METRICS = {True: "mean absolute error", False: "share right"}


@dataclass(frozen=True)
class Attack:
    """One attacker against one release.

    Attributes:
        secret, model, scenario: what was attacked, and how.
        ordered: whether the secret is a number, and so the metric.
        metric: "mean absolute error" (less is a better attack, in the unit of the secret) or "share right" (more is).
        success, interval: of the attacker.
        baseline, baseline_interval: of one who knows the same people's secrets and says their median, or the commonest.
        ceiling, ceiling_interval: of the same attacker on the same columns unprotected, beside the same published secret.
        gain, gain_interval: by how much the attacker beats the baseline, paired by person; positive where he does.
        level: of the intervals. ``how``: what they are.
        people: scored, each once in every repeat.
        train, test: people in a part's learning and in its scoring, on average over the parts, rounded down.
        folds, repeats: parts in a split, and splits.
        features: released columns looked at.
        left_out: people of the original without a released row or a secret.
        settings: of the model.
        warnings: what makes the figure say less than it seems to.
        paired_by: the column that told who is who; None: rows were paired by their order.
    """

    secret: str
    model: str
    scenario: str
    ordered: bool
    metric: str
    success: float
    interval: tuple[float, float]
    baseline: float
    baseline_interval: tuple[float, float]
    ceiling: float
    ceiling_interval: tuple[float, float]
    gain: float
    gain_interval: tuple[float, float]
    level: float
    people: int
    train: int
    test: int
    folds: int
    repeats: int
    features: tuple[str, ...]
    left_out: int
    settings: tuple[tuple[str, float | str | None], ...]
    warnings: tuple[str, ...]
    paired_by: str | None
    how: str = (
        "over people and repeats: Student's t (mean error, gain) or Wilson (share); the attackers of one split "
        "share what they learnt on, which is seen only through the repeats"
    )

    def words(self) -> str:
        """In plain English: what the attacker does, how well, against what."""
        return words.attack_words(self)

    def to_spec(self) -> dict[str, Any]:
        """As plain values. Private."""
        told = asdict(self)
        told["settings"] = dict(self.settings)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in told.items()}

    def __str__(self) -> str:
        return self.words()


@dataclass(frozen=True)
class Attacks:
    """Several attackers against one release, on the same splits.

    Attributes:
        found: one for each model.
        skipped: models whose library is not installed.
    """

    found: tuple[Attack, ...]
    skipped: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Attack]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, model: str) -> Attack:
        """The attack of one model.

        Raises:
            KeyError: it was not run.
        """
        return {a.model: a for a in self.found}[model]

    @property
    def strongest(self) -> Attack:
        """The attack with the best figure; as the best of several it is flattered by chance."""
        return max(self.found, key=lambda a: -a.success if a.ordered else a.success)

    def rows(self) -> list[dict[str, Any]]:
        """A table: model, scenario, baseline, success, interval, ceiling."""
        kept = (
            "model",
            "scenario",
            "metric",
            "baseline",
            "success",
            "interval",
            "ceiling",
            "gain",
            "gain_interval",
        )
        return [{name: getattr(a, name) for name in kept} for a in self.found]

    def words(self) -> str:
        """A paragraph for each attacker, then the strongest."""
        told = [a.words() for a in self.found]
        if self.skipped:
            told.append(
                f"Not run, because a library is not installed (tetraodon[attack]): {', '.join(self.skipped)}."
            )
        if len(self.found) > 1:
            told.append(f"The strongest of these: {words.TITLES[self.strongest.model]}.")
        return text_of(told)

    def to_spec(self) -> dict[str, Any]:
        """As plain values. Private."""
        return {"attacks": [a.to_spec() for a in self.found], "skipped": list(self.skipped)}


@dataclass(frozen=True)
class Difference:
    """One attacker against two releases of the same people, on the same splits.

    Attributes:
        first, second: his figure on each, averaged over people and releases.
        difference, interval: first minus second, paired by person, split and seed.
        releases: pairs of releases; ``rounds``: splits in all.
    """

    secret: str
    model: str
    scenario: str
    ordered: bool
    metric: str
    first: float
    second: float
    difference: float
    interval: tuple[float, float]
    level: float
    people: int
    releases: int
    rounds: int

    def words(self) -> str:
        """Which release protects better, if that is clear."""
        return words.difference_words(self)

    def to_spec(self) -> dict[str, Any]:
        """As plain values. Private."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}
