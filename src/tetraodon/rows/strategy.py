"""Rows under a policy: one channel for each place, what it must keep, and what all of it costs a person.

A change of one record along an edge changes the law of its outputs, by at most e^c(x, y) for each channel whose values the
edge changes. So an asked ε is shared by the channels that one edge can touch together, and by the rows of a person: with m rows
each of which a channel replaces afresh, ε/m for each. Under known counts several records change at once, and channels are
made for as little as Rule R leaves them, arc by arc (outputs stay attached to records). Source: docs/channels.md, derived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from ..channels.channel import Channel
from ..channels.priors import worst
from ..domain import Domain
from ..errors import PolicyError, Refused, SpecificationError, TetraodonError, Unsupported
from ..exact import show
from ..loss import Loss
from ..policy import Policy
from ..queries import Histogram
from ..secrets import AttributeWise, Edges, Full, Nothing, Partition, Secrets, Within
from ..sensitivity import Neighbourhood, Sensitivity, Term, describe, rows, stacked
from ..sensitivity.ratios import INFINITE, PAIRWISE, Lengths, Listed, Ratios
from ..workload import resolve
from .declared import Declared
from .query import Rows

STEPS = 2**40  # whole units of an asked ε
CHANNEL = "channel: every edge keeps the asked epsilon"
ROUNDS = 6


@dataclass(frozen=True)
class Replaced:
    """The mechanism of row releases, as ledgers and manifests name it.

    >>> Replaced(("planar geometric",)).words
    'planar geometric'
    """

    channels: tuple[str, ...]

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form."""
        return {"channels": list(self.channels)}

    @property
    def words(self) -> str:
        """The channels in a few words."""
        return "; ".join(dict.fromkeys(self.channels))


@dataclass(frozen=True, eq=False)
class Part:
    """One place with its channel.

    Attributes:
        names, domain: the attributes that it replaces together.
        secrets: what the policy says of them.
        epsilon: what the channel has to keep along every edge; None for none.
        channel: made, or None where it waits for answers or counts.
    """

    names: tuple[str, ...]
    domain: Domain
    secrets: Secrets
    epsilon: Fraction | None
    declared: Declared | None
    channel: Channel | None


@dataclass(frozen=True, eq=False)
class RowStrategy:
    """A priced request for rows.

    Attributes:
        query, policy: what is asked, under what.
        loss: what was asked for; 0 where there is no proved bound.
        parts: places with their channels.
        cost: the exact cost with an edge that attains it, or the asked one.
        terms: what the channels observe, where it can be kept.
        by_secret: the loss along each attribute's edges.
    """

    query: Rows
    policy: Policy
    loss: Loss
    parts: tuple[Part, ...]
    cost: Sensitivity
    terms: tuple[Term, ...]
    by_secret: Mapping[str, Fraction]
    draws = ()

    @property
    def guarantee(self) -> str:
        """ "proved" where a loss is charged, else "measured"."""
        return "measured" if self.loss.is_zero else "proved"

    @property
    def spent(self) -> Loss:
        """What is charged."""
        return self.loss

    @property
    def domain(self) -> Domain:
        """Of all attributes that are read."""
        secret = [p.declared.told["secret"] for p in self.parts if p.declared and p.declared.is_of_rows]
        return self.policy.domain.select(*self.query.attributes, *self.query.keep, *secret)

    @property
    def mechanism(self) -> Replaced:
        """The channels by name."""
        return Replaced(tuple(p.channel.name if p.channel else words_of(p.declared) for p in self.parts))

    @property
    def exact_terms(self) -> tuple[Term, ...]:
        """What leaves as it is."""
        return _kept(self.query, self.policy)

    @property
    def source(self) -> str:
        """The most private source of any channel."""
        return worst("none", *(source_of_part(p) for p in self.parts))

    @property
    def needs(self) -> tuple[str, ...]:
        """Earlier answers of the same run that channels take priors from."""
        return tuple(dict.fromkeys(n for p in self.parts if p.declared for n in p.declared.needs))

    def fitted(self, joints: Mapping[str, Any]) -> RowStrategy:
        """The strategy with those channels made that are fitted on the rows themselves.

        Args:
            joints: joint counts of a secret and a part's values, by the secret's name. Private.

        Raises:
            Refused: there is no such channel; why is a function of the rows and not said.
        """
        made = []
        for part in self.parts:
            if part.channel is None and part.declared is not None and part.declared.is_of_rows:
                try:
                    joint = joints[part.declared.told["secret"]]
                    channel = part.declared.build(part.domain, part.epsilon, part.secrets, {}, joint)
                except TetraodonError:
                    channel = None
                if channel is None:
                    raise Refused(
                        f"rows.channel: no {words_of(part.declared)} channel was found for these rows; why is a function of "
                        "private rows and withheld. Allow more distortion, or declare coarser cells. Nothing was spent."
                    )
                part = replace(part, channel=channel)
            made.append(part)
        return replace(self, parts=tuple(made))

    def finished(self, answers: Mapping[str, Any]) -> RowStrategy:
        """The strategy with every channel made.

        Args:
            answers: releases by name, which channels may take priors from.
        """
        made = []
        for part in self.parts:
            if part.channel is None:
                assert part.declared is not None
                channel = part.declared.build(part.domain, part.epsilon, part.secrets, answers)
                part = replace(part, channel=_checked(channel, part))
            made.append(part)
        return replace(self, parts=tuple(made))

    def disclosed(self) -> list[str]:
        """What leaves exactly, in words."""
        lines = [
            f"the {name} of every record, in the same row as its replaced values" for name in self.query.keep
        ]
        if self.guarantee == "measured":
            lines.append(
                f"rows of {', '.join(self.query.attributes)} through a channel without a proved bound"
            )
        return lines

    @property
    def per_person(self) -> dict[str, Any] | None:
        """What a person loses in all, if every row and every place of theirs changed at once."""
        each = [p.epsilon for p in self.parts]
        if self.loss.is_zero or any(e is None for e in each):
            return None
        places, count = len(self.parts), self.query.rows_per_person
        one = each[0]
        assert one is not None
        total = one * places * count
        text = f"epsilon {show(total)} per person = {places} place{'s' * (places > 1)} × "
        text += f"{count} row{'s' * (count > 1)} × {show(one)}"
        if count == 1 and self.query.permanent is None:
            text += ", if nobody has more than one row"
        return {"epsilon": show(total), "places": places, "rows": count, "each": show(one), "text": text}


def priced(query: Rows, policy: Policy, loss: Loss, guarantee: str = "proved") -> RowStrategy:
    """Price a request for rows. Reads and spends nothing.

    Args:
        loss: in ε; 0 for a request without a bound, which says ``guarantee="measured"``.

    Raises:
        SpecificationError: channels that do not fit the attributes; no proved ε, though none was waived.
        PolicyError: a kept attribute, or an output, that would tell secrets apart for certain.
    """
    if loss.unit == "rho":
        raise SpecificationError(
            "rows: channels have a loss in epsilon; state epsilon (an account in rho covers it)."
        )
    for name in (*query.attributes, *query.keep):
        policy.domain.attribute(name, "rows")
    if query.channel is None:
        raise SpecificationError(
            "rows.channel: is missing; a Channel, or a table such as { kind = 'planar-geometric' }."
        )
    _check_kept(query, policy)
    parts = tuple(_part(query, policy, i) for i in range(len(query.columns)))
    private = worst("none", *(source_of_part(p) for p in parts)) == "private"
    if guarantee == "measured":
        amount = loss.amount or None
        made = tuple(_made(replace(p, epsilon=amount)) for p in parts)
        none = Sensitivity(Fraction(0), None, "no proved bound: measured")
        return RowStrategy(query, policy, Loss("epsilon", Fraction(0)), made, none, (), {})
    if private:
        raise SpecificationError(
            "rows.channel: it is fitted on a private prior, so that no epsilon is proved whatever its matrix says; state the "
            "prior's source if it is public, released or of other persons, or ask for guarantee = 'measured'."
        )
    if loss.is_zero:
        raise SpecificationError("rows.epsilon: is missing; add it, or ask for guarantee = 'measured'.")
    if not policy.neighbourhood.is_plain and query.rows_per_person > 1:
        raise Unsupported(
            "rows: several rows per person under known counts have no price; state one of the two."
        )
    return _proved(query, policy, loss, parts)


def _proved(query: Rows, policy: Policy, loss: Loss, parts: tuple[Part, ...]) -> RowStrategy:
    together = 1 if policy.graph.kind == "cartesian" else len(parts)
    epsilon = loss.amount / (query.rows_per_person * together)
    hood = policy.neighbourhood
    for _ in range(ROUNDS):
        made = tuple(_made(replace(p, epsilon=epsilon)) for p in parts)
        terms = _terms(made, policy, query.rows_per_person)
        if terms is None:
            if not hood.is_plain:
                raise Unsupported(
                    "rows: under known counts a channel is priced where it is made from public facts, of up to 2,048 cells."
                )
            cost, by = Sensitivity(loss.amount, None, CHANNEL), _stated(made, policy, loss.amount)
            return RowStrategy(query, policy, loss, made, cost, (), by)
        move = stacked(terms, hood)
        if move.value <= loss.amount:
            by = _stated(made, policy, loss.amount) if hood.is_plain else {"any": loss.amount}
            cost = replace(describe(move), value=loss.amount)  # what is charged; the terms say what is lost
            return RowStrategy(query, policy, loss, made, cost, tuple(terms), by)
        if move.value >= INFINITE // 4 * epsilon / STEPS:
            raise PolicyError(
                "rows: some output would tell values apart for certain that this policy holds secret."
            )
        if not isinstance(query.channel, Declared):
            raise SpecificationError(
                f"rows.epsilon: {show(loss.amount)} is asked, but these channels lose up to "
                f"{float(move.value) * (1 + 1e-9):.6g} under this policy."
            )
        epsilon *= Fraction(loss.amount) / Fraction(move.value) * (1 - Fraction(1, 2**30))
    raise PolicyError(
        "rows: no epsilon was found that these channels keep under the known counts; use fewer constraints."
    )


def _stated(parts: Sequence[Part], policy: Policy, amount: Fraction) -> dict[str, Fraction]:
    """What each attribute's edges lose at most."""
    if policy.graph.kind != "cartesian":
        return {"any": amount}
    return {n: amount for p in parts for n in p.names if policy.graph.axis(n).has_edges}


def _part(query: Rows, policy: Policy, at: int) -> Part:
    names = query.columns[at]
    domain = policy.domain.select(*names)
    secrets = secrets_of(policy, domain)
    graph = policy.graph.project(domain.names)
    if not graph.has_edges:
        raise SpecificationError(
            f"rows: {', '.join(names)} is no secret of this policy, so that nothing says what a channel must keep; "
            "name it in keep, or among the secrets."
        )
    channel = query.channel
    if isinstance(channel, Declared):
        channel.check(domain, policy.domain)
    if isinstance(channel, Declared) or channel is None:
        return Part(domain.names, domain, secrets, None, channel, None)
    if channel[at].domain != domain:
        raise SpecificationError(
            f"rows.channel: the channel of {', '.join(names)} has another domain than the policy."
        )
    return Part(domain.names, domain, secrets, None, None, channel[at])


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


def _made(part: Part) -> Part:
    """The part with its channel, where nothing has to be waited for."""
    declared = part.declared
    if declared is None or declared.needs or declared.is_of_rows:
        return part
    return replace(part, channel=_checked(declared.build(part.domain, part.epsilon, part.secrets, {}), part))


def _checked(channel: Channel, part: Part) -> Channel:
    """Refuse a channel that does not keep what its part was promised: a guard, whatever made it."""
    if part.epsilon is None or part.declared is None:
        return channel
    if channel.epsilon(part.secrets) > part.epsilon * (1 + Fraction(1, 10**9)):
        raise PolicyError(f"rows.channel: {channel.name} loses more than the epsilon that is left for it.")
    return channel


def _terms(parts: Sequence[Part], policy: Policy, count: int) -> list[Term] | None:
    """What the channels observe, in units of an asked ε; None where some channel waits, or has too many cells."""
    found = []
    for part in parts:
        assert part.epsilon is not None
        unit = part.epsilon / STEPS
        apart = _apart(part, unit, policy.neighbourhood)
        if apart is None:
            return None
        shape = tuple(a.size for a in part.domain.values())
        layer = Ratios(shape, apart)
        found.append(Term(resolve(Rows(part.names), policy.domain), (layer,), unit * count, True))
    return found


def _apart(part: Part, unit: Fraction, hood: Neighbourhood) -> Listed | Lengths | None:
    channel = part.channel
    if channel is None:
        return None
    n = channel.domain.size
    if n <= PAIRWISE:
        first, second = np.triu_indices(n, 1)
        told = channel.law.losses(first, second)
        whole = np.minimum(np.ceil(told / float(unit) * (1 + 1e-12)), float(INFINITE))
        table = np.zeros((n, n), dtype=np.int64)
        table[first, second] = np.where(np.isfinite(told), whole, INFINITE).astype(np.int64)
        if part.declared is not None:
            # Rounding up must not make an edge dearer than the ε that the channel was made for, and checked against.
            a, b = _edges(part, hood)
            low, high = np.minimum(a, b), np.maximum(a, b)
            over = table[low, high] <= STEPS * (1 + 1e-9)
            table[low, high] = np.where(over, np.minimum(table[low, high], STEPS), table[low, high])
        return Listed(table + table.T)
    asked = channel.asked
    if asked is None or asked.per is None or not channel.place.is_grid:
        return None
    from ..channels.bounds import stretch

    rate = asked.epsilon / stretch(asked.per, channel.place.unit)
    return Lengths(channel.place.shape, channel.place.steps, rate, unit)


def _edges(part: Part, hood: Neighbourhood) -> tuple[Any, Any]:
    from ..channels.bounds import edges_of

    return edges_of(hood.graph.project(part.domain.names))


def _kept(query: Rows, policy: Policy) -> tuple[Term, ...]:
    if not query.keep:
        return ()
    resolved = resolve(Histogram(*query.keep), policy.domain)
    return (Term(resolved, (rows.Blocks(resolved.n_positions),), Fraction(1), True),)


def _check_kept(query: Rows, policy: Policy) -> None:
    """Refuse to let a secret out as it is."""
    for term in _kept(query, policy):
        if stacked([term], policy.neighbourhood).value:
            graph = policy.graph
            secret = [n for n in query.keep if n not in graph.unprotected] or list(query.keep)
            raise PolicyError(
                f"rows.keep: {', '.join(secret)} is a secret of this policy and would leave as it is; replace it through a "
                "channel, or leave it out."
            )


def source_of_part(part: Part) -> str:
    """Where what shapes a part's channel comes from."""
    made = "none" if part.channel is None else part.channel.source
    return worst(made, "none" if part.declared is None else part.declared.source)


def words_of(declared: Declared | None) -> str:
    """A declared kind in words."""
    if declared is None:
        return "channel"
    return declared.kind.replace("-", " ") + (", remapped" if declared.told.get("remap") else "")


def realised(channel: Channel, secrets: Secrets) -> float | None:
    """What a channel loses along the edges, for reports; None without a bound."""
    found = channel.epsilon(secrets)
    return None if found == inf else float(found)
