"""What a search for groups and channels came to: the groups, the exact laws that are drawn from, and figures of both.

Everything in a plan was computed from private rows. What leaves is what ``drawing`` draws from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

import numpy as np

from ..axes import Ints
from ..channels.table import Table
from ..errors import Refused
from .alternating import Step
from .data import PrivateColumn
from .families import Floats
from .joint import Found
from .prepared import Piece, Prepared
from .settings import Hybrid

LN2 = log(2.0)
SHARES = (0.0, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3)  # of the nearest targets in a law


@dataclass(frozen=True, eq=False, repr=False)
class Group:
    """Values of a private column that are published as one.

    Attributes:
        label: what is published.
        members: the values, ascending.
    """

    label: str
    members: Ints


@dataclass(frozen=True, eq=False, repr=False)
class Law:
    """The channel of one group within one class, as it is drawn from.

    Attributes:
        group: joint group of the private columns.
        class_: class of quasi-identifiers.
        table: exact law over clusters, a row for each of ``rows``.
        rows, columns: the clusters that its rows and columns are.
        joint: share of all records by private value and cluster, of those in the group.
        cost, mean: distances between ``rows`` and ``columns``: those that the budget is charged with, and the means (the same
            unless distances were sampled).
    """

    group: int
    class_: int
    table: Table
    rows: Ints
    columns: Ints
    joint: Floats
    cost: Floats
    mean: Floats

    @property
    def matrix(self) -> Floats:
        """Probabilities, shape (rows, columns)."""
        found = np.zeros(self.cost.shape)
        found[:, self.table.columns] = self.table.entries
        return found


@dataclass(frozen=True, eq=False)
class Plan:
    """Groups, channels and their figures. Private, every number of it.

    Attributes:
        settings: what was asked, with the exchanged columns by name.
        columns: the private columns.
        groups: of each private column.
        laws: the channels.
        prepared: what they were computed from.
        bound: bits that no groups of these kinds that meet the requirements, with any channels between these clusters within the
            budget and the rule of donors, leak less than (with the price of coarseness, where there is one); None where nothing is proved of other groups: of an alternating search, of several
            private columns, and where distances were sampled.
        coarse: what coarseness costs, in bits.
        history: of an alternating search.
        sampled: where groups were found on a sample, what they came to there: "rows", "leakage" in bits, "distortion".
    """

    settings: Hybrid
    columns: tuple[PrivateColumn, ...]
    groups: tuple[tuple[Group, ...], ...]
    laws: tuple[Law, ...]
    prepared: Prepared
    bound: float | None
    coarse: float = 0.0
    history: tuple[Step, ...] = ()
    channel_bound: float | None = None
    sampled: Mapping[str, float] | None = None
    _figures: dict[str, float] = field(default_factory=dict)

    @property
    def group_of(self) -> tuple[Ints, ...]:
        """The group of every value of each private column."""
        found = []
        for column, groups in zip(self.columns, self.groups, strict=True):
            own = np.zeros(column.size, dtype=np.int64)
            for at, group in enumerate(groups):
                own[group.members] = at
            found.append(own)
        return tuple(found)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Groups of each private column."""
        return tuple(len(groups) for groups in self.groups)

    def joint_group(self, codes: Sequence[Ints]) -> Ints:
        """The joint group of rows, from their private values."""
        parts = tuple(g[c] for g, c in zip(self.group_of, codes, strict=True))
        return np.ravel_multi_index(parts, self.sizes).astype(np.int64)

    @property
    def figures(self) -> Mapping[str, float]:
        """Leakage in bits, distances in the metric's unit; see the keys.

        ``unknown`` H(Y); ``classes`` I(Y; classes); ``naming`` what the groups' names add; ``exchange`` what the exchanged
        columns add; ``leakage`` the sum of the three; ``unprotected`` the same with the columns' clusters left as they are
        (names of groups included); ``distortion`` expected; ``distortion_mean`` without what sampling adds; ``budget``.
        """
        if not self._figures:
            self._figures.update(_figures(self))
        return self._figures

    @property
    def leakage(self) -> float:
        """I(private; published), in bits, of the exact laws that are drawn from, on the fitted rows."""
        return self.figures["leakage"]

    @property
    def gap(self) -> float | None:
        """How far the plan is from the best possible at most, in bits; None where nothing is proved."""
        return None if self.bound is None else max(self.leakage + self.coarse - self.bound, 0.0)

    def to_spec(self) -> dict[str, Any]:
        """Plain values: settings, groups and figures. Private."""
        return {
            **self.settings.to_spec(),
            "groups": {
                column.name: [
                    {"label": g.label, "values": [column.labels[m] for m in g.members.tolist()]}
                    for g in groups
                ]
                for column, groups in zip(self.columns, self.groups, strict=True)
            },
            "figures": dict(self.figures),
            "bound": self.bound,
            "gap": self.gap,
            "sampled": None if self.sampled is None else dict(self.sampled),
            "history": [
                {"kind": s.kind, "leakage": s.leak / LN2, "distortion": s.distortion} for s in self.history
            ],
        }

    def __repr__(self) -> str:
        told = ", ".join(f"{c.name}: {len(g)} groups" for c, g in zip(self.columns, self.groups, strict=True))
        return f"Plan({told}; {self.settings.method})"


def _figures(plan: Plan) -> dict[str, float]:
    counts = plan.prepared.counts / plan.prepared.total
    unknown = _entropy(counts.sum(axis=(0, 2)))
    classes = unknown + _entropy(counts.sum(axis=(1, 2))) - _entropy(counts.sum(axis=2))
    shares: dict[tuple[int, int], float] = {}
    exchange = identity = distortion = mean = 0.0
    for law in plan.laws:
        shares[law.class_, law.group] = float(law.joint.sum())
        matrix, mass = law.matrix, law.joint.sum(axis=0)
        exchange += _told(law.joint @ matrix)
        identity += _told(law.joint)
        distortion += float((mass @ (matrix * law.cost)).sum())
        mean += float((mass @ (matrix * law.mean)).sum())
    by_class = counts.sum(axis=(1, 2))
    naming = sum(-w * np.log2(w / by_class[q]) for (q, _), w in shares.items())
    return {
        "unknown": unknown,
        "classes": classes,
        "naming": float(naming),
        "exchange": exchange,
        "leakage": classes + float(naming) + exchange,
        "unprotected": classes + float(naming) + identity,
        "distortion": distortion,
        "distortion_mean": mean,
        "budget": plan.settings.distortion,
    }


def _entropy(table: Floats) -> float:
    told = table[table > 0]
    return max(float(-(told * np.log2(told)).sum()), 0.0)


def _told(joint: Floats) -> float:
    """Σ m log2( m·w / (row·column) ): the information of a table that sums to w, times w."""
    share = joint.sum()
    return max(
        _entropy(joint.sum(axis=1))
        + _entropy(joint.sum(axis=0))
        - _entropy(joint)
        + float(share * np.log2(share)),
        0.0,
    )


def laws_of(prepared: Prepared, found: Found) -> tuple[Law, ...]:
    """The exact laws of a partition's channels, group by group; together they keep the budget.

    Doubles are read as the rational numbers that they are; where rounding would pass the budget by a hair, every law is
    mixed with the nearest targets (every cluster with itself, where shares are kept) until it does not.

    Raises:
        Refused: the budget is so close to the least distortion there is that no mixture keeps it.
    """
    flat: list[tuple[int, Ints, Piece]] = []
    for g, (members, pieces) in enumerate(zip(found.groups, found.pieces, strict=True)):
        flat += [(g, members, p) for p in pieces]
    settings = prepared.settings
    for share in SHARES:
        tables = [
            Table.of((1 - share) * channel + share * _near(piece, settings.is_invariant))
            for (_, _, piece), channel in zip(flat, found.channels, strict=True)
        ]
        spent = [_spent(piece, table) for (_, _, piece), table in zip(flat, tables, strict=True)]
        limits = [p.block.share * settings.distortion for _, _, p in flat]
        if settings.budget == "shared":
            spent, limits = [sum(spent)], [settings.distortion]
        if all(a <= b for a, b in zip(spent, limits, strict=True)):
            break
    else:
        raise Refused(
            "hybrid.distortion: it can be kept up to the last digits only. Allow a little more, or a little less."
        )
    made = []
    for (g, members, piece), table in zip(flat, tables, strict=True):
        mean = prepared.mean_cost(piece, members)
        made.append(
            Law(g, piece.class_, table, piece.rows, piece.columns, piece.block.joint, piece.block.cost, mean)
        )
    return tuple(made)


def _near(piece: Piece, is_invariant: bool) -> Floats:
    cost = piece.block.cost
    if is_invariant:
        return np.eye(len(cost))
    found = np.zeros(cost.shape)
    found[np.arange(len(cost)), cost.argmin(axis=1)] = 1.0
    return found


def _spent(piece: Piece, table: Table) -> float:
    matrix = np.zeros(piece.block.cost.shape)
    matrix[:, table.columns] = table.entries
    return float((piece.block.joint.sum(axis=0) @ (matrix * piece.block.cost)).sum())
