"""A session: one table, one policy, one budget. Plan, charge, release."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from . import __version__
from .answers import answers
from .charges import cost_of
from .clustering.released import Way
from .disclosure import exact_rows
from .errors import DataError, SpecificationError
from .exact import Number, positive
from .explain import disclosed_lines, odds_lines, protected_lines, unprotected_line
from .ledger import Charge, Ledger
from .loss import Loss, Unit
from .marginals.strategy import MarginalStrategy
from .mechanisms import Mechanism, mechanism_from_spec
from .mechanisms.charged import reserved
from .mechanisms.strategy import Strategy
from .parallel import Part, parts
from .policy import Policy, digest
from .pricing import candidates, notes, price
from .queries import Query
from .release import Plan, Priced, Release, published_exactly
from .table import Counts, Table
from .zcdp import probability

LEAST_LOSS = Fraction(1, 2**50)


@dataclass(frozen=True)
class Request:
    """One release to be made.

    Attributes:
        again: draw and charge afresh although the name is already in the ledger for this edition.
    """

    query: Query
    loss: Loss
    name: str
    mechanism: Mechanism | None = None
    again: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", release_loss(self.loss.unit, self.loss.amount, self.loss.unit))
        if self.mechanism is not None:
            object.__setattr__(self, "mechanism", mechanism_from_spec(self.mechanism))


def release_loss(unit: Unit, value: object, where: str) -> Loss:
    """What one release may be charged: exact, above 0, and such that its noise fits 64-bit integers."""
    amount = positive(value, where)
    if amount < LEAST_LOSS:
        raise SpecificationError(f"{where}: too small; below 2^-50 the noise would not fit 64-bit integers.")
    return Loss(unit, amount)


def total_loss(epsilon: object, rho: object) -> Loss:
    """The total of an account, stated in one of two units."""
    if (epsilon is None) == (rho is None):
        raise SpecificationError("Session: state the total as epsilon, or as rho and delta.")
    return Loss("epsilon", positive(epsilon, "epsilon")) if rho is None else Loss("rho", positive(rho, "rho"))


def one_loss(epsilon: object, rho: object, where: str) -> Loss:
    """The loss that a caller states in one of two units.

    >>> one_loss("1/2", None, "plan").show()
    'epsilon 0.5'
    """
    if (epsilon is None) == (rho is None):
        raise SpecificationError(
            f"{where}: state epsilon (Laplace noise) or rho (Gaussian noise), one of them."
        )
    if rho is None:
        return release_loss("epsilon", epsilon, f"{where}.epsilon")
    return release_loss("rho", rho, f"{where}.rho")


@dataclass(frozen=True)
class Remaining:
    """What is left of the budget, and everything that went out beside it."""

    loss: Loss
    outside: tuple[str, ...]

    @property
    def epsilon(self) -> Fraction | None:
        """What is left of an account in ε; None for one in ρ."""
        return self.loss.amount if self.loss.unit == "epsilon" else None

    @property
    def rho(self) -> Fraction | None:
        """What is left of an account in ρ; None for one in ε."""
        return self.loss.amount if self.loss.unit == "rho" else None

    def __str__(self) -> str:
        beside = "; ".join(self.outside) if self.outside else "nothing"
        return f"{self.loss.show()} left; published exactly, at no cost under the policy: {beside}"


class Session:
    """Releases from one table under one policy, charged to one ledger.

    Args:
        table: the data with its declared domain.
        policy: over the same domain.
        epsilon: the total budget, exact ("1.0", 1, Fraction(1)); or
        rho, delta: the total in ρ of zero-concentrated privacy, and the δ at which it is read as (ε, δ).
        ledger: path of a durable ledger; None keeps the account in memory, and the manifest says so. A policy that the
            ledger does not hold yet is declared: all that was released is priced under it too (docs/composition.md).

    Raises:
        SpecificationError: the policy speaks of another domain, or the total is no positive number.
        DataError: a file ledger is asked for and the table does not have the public counts that the policy states.
        LedgerError: the ledger belongs to another table, domain or budget.
        BudgetError, PolicyError: what was released already exceeds the budget under this policy, or has no price under it.

    >>> from tetraodon import CDF, Domain, Integer, Table, Within
    >>> domain = Domain(age=Integer(0, 99))
    >>> session = Session(Table({"age": [31, 45, 62]}, domain), Policy(domain, secrets=Within(1)), epsilon=1)
    >>> session.plan(CDF("age"), epsilon="1/2")[0].cost.value
    Fraction(1, 2)
    """

    def __init__(
        self,
        table: Table,
        policy: Policy,
        epsilon: Number | None = None,
        ledger: str | os.PathLike[str] | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
    ) -> None:
        if not isinstance(table, Table) or not isinstance(policy, Policy):
            raise SpecificationError("Session: a td.Table and a td.Policy.")
        if table.domain != policy.domain:
            raise SpecificationError(
                "Session: the table and the policy declare different domains; use one Domain for both."
            )
        self.table = table
        self.policy = policy
        self.total = total_loss(epsilon, rho)
        if (delta is None) == (self.total.unit == "rho"):
            raise SpecificationError("Session.delta: goes with rho, which needs one; epsilon has none.")
        self.delta = None if delta is None else probability(delta, "delta")
        told: dict[str, Any] = {
            "data": table.name,
            # Which texts count as null decides what a cell means, so it is bound to the account like the domain.
            "domain_hash": digest([policy.domain_hash, sorted(table.null)])
            if table.null
            else policy.domain_hash,
            "policy": policy.to_spec(),
            "policy_hash": policy.hash,
            "total": self.total,
            "delta": self.delta,
        }
        if ledger is not None and all(known.answers is not None for known in policy.known):
            # A declared policy stays in force for good, so a slip in a public count must not reach the ledger.
            self._check_known()
        self.ledger = Ledger.in_memory(**told) if ledger is None else Ledger.open(ledger, **told)

    @property
    def remaining(self) -> Remaining:
        """The budget left, and every exact disclosure so far."""
        return Remaining(Loss(self.total.unit, self.ledger.remaining), published_exactly(self.ledger))

    def plan(self, query: Query, epsilon: Number | None = None, rho: Number | None = None) -> Plan:
        """Every applicable mechanism with its exact cost and expected error, best first. Reads and spends nothing.

        Args:
            epsilon: what the release would be charged, with Laplace noise; or
            rho: the same with Gaussian noise (zero-concentrated privacy).
        """
        asked = one_loss(epsilon, rho, "plan")
        found = candidates(query, self.policy, asked)
        return Plan(query, asked, tuple(Priced(s) for s in found), notes(query, self.policy, asked))

    def release(
        self,
        query: Query,
        epsilon: Number | None = None,
        mechanism: str | Mechanism | dict[str, Any] = "auto",
        name: str | None = None,
        again: bool = False,
        rho: Number | None = None,
    ) -> Release:
        """Charge the ledger, then draw.

        Args:
            query: what to publish.
            epsilon: its price, exact, with Laplace noise; or ``rho``: the same with Gaussian noise.
            mechanism: "auto" (least expected error among ``plan``), a name or a mechanism object.
            name: what the ledger calls it; by default the query's own title.
            again: draw and charge afresh although the name was released before.

        Raises:
            BudgetError: the budget does not cover it. Nothing was spent.
            LedgerError: the name was released already in this edition. Nothing was spent.
            DataError: the table does not fit its declaration. Nothing was spent.
        """
        if not isinstance(query, Query):
            raise SpecificationError(
                f'release.query: a query such as td.CDF("age"), not {type(query).__name__}.'
            )
        chosen = None if mechanism == "auto" else mechanism_from_spec(mechanism)
        request = Request(query, one_loss(epsilon, rho, "release"), name or query.title, chosen, again)
        [made] = self.release_all([request])
        values = hashlib.sha256(made.answers.values.tobytes()).hexdigest()
        self.ledger.published(made.charge, {"values": values})
        return made

    def release_all(
        self, requests: Sequence[Request], priced: Sequence[PricedRequest] | None = None
    ) -> list[Release]:
        """Price everything, check the data, charge everything in one transaction, then draw: all or nothing.

        The ledger calls a charge published once ``publish`` has written its files.

        Args:
            priced: what ``price_all`` said for these requests under this policy, if it was asked already.
        """
        priced = price_all(self.policy, requests) if priced is None else priced
        if [(p.request, p.policy_hash) for p in priced] != [(r, self.policy.hash) for r in requests]:
            raise SpecificationError("release_all.priced: made for other requests or another policy.")
        charges = [charge_of(p, self.policy, self.table.edition) for p in priced]
        self.ledger.check(charges)  # before the data are looked at; charging decides
        context = self.context
        try:
            return self._drawn(priced, charges, context)
        except BaseException as error:
            # The frames below hold true counts, which tools that record local variables would show.
            raise error.with_traceback(None) from None

    def _drawn(
        self, priced: Sequence[PricedRequest], charges: Sequence[Charge], context: dict[str, Any]
    ) -> list[Release]:
        with ExitStack() as held:
            # Entropy is read before the data, so that drawing cannot take longer for some data than for other.
            reserves = [held.enter_context(reserved(p.strategy.loss, p.strategy.draws)) for p in priced]
            self._check_known()
            tables: list[tuple[Any, int]] = []
            for p in priced:
                counts = self.table.counts(*p.strategy.domain.names)
                p.strategy.admit(counts.total)
                tables.append((p.strategy.tabulate(counts), counts.total))
            rows = self.ledger.charge_all(charges)
            releases = []
            for p, reserve, (table, total), row in zip(priced, reserves, tables, rows, strict=True):
                found = answers(p.strategy, p.strategy.observe(table, total, reserve))
                releases.append(Release(p.request.name, p.strategy, found, total, p.considered, row, context))
        return releases

    def _check_known(self) -> None:
        """Refuse a table that violates a public count. That the counts are true is public by their declaration."""
        counted: dict[tuple[str, ...], Counts] = {}  # many counts may speak of the same attributes
        for known in self.policy.known:
            names = known.domain.names
            if names not in counted:
                counted[names] = self.table.counts(*names)
            if known.is_broken(counted[names]):
                raise DataError(
                    f"policy.constraints: the table does not have the stated answers of {known.title}. Nothing was spent. "
                    "Only facts that are already public and true of this table can be declared."
                )

    def __repr__(self) -> str:
        return f"Session({self.table!r}, {self.total.show()}, policy {self.policy.hash[:12]})"

    def split(self, by: str) -> dict[Any, Part]:
        """A session for the records of every value of an attribute that no edge of any policy in force changes.

        Losses of releases from different parts do not add up: the largest counts (parallel composition). Which record
        lies in which part must be public and may not depend on other columns.

        Args:
            by: a declared attribute; every record keeps its value under all policies of the ledger.

        Returns:
            The parts by value, special cells last.

        Raises:
            SpecificationError: an unknown attribute, or one of more than 10,000 cells.
            PolicyError: two of its values are secret from each other, or a known count could make records of several parts
                change at once; the message names the pair of secrets.

        >>> from tetraodon import CDF, Categorical, Domain, Integer, Table, Within
        >>> domain = Domain(region=Categorical(["n", "s"]), age=Integer(0, 99))
        >>> table = Table({"region": ["n", "s", "s"], "age": [31, 45, 62]}, domain)
        >>> session = Session(table, Policy(domain, secrets=Within(1, on="age")), epsilon=1)
        >>> made = [part.release(CDF("age"), epsilon=1) for part in session.split(by="region").values()]
        >>> session.ledger.spent
        Fraction(1, 1)
        """
        return parts(self, by)

    @property
    def context(self) -> dict[str, Any]:
        """What a manifest says about the session: data, policy, budget, versions."""
        policy = self.policy
        return {
            "tetraodon": __version__,
            "data": {"name": self.table.name, "edition": self.table.edition},
            "policy": {
                "hash": policy.hash,
                "spec": policy.to_spec(),
                "unprotected": list(policy.graph.unprotected),
                "headline": unprotected_line(policy.graph),
                "protected": protected_lines(policy.domain, policy.secrets, policy.graph),
                "odds": odds_lines(
                    policy.neighbourhood, self.total.amount if self.total.unit == "epsilon" else None
                ),
                "disclosed": disclosed_lines(policy.domain, policy.secrets, policy.neighbourhood),
            },
            "ledger": self.ledger,
            "versions": {"python": platform.python_version(), "tetraodon": __version__},
        }


@dataclass(frozen=True, eq=False)
class PricedRequest:
    """A request with the strategy that answers it and all that were considered, best first."""

    request: Request
    policy_hash: str
    strategy: Strategy | MarginalStrategy | Way
    considered: tuple[Priced, ...]


def charge_of(priced: PricedRequest, policy: Policy, edition: str) -> Charge:
    """What the ledger is asked for."""
    request, strategy = priced.request, priced.strategy
    cost = cost_of(strategy, policy)
    return Charge(
        name=request.name,
        edition=edition,
        loss=strategy.spent,
        query=request.query.to_spec(),
        mechanism=strategy.mechanism.to_spec(),
        strategy=digest(cost),
        cost=cost,
        policy_hash=policy.hash,
        again=request.again,
        disclosures=tuple(exact_rows(strategy)),
    )


def price_all(policy: Policy, requests: Sequence[Request]) -> list[PricedRequest]:
    """Price every request. Reads and spends nothing.

    Raises:
        SpecificationError: two releases of one name, or a mechanism that does not apply.
    """
    names = [r.name for r in requests]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise SpecificationError(f"release {sorted(twice)[0]!r}: two releases have this name.")
    found = []
    for request in requests:
        try:
            found.append(_price(policy, request))
        except SpecificationError as error:
            raise type(error)(f"release {request.name!r}: {error}") from None
    return found


def _price(policy: Policy, request: Request) -> PricedRequest:
    ranked = candidates(request.query, policy, request.loss)
    strategy = ranked[0]
    if request.mechanism is not None:
        strategy = price(request.mechanism, request.query, policy, request.loss)
        if strategy.mechanism.to_spec() not in [s.mechanism.to_spec() for s in ranked]:
            ranked = [strategy, *ranked]
    return PricedRequest(request, policy.hash, strategy, tuple(Priced(s) for s in ranked))
