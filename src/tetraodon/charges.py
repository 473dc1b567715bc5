"""What one charge loses under a policy, from what the ledger keeps of it: rows, the loss it states, or neither."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from .chain import canonical, plain
from .costs import terms_from_spec, terms_spec
from .entries import Charge
from .errors import PolicyError, SpecificationError, Unsupported
from .exact import show
from .hops import farthest, widest
from .loss import Loss
from .policy import Policy
from .sensitivity import Move, Neighbourhood, stacked
from .sensitivity.persons import PRESENCE
from .sensitivity.stack import Term
from .zcdp import along_path

if TYPE_CHECKING:
    from .pricing import Answerable

Losses: TypeAlias = Mapping[str, Fraction]


def cost_spec(
    loss: Loss,
    rule: str,
    by_secret: Losses,
    terms: Sequence[Term],
    exact: Sequence[Term] = (),
) -> dict[str, Any]:
    """What a charge keeps as its ``cost``, so that any later policy can price it.

    Args:
        loss: what is charged under the policy in hand.
        rule: which rule gave it.
        by_secret: the loss along each attribute's edges; all of ``loss`` for any change where this is empty.
        terms: what was observed with noise; rows that are too large to keep are left out, and other policies then go by the
            distances between values under the policy in hand. So they do where there are no terms at all.
        exact: what was observed without noise.
    """
    by = {name: value for name, value in by_secret.items() if value} or (
        {} if loss.is_zero else {"any": loss.amount}
    )
    told: dict[str, Any] = {"rule": rule, "by": by}
    noisy, free = terms_spec(terms), terms_spec(exact)
    if noisy is not None and free is not None and (noisy or loss.is_zero):
        told |= {"terms": noisy, "exact": free}
    found: dict[str, Any] = plain("cost", told)
    return found


def cost_of(strategy: Answerable, policy: Policy) -> dict[str, Any]:
    """``cost_spec`` of a priced strategy, whose rows are priced once more on the way.

    Raises:
        PolicyError: its rows cost more than it is charged.
    """
    spent, hood = strategy.spent, policy.neighbourhood
    if not strategy.terms and not spent.is_zero:
        return cost_spec(spent, strategy.cost.rule, {}, ())
    found = losses_of(stacked(strategy.terms, hood, 2 if spent.unit == "rho" else 1), hood)
    if largest(found) > spent.amount:
        raise PolicyError(
            f"{strategy.query.title}: its rows cost {show(largest(found))}, more than {spent.show()}; please report it."
        )
    by_secret = found if largest(found) == spent.amount else {}
    return cost_spec(spent, strategy.cost.rule, by_secret, strategy.terms, strategy.exact_terms)


def understated_by(charge: Charge, policy: Policy) -> tuple[str, Fraction] | None:
    """A secret for which the rows of a charge, priced anew under the policy that it was made for, lose more than it states,
    and that loss; None if there is none, or if no rows are kept."""
    if (
        not isinstance(charge.cost, Mapping)
        or "terms" not in charge.cost
        or charge.policy_hash != policy.hash
    ):
        return None
    stated = stated_by(charge)
    found = _from_rows(Keyed(key_of(charge), charge), Keyed(policy.hash, policy))
    for secret, loss in found.items():
        told = (
            max(stated.values(), default=Fraction(0))
            if secret == "any"
            else stated.get(secret, stated.get("any", 0))
        )
        if loss > told:
            return secret, loss
    return None


@dataclass(frozen=True)
class Keyed:
    """Something too large to compare, under a key that stands for it."""

    key: str
    held: Any = field(compare=False)


def key_of(charge: Charge) -> str:
    told = [charge.loss.unit, str(charge.loss.amount), charge.policy_hash, charge.flag, charge.cost]
    return hashlib.sha256(canonical("charge", told).encode()).hexdigest()


def reading_of(charge: Charge) -> str:
    """Which rows were chosen before those of a person were counted, "" for all: releases that saw other rows of the same people
    are about other records."""
    return _text(charge, "reading")


def other_rows(charge: Charge) -> bool:
    """Whether a person may have other rows than a charge saw, also if one was kept: another edition may show these."""
    return bool(_kept(charge).get("by_id")) or bool(reading_of(charge))


def rows_of(charge: Charge) -> str:
    """Which rows of the source a charge saw, "" for all: known counts speak of one choice."""
    return _text(charge, "rows")


CHARGED_ONCE = "permanent answers, charged once"


def is_repeated(charge: Charge) -> bool:
    """Whether it stands for permanent answers that another charge has paid for."""
    return _kept(charge).get("rule") == CHARGED_ONCE


def chosen_by(charge: Charge) -> tuple[str, ...]:
    """The attributes by whose values rows were chosen before they were counted."""
    return tuple(_kept(charge).get("chosen", ()))


def _kept(charge: Charge) -> Mapping[str, Any]:
    """The cost of a charge; a ledger may hold another kind of value there."""
    return charge.cost if isinstance(charge.cost, Mapping) else {}


def _text(charge: Charge, key: str) -> str:
    told = _kept(charge).get(key, "")
    return told if isinstance(told, str) else ""


def largest(losses: Losses) -> Fraction:
    return max(losses.values(), default=Fraction(0))


def stated_by(charge: Charge) -> Losses:
    """What a charge says of itself, by secret; all of it for any change where that does not add up."""
    told = charge.cost.get("by") if isinstance(charge.cost, Mapping) else None
    try:
        found = {str(name): Fraction(value) for name, value in told.items()}  # type: ignore[union-attr]
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        found = {}
    if min(found.values(), default=Fraction(0)) < 0 or largest(found) != charge.loss.amount:
        found = {"any": charge.loss.amount} if charge.loss.amount else {}
    return found


@lru_cache(maxsize=8192)
def alone(charge: Keyed, policy: Keyed, own: Keyed | None) -> Losses:
    """The loss of one charge under one policy, in the charge's own unit."""
    told: Charge = charge.held
    try:
        for name in chosen_by(told):
            if policy.held.neighbourhood.graph.project([name]).has_edges:
                raise PolicyError(f"its rows were chosen by {name!r}, which this policy holds secret.")
        if told.policy_hash == policy.key:
            return stated_by(told)
        if own is not None and policy.held.neighbourhood.vanishing and not own.held.neighbourhood.vanishing:
            # It stands in the manifest, and answers lie between 0 and it.
            raise PolicyError("the number of records went out with it, which this policy holds secret.")
        if isinstance(told.cost, Mapping) and "terms" in told.cost:
            return _from_rows(charge, policy)
        if own is None:
            raise Unsupported("what it observed was not kept")
        return _by_distance(told, policy.held, own.held)
    except (SpecificationError, PolicyError) as error:
        raise PolicyError(f"{told.name!r} cannot be priced under policy {policy.key[:12]}: {error}") from None


@lru_cache(maxsize=256)
def kept_rows(charge: Keyed, policy: Keyed) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """(noisy, exact) rows of a charge over the domain that all policies of a ledger share."""
    told: Charge = charge.held
    assert isinstance(told.cost, Mapping)
    noisy, free = (
        terms_from_spec(told.cost.get(key, ()), policy.held.domain, told.flag == "row")
        for key in ("terms", "exact")
    )
    return noisy, free


def _from_rows(charge: Keyed, policy: Keyed) -> Losses:
    noisy, free = kept_rows(charge, policy)
    hood: Neighbourhood = policy.held.neighbourhood
    for term in free:
        if stacked([term], hood).value:
            query = term.resolved.query
            raise PolicyError(
                f"it published {query.title!r} exactly in part, which edges of this policy change; no budget covers that."
            )
    power = 2 if charge.held.loss.unit == "rho" else 1
    return losses_of(stacked(noisy, hood, power), hood)


def losses_of(move: Move, hood: Neighbourhood) -> Losses:
    by = {name: Fraction(value) for name, value in move.by_secret.items() if value}
    # Under known counts a change may move several attributes: largest sums by attribute would not cover their joint loss.
    if not hood.is_plain or largest(by) < move.value:
        by = {"any": Fraction(move.value)} if move.value else {}
    return by


def _by_distance(charge: Charge, policy: Policy, own: Policy) -> Losses:
    """The stated loss times the number of edges of its own graph that an edge of another joins (squared for ρ)."""
    if charge.loss.is_zero:
        raise Unsupported("it went out exactly and its rows were not kept")
    if not own.neighbourhood.is_plain:
        raise Unsupported("its rows were not kept, and known counts make several records change at once")
    hood, before = policy.neighbourhood, own.neighbourhood
    if own.people != policy.people or (hood.vanishing and not before.vanishing):
        raise Unsupported("its rows were not kept, and here people may come and go, or have other rows")
    hops: Mapping[str, int] | None
    if hood.is_plain:
        hops = {"any": 1} if own.secrets == policy.secrets else farthest(before.graph, hood.graph)
        if hops is not None and hood.vanishing and "any" not in hops:
            hops = {**hops, PRESENCE: 1}
    else:
        assert hood.classes is not None
        if not hood.classes.is_determined:
            raise Unsupported(
                "its rows were not kept, and known counts leave open how many records change at once"
            )
        count = hood.classes.count if hood.records is None else min(hood.classes.count, hood.records)
        most = widest(own.graph)
        hops = None if most is None else {"any": most * max(count, 1)}
    if hops is None:
        raise Unsupported(
            "its rows were not kept, and values are secret here that its own policy did not join"
        )
    amount = charge.loss.amount
    return {
        n: along_path(amount, h) if charge.loss.unit == "rho" else amount * h for n, h in hops.items() if h
    }
