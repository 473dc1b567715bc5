"""What a manifest says of microdata, as the page uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..loss import Loss

if TYPE_CHECKING:
    from .document import File, Line


@dataclass(frozen=True)
class GroupText:
    """A group of a private column: what published rows show, how many rows do, and which values it stands for."""

    label: str
    rows: int
    values: tuple[str, ...]


@dataclass(frozen=True)
class Generalised:
    """A private column with its groups; ``column`` is its published name."""

    column: str
    groups: tuple[GroupText, ...]


@dataclass(frozen=True)
class Limits:
    """What was stated of every group, and of the exchange.

    Attributes:
        k, alpha: rows, at least and at most; ``l``, ``beta``: values, at least and at most, by ``variety``.
        donors: possible donors of each row, at least.
        class_size: rows of a class of quasi-identifiers, at least; None without.
        distortion: the largest expected distance, as it was written; ``metric``: in which distance.
        is_each: whether it holds in every group, not only over all rows.
        method: of the search.
    """

    k: int
    l: float  # noqa: E741
    alpha: int | None
    beta: int | None
    variety: str
    donors: int
    class_size: int | None
    distortion: str
    metric: str
    is_each: bool
    method: str


@dataclass(frozen=True)
class Figures:
    """Bits and distances of the exact laws that were drawn from; keys as in the manifest."""

    unknown: float
    classes: float
    naming: float
    exchange: float
    leakage: float
    unprotected: float
    distortion: float
    budget: float


@dataclass(frozen=True)
class Histogram:
    """Rows of every value of a private column, with the group that each was put into."""

    column: str
    values: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class Exchanged:
    """One exchanged column before and after: counts in bins of a number, or of values.

    Attributes:
        edges: of the bins; empty where ``labels`` name the values.
        is_open: whether the last bin holds everything above.
        distance: half the sum of differences of the two shares, from 0 to 1.
    """

    column: str
    edges: tuple[float, ...]
    labels: tuple[str, ...]
    is_open: bool
    before: tuple[int, ...]
    after: tuple[int, ...]
    distance: float


@dataclass(frozen=True)
class Exchange:
    """The exchanged columns: those that are drawn, how many were compared, and their mean distance."""

    columns: tuple[Exchanged, ...]
    compared: int
    mean: float


@dataclass(frozen=True)
class Guesser:
    """One trained attacker: his figure on the published rows, and on the same columns unprotected.

    Attributes:
        model: as ``leakage.attacks`` calls it.
        helps: +1 where the rows clearly help him, −1 where he clearly does worse than without, else 0.
        learns: whether unprotected columns clearly help him.
    """

    model: str
    success: float
    interval: tuple[float, float]
    ceiling: float
    helps: int
    learns: bool


@dataclass(frozen=True)
class Attackers:
    """Trained attackers on one private column.

    Attributes:
        column, unit: what they are after.
        is_number: whether figures are mean errors; else they are shares of right guesses.
        kinds: different values there are.
        rows, total: rows that they were tried on, and rows there are.
        level: of the intervals.
        baseline: of one who knows no row.
    """

    column: str
    unit: str
    is_number: bool
    kinds: int
    rows: int
    total: int
    level: float
    baseline: float
    baseline_interval: tuple[float, float]
    found: tuple[Guesser, ...]


@dataclass(frozen=True)
class RiskText:
    """Rows that look alike by some published columns, in the words of the field; see ``microdata.risk``."""

    by: tuple[str, ...]
    classes: int
    k: int
    l: int  # noqa: E741
    entropy_l: float
    t: float
    is_ordered: bool
    prosecutor: tuple[float, float, float]
    threshold: float


@dataclass(frozen=True)
class MicrodataEvidence:
    """What was computed from private rows.

    Attributes:
        bound: bits that no groups of this kind leak less than, within the distance; None where nothing is known of others.
        gap: bits between the release and ``bound``.
        coarse: bits that coarse groups were charged.
        realised: mean distance of what was published.
        curve: of these groups, with its bound.
        history: (kind, bits, distance) of each step of an alternating search.
        words: sentences, each beginning with its kind.
    """

    figures: Figures
    bound: float | None
    gap: float | None
    coarse: float
    realised: float
    curve: tuple[Line, ...]
    history: tuple[tuple[str, float, float], ...]
    histograms: tuple[Histogram, ...]
    exchange: Exchange
    attackers: tuple[Attackers, ...]
    risk: tuple[RiskText, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Microdata:
    """Whole rows that went out generalised and exchanged, as their manifest tells it (keys as there).

    Attributes:
        exchanged, quasi_identifiers: published columns that were exchanged, and those that leave in classes.
        groups: of each private column.
        evidence: what was computed from private rows; None where it is not published.
    """

    name: str
    guarantee: str
    loss: Loss
    mechanism: str
    rows: int
    attributes: tuple[str, ...]
    exchanged: tuple[str, ...]
    quasi_identifiers: tuple[str, ...]
    groups: tuple[Generalised, ...]
    limits: Limits
    is_typical: bool
    disclosed: tuple[str, ...]
    evidence: MicrodataEvidence | None
    ledger_row: int
    files: tuple[File, ...]
    content: tuple[str, bytes]

    @property
    def words(self) -> tuple[str, ...] | None:
        """Sentences of the evidence; None where it is not published."""
        return None if self.evidence is None else self.evidence.words

    @property
    def is_measured(self) -> bool:
        """Nothing is proved of such rows."""
        return True

    @property
    def file_of_groups(self) -> str:
        """The published file that says which values each label stands for."""
        return next(f.path for f in self.files if f.form == "groups")
