"""From a question to priced ways of answering it: one door for every kind of query."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

from .clustering.declared import Clustering
from .clustering.query import KMeans
from .domain import Domain
from .errors import SpecificationError, Unsupported
from .loss import Loss
from .marginals.asked import ask
from .marginals.mechanism import Tables
from .marginals.query import Marginals
from .mechanisms import Mechanism, select
from .microdata.declared import Layout
from .microdata.settings import Hybrid
from .microdata.strategy import priced as priced_microdata
from .policy import Policy
from .queries import Query
from .rows.query import Rows
from .rows.strategy import priced as priced_rows
from .sensitivity import Sensitivity, Term
from .table import Counts
from .workload import resolve

MOST_RECORDS, MOST_STEPS = 2**36, 2**45
# Losses up to the first number are served by what is found at the second.
REFERENCES = (
    (Fraction(7, 10), Fraction(1, 4)),
    (Fraction(7, 5), Fraction(1)),
    (Fraction(14, 5), Fraction(2)),
)


class Answerable(Protocol):
    """A priced way of answering one query: all that a session knows of it."""

    @property
    def query(self) -> Query: ...
    @property
    def domain(self) -> Domain:
        """Of the attributes that are counted."""

    @property
    def mechanism(self) -> Mechanism: ...
    @property
    def loss(self) -> Loss:
        """What was asked for."""

    @property
    def spent(self) -> Loss:
        """What is charged: ``loss``, or nothing if every row is free."""

    @property
    def cost(self) -> Sensitivity: ...
    @property
    def expected_error(self) -> float: ...
    @property
    def half_width(self) -> float: ...
    @property
    def draws(self) -> Sequence[tuple[Any, int]]:
        """(scale or σ², number) of every block of noise that a release needs."""

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is observed with noise; ``stacked`` of it is the loss."""

    @property
    def exact_terms(self) -> tuple[Term, ...]:
        """What is observed exactly."""

    def admit(self, total: int) -> None: ...
    def tabulate(self, counts: Counts) -> Any: ...
    def observe(self, table: Any, total: int, reserve: Any) -> Any: ...


def check(query: Query, domain: Domain) -> None:
    """Whether a question fits a domain.

    Raises:
        SpecificationError: an attribute that is not declared, bins or filters that do not fit one.
    """
    if isinstance(query, Rows):
        for name in (*query.attributes, *query.keep):
            domain.attribute(name, "rows")
    elif isinstance(query, Hybrid):
        Layout.of(query, domain)
    elif isinstance(query, Marginals):
        ask(query, domain)
    elif isinstance(query, KMeans):
        from .clustering.select import room_of

        room_of(query, domain)
    else:
        resolve(query, domain)


def reference(loss: Loss) -> Loss:
    """The loss at which mechanisms are looked for: one for a whole range of small losses, above ``REFERENCES`` the loss itself.

    At small losses the noise of every row falls in proportion, so that what is best at one is best at all. From about 1 on
    it is felt that noise is whole numbers.

    >>> [str(reference(Loss("epsilon", Fraction(e))).amount) for e in ("0.01", "0.7", "1.4", "2", "3.5")]
    ['1/4', '1/4', '1', '2', '7/2']
    """
    for largest, found in REFERENCES:
        if loss.amount <= largest:
            return Loss(loss.unit, found)
    return loss


def is_scaled(query: Query) -> bool:
    """Whether ways of answering a query are found at the reference of a loss and scaled to it."""
    return not isinstance(query, Rows | Hybrid | KMeans)


def scaled(found: Sequence[Any], loss: Loss) -> list[Any]:
    """Ways of answering a query at another loss, best first: the same rows, noise in proportion, errors exact."""
    moved = [s if s.loss == loss else replace(s, loss=loss) for s in found]
    return sorted(moved, key=lambda s: s.expected_error)


def candidates(query: Query, policy: Policy, loss: Loss) -> list[Any]:
    """Every applicable way of answering a query, best first. Reads and spends nothing."""
    if is_scaled(query):
        return admitted(scaled(found(query, policy, reference(loss)), loss), policy)
    return admitted(found(query, policy, loss), policy)


def most_counted(policy: Policy) -> int:
    """How many records, or steps of weight, rows are made to hold where their number is a secret: that of records is then bounded
    by 2^36 for everybody."""
    weight = policy.people.weight
    return min(MOST_RECORDS * (1 if weight is None else weight.most), MOST_STEPS)


def admitted(told: Sequence[Any], policy: Policy) -> list[Any]:
    """The ways whose rows stay exact whatever the number of records, where that is a secret.

    Raises:
        Unsupported: none does.
    """
    if not policy.neighbourhood.vanishing:
        return list(told)
    most, kept = most_counted(policy), []
    for way in told:
        with suppress(Unsupported):
            way.admit(most)
            kept.append(way)
    if not kept and told:
        told[0].admit(most)
    return kept


def found(query: Query, policy: Policy, loss: Loss) -> list[Any]:
    """What is found at one loss; ``candidates`` asks for it at the reference of its loss where ``is_scaled``."""
    if isinstance(query, Rows):
        return [priced_rows(query, policy, loss)]
    if isinstance(query, Hybrid):
        return [priced_microdata(query, policy)]
    if isinstance(query, Marginals):
        from .marginals.select import candidates as of_tables

        return list(of_tables(ask(query, policy.domain), policy.neighbourhood, loss))
    if isinstance(query, KMeans):
        from .clustering.select import candidates as of_clusters

        return list(of_clusters(query, policy.domain, policy.neighbourhood, loss))
    return list(select.candidates(resolve(query, policy.domain), policy.neighbourhood, loss))


def price(mechanism: Mechanism, query: Query, policy: Policy, loss: Loss) -> Any:
    """The way of answering a query that a named mechanism means.

    Raises:
        SpecificationError: the mechanism does not apply to this query.
    """
    if isinstance(query, Rows | Hybrid):
        raise SpecificationError(f"{query.word}: has no mechanism to name; leave it out.")
    if is_scaled(query):
        [made] = scaled([named(mechanism, query, policy, reference(loss))], loss)
        return made
    return named(mechanism, query, policy, loss)


def named(mechanism: Mechanism, query: Query, policy: Policy, loss: Loss) -> Any:
    """What a named mechanism means at one loss; ``price`` asks for it at the reference of its loss where ``is_scaled``."""
    if isinstance(query, Marginals):
        from .marginals.select import price as tables

        return tables(mechanism, ask(query, policy.domain), policy.neighbourhood, loss)
    if isinstance(query, KMeans):
        from .clustering.select import price as clusters

        return clusters(mechanism, query, policy.domain, policy.neighbourhood, loss)
    if isinstance(mechanism, Clustering):
        raise SpecificationError(
            f"mechanism {next(iter(mechanism.to_spec()))!r}: for KMeans; use 'auto' here."
        )
    if isinstance(mechanism, Tables):
        raise SpecificationError("mechanism 'tables': for Marginals; use 'auto' here.")
    return select.price(mechanism, resolve(query, policy.domain), policy.neighbourhood, loss)


def notes(query: Query, policy: Policy, loss: Loss) -> tuple[str, ...]:
    """What a plan leaves out, in words."""
    if isinstance(query, Marginals | KMeans | Rows | Hybrid):
        return ()
    return select.notes(resolve(query, policy.domain), policy.neighbourhood, loss)


__all__ = [
    "Answerable",
    "candidates",
    "check",
    "found",
    "is_scaled",
    "named",
    "notes",
    "price",
    "reference",
    "scaled",
]
