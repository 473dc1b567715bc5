"""Which releases can see one and the same change of a record: parallel composition, read off the filters.

An edge keeps every attribute inside one component of that attribute's own graph, so a release that filters a whole component
away is not touched by edges there. That speaks of one table: what a person's record is in another edition is another matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from .axes import Bools, Ints
from .charges import Keyed, kept_rows
from .entries import Charge
from .errors import Unsupported
from .graphs import Graph
from .policy import Policy

CONTEXTS = 4096


def filtered(charge: Charge) -> bool:
    """Whether some rows of a charge leave records out."""
    told = charge.cost.get("terms", ()) if isinstance(charge.cost, Mapping) else ()
    return any("where" in each.get("query", ()) for each in told)


def contexts(charges: Sequence[Keyed], policy: Policy, within: Mapping[str, int] | None) -> Bools:
    """Shape (contexts, charges): which releases of one table can see one and the same change of a record.

    Args:
        within: only changes of records that have this cell of each named attribute.
    """
    every = np.ones((1, len(charges)), dtype=bool)
    seen = {
        i: _seen(each, Keyed(policy.hash, policy)) for i, each in enumerate(charges) if filtered(each.held)
    }
    for name in dict.fromkeys(n for told in seen.values() for n in told):
        labels = _components(policy.neighbourhood.graph, name)
        if labels is None:
            continue
        pattern = np.ones((int(labels.max()) + 1, len(charges)), dtype=bool)
        for i, told in seen.items():
            if name in told:
                pattern[:, i] = np.bincount(labels, weights=told[name], minlength=len(pattern)) > 0
        if within is not None and name in within:
            distinct = pattern[[labels[within[name]]]]
        else:
            distinct = np.unique(pattern, axis=0)
        if len(every) * len(distinct) > CONTEXTS:
            continue  # fewer contexts are told apart: the bound stays one
        every = np.unique(np.array([x & y for x, y in product(every, distinct)]), axis=0)
    return every


@lru_cache(maxsize=1024)
def _seen(charge: Keyed, policy: Keyed) -> Mapping[str, Bools]:
    """For every attribute that a charge filters, the cells that some of its rows see."""
    found: dict[str, Bools] = {}
    terms = [*kept_rows(charge, policy)[0]]
    filters = []
    for term in terms:
        r = term.resolved
        told = dict(r.filters)
        told |= {
            g.name: g.labels >= 0 for g in [*r.groups, *([r.axis] if r.axis else [])] if g.labels is not None
        }
        filters.append({name: kept for name, kept in told.items() if not kept.all()})
    for name in dict.fromkeys(n for told in filters for n in told):
        if all(name in told for told in filters):
            found[name] = np.logical_or.reduce([told[name] for told in filters])
    return found


def _components(graph: Graph, name: str) -> Ints | None:
    """Component of every cell of one attribute in the graph that is left when only this attribute is looked at."""
    try:
        small = graph.project([name])
        return small.axes[0].components
    except Unsupported:
        return None
