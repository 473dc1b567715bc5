"""What the channels of a request lose: checked on the very law that is drawn from, whatever their labels say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from ..attributes import Attribute
from ..binding import bind
from ..channels.bounds import Bounds, down, edges_of
from ..channels.channel import Channel
from ..channels.law import Law
from ..channels.table import Table
from ..channels.then import Relabelled, Then
from ..domain import Domain
from ..errors import PolicyError, Unsupported
from ..policy import Policy
from ..queries import Histogram
from ..secrets import AttributeWise, Edges, Full, Nothing, Partition, Secrets, Within
from ..sensitivity import Term, rows, stacked
from ..sensitivity.ratios import INFINITE, PAIRWISE, Listed, Ratios
from ..workload import resolve
from .declared import Declared
from .query import Rows

STEPS = 2**40  # whole units of an asked ε


@dataclass(frozen=True, eq=False)
class Part:
    """One place with its channel.

    Attributes:
        names, domain: the attributes that it replaces together.
        secrets: what the policy says of them.
        epsilon: what the channel has to keep along every edge; None for none.
        channel: made, or None where it waits for answers or counts.
        is_kept: whether it was decided exactly that the channel keeps ``epsilon``.
    """

    names: tuple[str, ...]
    domain: Domain
    secrets: Secrets
    epsilon: Fraction | None
    declared: Declared | None
    channel: Channel | None
    is_kept: bool = False


def keeps(channel: Channel, secrets: Secrets, epsilon: Fraction) -> bool:
    """Whether a channel loses at most ε along every edge: by certified bounds where they are enough, else exactly, in integers,
    on the table itself or, for a channel that is followed by others, on the first one's."""
    if channel.epsilon(secrets) <= epsilon:
        return True
    law: Law = channel.law
    while isinstance(law, Relabelled | Then):
        law = law.first
    if not isinstance(law, Table):
        return False
    first, second = edges_of(bind(secrets, channel.domain))
    return law.keeps(Bounds(first, second, np.full(len(first), down(epsilon))))


def terms(parts: Sequence[Part], policy: Policy, count: int) -> list[Term] | None:
    """What the channels observe, in units of an asked ε; None where some channel waits, or has more than 2,048 cells.

    Args:
        count: rows of a person.
    """
    found = []
    for part in parts:
        channel = part.channel
        if channel is None or channel.domain.size > PAIRWISE:
            return None
        assert part.epsilon is not None
        unit = part.epsilon / STEPS
        layer = Ratios(tuple(a.size for a in part.domain.values()), _listed(part, channel, unit, policy))
        found.append(Term(resolve(Rows(part.names), policy.domain), (layer,), unit * count, True))
    return found


def _listed(part: Part, channel: Channel, unit: Fraction, policy: Policy) -> Listed:
    """Losses pair by pair, rounded up."""
    n = channel.domain.size
    first, second = np.triu_indices(n, 1)
    told = channel.law.losses(first, second)
    whole = np.minimum(np.ceil(told / float(unit) * (1 + 1e-12)), float(INFINITE))
    table = np.zeros((n, n), dtype=np.int64)
    table[first, second] = np.where(np.isfinite(told), whole, INFINITE).astype(np.int64)
    if part.is_kept:
        # It was decided exactly that no edge loses more than the ε; rounding up must not make one dearer.
        a, b = edges_of(policy.graph.project(part.domain.names))
        low, high = np.minimum(a, b), np.maximum(a, b)
        table[low, high] = np.minimum(table[low, high], STEPS)
    return Listed(table + table.T)


def secrets_of(policy: Policy, domain: Domain) -> Secrets:
    """What a policy's secrets say of some attributes alone.

    Raises:
        Unsupported: secrets over several attributes at once, of which only some are named.
    """
    told = policy.secrets
    if isinstance(told, Full | Nothing) or domain.names == policy.domain.names:
        return told
    if isinstance(told, AttributeWise):
        graphs = dict(told.graphs) or {n: Full() for n in policy.domain.names}
        return AttributeWise(
            {n: g for n, g in graphs.items() if n in domain.names} or {domain.names[0]: Nothing()}
        )
    on = getattr(told, "on", None)
    if isinstance(told, Within | Edges | Partition) and on is not None:
        return told if on in domain.names else Nothing()
    raise Unsupported(
        "rows: these secrets speak of several attributes at once; name all of them in one place, such as rows = [['x', 'y']]."
    )


def kept_terms(names: Sequence[str], policy: Policy) -> tuple[Term, ...]:
    """What is observed of attributes that leave as they are."""
    if not names:
        return ()
    resolved = resolve(Histogram(*names), policy.domain)
    return (Term(resolved, (rows.Blocks(resolved.n_positions),), Fraction(1), True),)


def check_kept(names: Sequence[str], policy: Policy) -> None:
    """Refuse to let a secret out as it is.

    Raises:
        PolicyError: an edge changes one of these attributes, or known counts can make a record of another value change.
    """
    for term in kept_terms(names, policy):
        if stacked([term], policy.neighbourhood).value:
            secret = [n for n in names if n not in policy.graph.unprotected] or list(names)
            raise PolicyError(
                f"rows.keep: {', '.join(secret)} is a secret of this policy and would leave as it is; replace it through a "
                "channel, or leave it out."
            )


def check_ident(column: str, policy: Policy) -> None:
    """Refuse persons that are told apart by a secret: whose answers agree would show it.

    Raises:
        PolicyError: the id column is one of an attribute that edges or known counts change.
    """
    for name, attribute in policy.domain.items():
        if column in attribute.columns(name):
            try:
                check_kept([name], policy)
            except PolicyError:
                raise PolicyError(
                    f"rows.permanent.id: {column!r} is the column of {name!r}, a secret of this policy; answers that agree "
                    "would show it. Name a column of ids that are no secret and never change."
                ) from None


def ident_attributes(query: Rows, policy: Policy) -> list[str]:
    """Declared attributes whose column tells persons apart: answers that agree show them."""
    if query.permanent is None:
        return []
    return [n for n, a in policy.domain.items() if query.permanent.id in a.columns(n) and n not in query.keep]


def told_apart(part: Part) -> list[str]:
    """What a part's channel tells for certain because the policy does not hold it secret, in words.

    Where each attribute has a graph of its own, of two records that differ in it alone, by lying in two of its components.
    """
    channel = part.channel
    if channel is None or channel.is_private:
        return []
    graph = bind(part.secrets, part.domain)
    if graph.kind == "flat" and len(part.domain) > 1:
        heads = np.unique(np.asarray(graph.axes[0].components), return_index=True)[1]
        apart = np.isinf(channel.law.losses(np.full(len(heads), heads[0]), heads))
        return [_between(" and ".join(part.names))] if apart.any() else []
    lines = []
    for at, (name, attribute) in enumerate(part.domain.items()):
        heads = np.unique(np.asarray(graph.axes[at].components), return_index=True)[1]
        cells = [np.zeros(len(heads), dtype=np.int64) for _ in part.domain]
        cells[at] = heads.astype(np.int64)
        code = part.domain.encode(cells)
        apart = np.isinf(channel.law.losses(np.full(len(code), code[0]), code))
        special = heads >= attribute.n_values
        if (apart & special).any():
            lines.append(
                f"whether the {name} of every record is {_names(attribute, heads[special].tolist())}"
            )
        if (apart & ~special).any():
            lines.append(_between(name))
    return lines


def _names(attribute: Attribute, cells: Sequence[int]) -> str:
    return " or ".join(attribute.label(c) for c in cells)


def _between(names: str) -> str:
    return f"which part of {names} every record lies in, of those that no secret joins"


def realised(channel: Channel, secrets: Secrets) -> float | None:
    """What a channel loses along the edges, for reports; None without a bound."""
    found = channel.epsilon(secrets)
    return None if found == inf else float(found)
