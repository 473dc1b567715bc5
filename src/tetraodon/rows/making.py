"""Rows of a request that was charged: drawn now, or staged and drawn when they are first read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..entries import Charge
from .floor import drawn_after
from .lasting import charged_already, mark_of
from .release import RowRelease, drawn
from .staged import InMemory, Staged
from .strategy import RowStrategy

if TYPE_CHECKING:
    from ..table import Table


def made_rows(
    table: Table,
    strategy: RowStrategy,
    held: Mapping[int, Any] | Staged,
    charge: Charge,
    row: int,
    releases: Mapping[str, Any],
    context: Mapping[str, Any],
    publishes_evidence: bool,
) -> RowRelease:
    """The release.

    Args:
        held: joint counts behind channels fitted on these rows, or the folder of staged ones.
        row: of the ledger that holds the charge.
        releases: earlier ones of the same run, by name.
        context: what the session says about data, policy and budget.
    """
    rows: InMemory | Staged
    if isinstance(held, Staged):
        rows, joints = held, dict[int, Any]()
    else:
        joints = dict(held)
        with charged_already(charge.name):
            strategy = strategy.finished(releases)
            if strategy.has_floor:
                strategy, told, joints = drawn_after(table, strategy)
            else:
                told = drawn(table, strategy, mark_of(charge))
        rows = InMemory(told)
    used = {name: releases[name] for name in strategy.needs}
    more = tuple(str(d) for d in charge.disclosures if d not in strategy.disclosed())
    # As many as leave: where rows have weights, the sum of these may be a secret.
    return RowRelease(
        charge.name, strategy, rows, rows.count, charge.loss, row, context, joints, publishes_evidence, used, more
    )  # fmt: skip
