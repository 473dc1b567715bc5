"""Released rows: drawn once, with what they cost and what can be said of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..channels.channel import Channel
from ..domain import Domain
from ..errors import Unsupported
from ..loss import Loss
from ..sensitivity import Sensitivity
from .query import Rows
from .staged import InMemory, Staged
from .strategy import Replaced, RowStrategy

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from ..table import Counts, Table


@dataclass(frozen=True, eq=False)
class RowRelease:
    """Private rows. Reading them again gives the same rows: they were drawn once.

    Attributes:
        name: what the ledger calls it.
        strategy: what was run.
        held: one row for every record, in random order: replaced values, then what was kept; in memory, or in a folder.
        total: number of records, public.
        charge: number of the ledger row that holds it.
        context: what the session says about data, policy and budget.
        joints: joint counts behind channels fitted on these rows, by the part's place. Private.
        spent: what was charged, exactly: nothing for permanent answers that were charged before.
        publishes_evidence: whether what is computed from private rows is written beside the release.
        answers: releases of the same run that channels took priors from, by name.
        notes: what else the ledger says of it.
    """

    name: str
    strategy: RowStrategy
    held: InMemory | Staged
    total: int
    spent: Loss
    charge: int
    context: Mapping[str, Any]
    joints: Mapping[int, Any]
    publishes_evidence: bool = False
    answers: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    considered = ()

    @property
    def query(self) -> Rows:
        """What was asked."""
        return self.strategy.query

    @property
    def guarantee(self) -> str:
        """ "proved" or "measured"."""
        return self.strategy.guarantee

    @property
    def mechanism(self) -> Replaced:
        """The channels by name."""
        return self.strategy.mechanism

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channel of each place, as it was drawn from."""
        return tuple(p.channel for p in self.strategy.parts if p.channel is not None)

    @property
    def cost(self) -> Sensitivity:
        """The exact cost with an edge that attains it."""
        return self.strategy.cost

    def disclosures(self) -> list[str]:
        """What left as it is, or without a proved bound."""
        return [*self.strategy.disclosed(), *self.notes]

    @property
    def is_staged(self) -> bool:
        """Whether the rows are in a folder, until ``save`` has published them."""
        return isinstance(self.held, Staged)

    @property
    def table(self) -> pyarrow.Table:
        """The published rows, all in memory."""
        return self.held.whole()

    def to_arrow(self) -> pyarrow.Table:
        """The published rows, all in memory. Those that are staged can be read until ``save`` has published them."""
        return self.table

    def to_frame(self) -> pandas.DataFrame:
        """``to_arrow()`` as a pandas frame."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise Unsupported("to_frame: needs pandas; install it or use to_arrow().") from None
        return self.table.to_pandas()

    def save(self, folder: str | os.PathLike[str], formats: Sequence[str] = ("parquet",)) -> Path:
        """Write the rows and a manifest to a folder; returns the manifest's path."""
        from ..publish import publish

        found: Path = publish(Path(folder), [(self, tuple(formats))], self.context)
        return found

    def __repr__(self) -> str:
        told = self.spent.show() if self.guarantee == "proved" else "no proved bound"
        return f"RowRelease {self.name!r}: {self.query.title}, {self.mechanism.words}, {told}"


def joint_counts(table: Table, strategy: RowStrategy) -> dict[int, Any]:
    """Joint counts of a secret and a part's values, by the part's place, for channels that are fitted on these very rows.
    Private."""
    found: dict[int, Any] = {}
    for at, part in enumerate(strategy.parts):
        if part.declared is not None and part.declared.is_of_rows:
            secret = str(part.declared.told["secret"])
            counts = table.counts(secret, *part.names)
            found[at] = _joint(counts, secret, part.domain)
    return found


def _joint(counts: Counts, secret: str, values: Domain) -> Any:
    cells = counts.domain
    if counts.dense is None:
        raise Unsupported(
            "rows.channel.secret: more than 10^7 joint cells with the values; declare coarser ones."
        )
    cube = counts.dense.reshape(cells.shape)
    at = cells.names.index(secret)
    joint = np.moveaxis(cube, at, 0).reshape(cells.shape[at], values.size).astype(np.float64)
    return joint[joint.sum(axis=1) > 0]


def check_persons(table: Table, strategy: RowStrategy) -> None:
    """Read the column that tells persons apart once, and look where rows will be drawn, before anything is charged.

    Raises:
        DataError: there is none, or it is not of texts or whole numbers, or holds nulls.
        Unsupported: the table's engine draws them, and has no place to write them to.
    """
    lasting = strategy.query.permanent
    if lasting is None:
        table.check_spread()
    if lasting is not None:
        for _ in table.rows(strategy.query.attributes[0], ident=lasting.id):
            pass


def drawn(table: Table, strategy: RowStrategy, mark: str = "") -> pyarrow.Table:
    """One row for every record, drawn and put in random order.

    Args:
        mark: what the account knows this use of a store of permanent answers by.
    """
    from ..channels.apply import Lasting, Target, applied
    from ..channels.permanent import Permanent

    targets = [Target(p.channel, p.names) for p in strategy.parts if p.channel is not None]
    lasting, kept = strategy.query.permanent, strategy.query.keep
    if lasting is None:
        return applied(table, targets, shown=kept)
    with Permanent.open(Path(lasting.store)) as store:
        return applied(table, targets, (), Lasting(store, lasting.id, lasting.epoch, mark), kept)
