"""In words, what a release publishes exactly because the policy does not hold it secret."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from .mechanisms.blocks import DisclosedBlocks
from .mechanisms.parts import Part
from .mechanisms.strategy import Strategy
from .people import ONE_RECORD, People
from .phrases import bins_text, every, kept_text
from .queries import Query
from .workload import Resolved, Rows

RECORDS = "the number of records"

if TYPE_CHECKING:
    from .clustering.released import Way
    from .marginals.strategy import MarginalStrategy
    from .microdata.strategy import HybridStrategy
    from .rows.strategy import RowStrategy


def exact_rows(
    strategy: Strategy | MarginalStrategy | Way | RowStrategy | HybridStrategy, people: People = ONE_RECORD
) -> list[str]:
    """One text for every kind of row that was observed without noise; different facts have different texts.

    Args:
        people: what one person adds: counts of weighted records are sums of weights.
    """
    told = _exact_rows(strategy)
    return told if people.weight is None else [line.replace(RECORDS, "the sum of weights") for line in told]


def _exact_rows(strategy: Strategy | MarginalStrategy | Way | RowStrategy | HybridStrategy) -> list[str]:
    if not isinstance(strategy, Strategy):
        return strategy.disclosed()
    resolved = strategy.resolved
    bins = resolved.query.to_spec().get("bins", {})
    groups = every([g.name for g in resolved.groups], bins)
    along = {n: b for n, b in bins.items() if resolved.axis is not None and n == resolved.axis.name}
    tail = filter_text(resolved.query) + (f" for every {groups}" if groups else "")
    lines = []
    for part in strategy.parts:
        if not part.exact.any():
            continue
        is_public = not groups and not resolved.is_filtered
        if _is_total(strategy, part):
            lines += (
                [] if is_public else [f"the number of records{tail}"]
            )  # without groups it is public anyway
        else:
            lines.append(_what(resolved, strategy, part) + tail + bins_text(along))
    if strategy.blocks is not None:
        lines.append(_of_blocks(resolved, strategy.blocks))
    return list(dict.fromkeys(lines))


def _of_blocks(resolved: Resolved, blocks: DisclosedBlocks) -> str:
    """Totals over several groups: of every value of some attributes, or of blocks of them."""
    split = [*resolved.groups, *([resolved.axis] if resolved.axis is not None else [])]
    kinds = {g.name: len(f) for g, f in zip(split, blocks.factors, strict=True)}
    names = [n for n in resolved.domain.names if kinds.get(n, 1) > 1]
    kept, told = filter_text(resolved.query), every(names, resolved.query.to_spec().get("bins", {}))
    if all(kinds[g.name] in (1, g.size) for g in split):
        return f"the number of records{kept} for every {told}"
    return f"the number of records{kept} in every one of the {blocks.count} blocks of {told} that the policy discloses"


def _is_total(strategy: Strategy, part: Part) -> bool:
    """Whether the one exact row counts all records of a group."""
    return part.name == "chain" and int(part.exact.sum()) == 1 and bool(part.exact[-1])


def _what(resolved: Resolved, strategy: Strategy, part: Part) -> str:
    count, query = int(part.exact.sum()), resolved.query
    along = resolved.axis.name if resolved.axis is not None else "the table"
    if isinstance(resolved.workload, Rows) and strategy.is_direct:
        if query.word == "linear":
            name = hashlib.sha256(json.dumps(query.to_spec(), sort_keys=True).encode()).hexdigest()[:8]
            return f"{count} combinations of the counts of {along} (query {name})"
        if query.word == "mean" and part is strategy.parts[-1]:
            everybody = resolved.axis is not None and resolved.axis.n_ordinary == resolved.axis.size
            return "the number of records" + ("" if everybody else f" with a value of {along}")
        return f"the total of {along}"
    if part.name == "chain":
        return f"{count} of {len(part.exact)} cumulative counts along {along}"
    return f"{count} counts of cells or ranges of {along}"


def filter_text(query: Query) -> str:
    """A query's filter in words, to stand behind what is counted; nothing without one."""
    parts = [f"{name} {kept_text(value)}" for name, value in query.to_spec().get("where", {}).items()]
    return f" with {', '.join(parts)}" if parts else ""
