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
from typing import Any

from ..channels.channel import Channel
from ..channels.priors import worst
from ..domain import Domain
from ..errors import PolicyError, Refused, SpecificationError, TetraodonError, Unsupported
from ..exact import show
from ..loss import Loss
from ..policy import Policy
from ..sensitivity import Sensitivity, Term, describe, stacked
from .declared import Declared
from .floor import LEARNED, check_learned, first_of, trained_on
from .losses import (
    Part,
    check_ident,
    check_kept,
    ident_attributes,
    keeps,
    kept_terms,
    secrets_of,
    terms,
    told_apart,
)
from .query import Rows

APART = "rows: some output would tell values apart for certain that this policy holds secret."
PRIVATE = (
    "rows.channel: it is fitted on a private prior, so that no epsilon is proved whatever its matrix says; state the prior's "
    "source if it is public, released or of other persons, or ask for guarantee = 'measured'."
)
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
        return self.policy.domain.select(
            *self.query.attributes, *self.query.keep, *trained_on(self.query, False)
        )

    @property
    def mechanism(self) -> Replaced:
        """The channels by name."""
        return Replaced(tuple(name_of(p) for p in self.parts))

    @property
    def exact_terms(self) -> tuple[Term, ...]:
        """What leaves as it is."""
        names = [*self.query.keep, *ident_attributes(self.query, self.policy), *trained_on(self.query)]
        return kept_terms(list(dict.fromkeys(names)), self.policy)

    @property
    def has_floor(self) -> bool:
        """Whether a channel is learned from what a first one let out of the rows."""
        return bool(trained_on(self.query))

    @property
    def source(self) -> str:
        """The most private source of any channel."""
        return worst("none", *(source_of_part(p) for p in self.parts))

    @property
    def needs(self) -> tuple[str, ...]:
        """Earlier answers of the same run that channels take priors from."""
        return tuple(dict.fromkeys(n for p in self.parts if p.declared for n in p.declared.needs))

    def fitted(self, joints: Mapping[int, Any]) -> RowStrategy:
        """The strategy with those channels made that are fitted on the rows themselves.

        Args:
            joints: joint counts of a secret and a part's values, by the part's place. Private.

        Raises:
            Refused: there is no such channel; why is a function of the rows and not said.
        """
        made = []
        for at, part in enumerate(self.parts):
            if part.channel is None and part.declared is not None and part.declared.is_of_rows:
                try:
                    joint = joints[at]
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
                part = _checked(part.declared.build(part.domain, part.epsilon, part.secrets, answers), part)
                if not self.loss.is_zero and part.channel is not None and part.channel.is_private:
                    raise PolicyError(PRIVATE)
            made.append(part)
        return replace(self, parts=tuple(made))

    def disclosed(self) -> list[str]:
        """What leaves exactly, in words."""
        lines = [
            f"the {name} of every record, in the same row as its replaced values" for name in self.query.keep
        ]
        if self.query.permanent is not None:
            lines.append("which records are one person's, since their answers are equal")
        lines += [
            f"the {name} of every person, whose ids it holds"
            for name in ident_attributes(self.query, self.policy)
        ]
        lines += [
            f"the {name} of the records beside what the floor let out of them, as far as a channel learned from both shows it"
            for name in trained_on(self.query)
            if name not in self.query.keep
        ]
        lines += dict.fromkeys(line for part in self.parts for line in told_apart(part))
        if self.guarantee == "measured":
            lines.append(
                f"rows of {', '.join(self.query.attributes)} through a channel without a proved bound"
            )
        return lines

    @property
    def per_person(self) -> dict[str, Any] | None:
        """What a person loses in all, if every row and every place of theirs changed at once."""
        each = [p.epsilon for p in self.parts]
        if self.loss.is_zero or any(e is None for e in each) or not self.policy.neighbourhood.is_plain:
            return None  # known counts make partners move along, whose losses are in the charge
        places, count = len(self.parts), self.query.rows_per_person * self.policy.people.max_rows
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
    _check_people(query, policy)
    check_kept(query.keep, policy)
    _check_permanent(query, policy)
    _check_staged(query)
    check_learned(query, policy, loss, guarantee)
    parts = tuple(_part(query, policy, i) for i in range(len(query.columns)))
    private = worst("none", *(source_of_part(p) for p in parts)) == "private"
    if guarantee == "measured":
        amount = loss.amount or None
        made = tuple(_made(replace(p, epsilon=amount)) for p in parts)
        none = Sensitivity(Fraction(0), None, "no proved bound: measured")
        return RowStrategy(query, policy, Loss("epsilon", Fraction(0)), made, none, (), {})
    if private:
        learned = isinstance(query.channel, Declared) and query.channel.kind == "learned"
        raise SpecificationError(LEARNED if learned else PRIVATE)
    if loss.is_zero:
        raise SpecificationError("rows.epsilon: is missing; add it, or ask for guarantee = 'measured'.")
    if not policy.neighbourhood.is_plain and query.rows_per_person > 1:
        raise Unsupported(
            "rows: several rows per person under known counts have no price; state one of the two."
        )
    return _proved(query, policy, loss, parts)


def _proved(query: Rows, policy: Policy, loss: Loss, parts: tuple[Part, ...]) -> RowStrategy:
    together = 1 if policy.graph.kind == "cartesian" else len(parts)
    epsilon = loss.amount / (query.rows_per_person * policy.people.max_rows * together)
    hood = policy.neighbourhood
    given = not isinstance(query.channel, Declared)
    if given and hood.is_plain:
        told = tuple(replace(p, epsilon=epsilon) for p in parts)
        observed = terms(told, policy, query.rows_per_person)
        if observed is None or stacked(observed, hood).value > loss.amount:
            parts = tuple(_held(p, loss, epsilon) for p in told)  # each its own share, decided exactly
    for _ in range(ROUNDS):
        made = tuple(_made(replace(p, epsilon=epsilon)) for p in parts)
        if any(p.channel is not None and p.channel.is_private for p in made):
            raise SpecificationError(PRIVATE)
        observed = terms(made, policy, query.rows_per_person)
        if observed is None:
            if not hood.is_plain:
                raise Unsupported(
                    "rows: under known counts a channel is priced where it is made from public facts, of up to 2,048 cells."
                )
            cost, by = Sensitivity(loss.amount, None, CHANNEL), _stated(made, policy, loss.amount)
            return RowStrategy(query, policy, loss, made, cost, (), by)
        move = stacked(observed, hood)
        if move.value <= loss.amount:
            by = _stated(made, policy, loss.amount) if hood.is_plain else {"any": loss.amount}
            cost = replace(describe(move), value=loss.amount)  # what is charged; the terms say what is lost
            return RowStrategy(query, policy, loss, made, cost, tuple(observed), by)
        if given:
            raise SpecificationError(_too_little(loss, move.value))
        epsilon *= Fraction(loss.amount) / Fraction(move.value) * (1 - Fraction(1, 2**30))
    raise PolicyError(
        "rows: no epsilon was found that these channels keep under the known counts; use fewer constraints."
    )


def _held(part: Part, loss: Loss, epsilon: Fraction) -> Part:
    """A given channel's part, if its law, whatever its label says, keeps its share of what is asked."""
    assert part.channel is not None
    if keeps(part.channel, part.secrets, epsilon):
        return replace(part, is_kept=True)
    found = part.channel.epsilon(part.secrets)
    if not isinstance(found, Fraction):
        raise PolicyError(APART)
    raise SpecificationError(_too_little(loss, found * loss.amount / epsilon))


def _too_little(loss: Loss, needed: Fraction | int) -> str:
    return (
        f"rows.epsilon: {show(loss.amount)} is asked, but these channels lose up to {float(needed) * (1 + 1e-12):.12g} under this "
        "policy."
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
    idle = [n for n in names if not policy.graph.project([n]).has_edges]
    if idle and (policy.graph.kind == "cartesian" or not policy.graph.project(domain.names).has_edges):
        raise SpecificationError(
            f"rows: {', '.join(idle)} is no secret of this policy, so that nothing says what a channel must keep; "
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


def _made(part: Part) -> Part:
    """The part with its channel, where nothing has to be waited for."""
    declared = part.declared
    if declared is not None and declared.floor is not None:
        return _checked(first_of(part), part)
    if declared is None or declared.needs or declared.is_of_rows:
        return part
    return _checked(declared.build(part.domain, part.epsilon, part.secrets, {}), part)


def _checked(channel: Channel, part: Part) -> Part:
    """The part with a channel that was found to keep its ε; a guard, whatever made it.

    Raises:
        PolicyError: it loses more.
    """
    if part.epsilon is None:
        return replace(part, channel=channel)
    if not keeps(channel, part.secrets, part.epsilon):
        raise PolicyError(f"rows.channel: {channel.name} loses more than the epsilon that is left for it.")
    return replace(part, channel=channel, is_kept=True)


def _check_people(query: Rows, policy: Policy) -> None:
    """Every kept row leaves, so that nothing about who has rows, or which, can be secret.

    Raises:
        PolicyError: presence, or the number of a person's rows, is a secret; or rows are kept without a key.
        SpecificationError: the rows of a person are bounded twice.
    """
    people = policy.people
    if policy.presence == "secret" or people.row_counts == "secret":
        what = (
            "that somebody is in the table" if policy.presence == "secret" else "how many rows a person has"
        )
        raise PolicyError(
            f"rows: every row leaves, so that all would see {what}, which this policy holds secret."
        )
    if not people.has_key:
        raise PolicyError(
            "rows: without data.keep_by any kept row may become any other one, which no channel hides; declare keep_by."
        )
    if people.max_rows > 1 and query.rows_per_person > 1:
        raise SpecificationError(
            "rows.rows_per_person: the table bounds the rows of a person already (max_rows_per_id); leave it out."
        )


def _check_permanent(query: Rows, policy: Policy) -> None:
    if query.permanent is None:
        return
    check_ident(query.permanent.id, policy)
    if isinstance(query.channel, Declared) and (query.channel.needs or query.channel.has_joint):
        raise Unsupported(
            "rows.permanent: needs one channel for the whole epoch, and this one is made anew each time; save it once and use "
            "kind = 'file'."
        )


def _check_staged(query: Rows) -> None:
    """Rows that are drawn in parts, by runs that may not know each other, go through a channel that needs no other rows or answers.

    Raises:
        Unsupported: names the fix.
    """
    if query.staging is None or not isinstance(query.channel, Declared):
        return
    if query.channel.has_joint:
        raise Unsupported(
            "rows.staging: this channel is fitted on all rows at once, which staging does not hold; leave staging out, or save a channel "
            "and use kind = 'file'."
        )
    if query.channel.needs:
        raise Unsupported(
            "rows.staging: this channel takes a prior from an answer of the same run, which a run that goes on does not have; release "
            "the answer first, save the channel that is made from it, and use kind = 'file'."
        )


def name_of(part: Part) -> str:
    """A part's channel in words."""
    if part.channel is None or (part.declared is not None and part.declared.floor is not None):
        return words_of(part.declared)
    return part.channel.name


def source_of_part(part: Part) -> str:
    """Where what shapes a part's channel comes from."""
    made = "none" if part.channel is None else part.channel.source
    return worst(made, "none" if part.declared is None else part.declared.source)


def words_of(declared: Declared | None) -> str:
    """A declared kind in words."""
    if declared is None:
        return "channel"
    if declared.floor is not None:
        return "planar geometric, then learned from its outputs (post-processing)"
    return declared.kind.replace("-", " ") + (", remapped" if declared.told.get("remap") else "")
