"""A session: one table, one policy, one budget. Plan, charge, release."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import __version__
from .accounts import check_choice
from .answers import answers
from .composition import readable
from .entries import Entry
from .errors import DataError, LedgerError, SpecificationError
from .exact import Number
from .explain import disclosed_lines, headline, odds_lines, protected_lines
from .explain_people import chosen_lines, exempt_lines, people_lines
from .ledger import Charge, Ledger
from .loss import Loss
from .mechanisms import Mechanism, mechanism_from_spec
from .mechanisms.charged import reserved
from .microdata.audit import check_audit
from .microdata.declared import Read, read
from .microdata.planning import HybridPlan
from .microdata.release import MicrodataRelease, rows_of, write_mapping
from .microdata.settings import Hybrid
from .microdata.strategy import HybridStrategy, asked_for, check_unproved
from .microdata.strategy import priced as priced_microdata
from .parallel import Part, parts
from .plans import Plan, Priced
from .policy import Policy, check_chosen, check_exempt, digest
from .pricing import candidates, most_counted, notes
from .publish import file_name
from .queries import Query
from .reading import kind_of, listed
from .release import Release, published_exactly
from .requests import (
    PricedRequest,
    Request,
    charge_of,
    digest_of,
    one_loss,
    price_all,
    release_loss,
    total_loss,
)
from .rows.lasting import charged_already, charged_once
from .rows.making import made_rows
from .rows.planning import RowPlan
from .rows.query import Rows
from .rows.release import RowRelease, check_persons, joint_counts
from .rows.resumed import abandon, opened, signed, unfinished
from .rows.staged import Staged
from .rows.strategy import RowStrategy
from .rows.strategy import priced as priced_rows
from .table import Counts, Table
from .zcdp import probability

if TYPE_CHECKING:
    from .microdata.plan import Plan as Fitted


@dataclass(frozen=True)
class Remaining:
    """What is left of the budget, and everything that went out beside it."""

    loss: Loss
    outside: tuple[str, ...]

    @property
    def epsilon(self) -> Fraction | None:
        """What is left of an account in ε; None for one in ρ."""
        return self.loss.epsilon

    @property
    def rho(self) -> Fraction | None:
        """What is left of an account in ρ; None for one in ε."""
        return self.loss.rho

    def __str__(self) -> str:
        beside = "; ".join(self.outside) if self.outside else "nothing"
        return f"{self.loss.unit} {readable(self.loss.amount)} left; outside the budget: {beside}"


__all__ = ["PricedRequest", "Remaining", "Request", "Session", "charge_of", "price_all", "release_loss"]


class Session:
    """Releases from one table under one policy, charged to one ledger.

    Args:
        table: the data with its declared domain.
        policy: over the same domain.
        epsilon: the total budget, exact ("1.0", 1, Fraction(1)); or
        rho, delta: the total in ρ of zero-concentrated privacy, and the δ at which it is read as (ε, δ).
        ledger: path of a durable ledger, or the URL of one that a team shares in PostgreSQL (docs/ledger.md); None keeps the account
            in memory, and the manifest says so. A policy that the ledger does not hold yet is declared: all that was
            released is priced under it too (docs/composition.md).
        renews: "edition" for a budget that every edition of the table has to itself, which is said wherever the total is:
            whoever is in k editions may lose up to k times that. Fixed when the ledger is made.

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
        renews: str | None = None,
    ) -> None:
        if not isinstance(table, Table) or not isinstance(policy, Policy):
            raise SpecificationError("Session: a td.Table and a td.Policy.")
        if table.domain != policy.domain:
            raise SpecificationError(
                "Session: the table and the policy declare different domains; use one Domain for both."
            )
        self.table = table
        self.policy = policy = policy.with_people(table.people)
        check_exempt(policy, "id" in table.binding)
        check_chosen(policy, table.where, table.binding.get("weight"))
        self.total = total_loss(epsilon, rho)
        if (delta is None) == (self.total.unit == "rho"):
            raise SpecificationError("Session.delta: goes with rho, which needs one; epsilon has none.")
        self.delta = None if delta is None else probability(delta, "delta")
        told: dict[str, Any] = {
            "data": table.name,
            "domain_hash": _bound(table, policy),
            "policy": policy.to_spec(),
            "policy_hash": policy.hash,
            "total": self.total,
            "delta": self.delta,
            "renews": renews,
        }
        if ledger is not None and all(known.answers is not None for known in policy.known):
            # A declared policy stays in force for good, so a slip in a public count must not reach the ledger.
            self._check_known()
        rows = table.choice.get("rows", "")
        if ledger is not None and (policy.known or rows):
            with suppress(LedgerError):  # none is there yet, or opening it says what is wrong
                held = Ledger.existing(ledger)
                check_choice(str(held), held.entries, policy, table.edition, rows)
        self.ledger = Ledger.in_memory(**told) if ledger is None else Ledger.open(ledger, **told)

    @property
    def remaining(self) -> Remaining:
        """The budget left for releases from this edition, and every exact disclosure so far."""
        left = self.ledger.remaining_for(self.table.edition)
        return Remaining(Loss(self.total.unit, left), published_exactly(self.ledger))

    def plan(self, query: Query, epsilon: Number | None = None, rho: Number | None = None) -> Any:
        """Every applicable mechanism with its exact cost and expected error, best first. Reads and spends nothing.

        Of rows, the channels with what they keep and how far they move values; without ``epsilon`` as a measured release.
        Of microdata (``td.HybridObscuring``), what would leave: they have no proved loss, and no ``epsilon``.

        Args:
            epsilon: what the release would be charged, with Laplace noise; or
            rho: the same with Gaussian noise (zero-concentrated privacy).
        """
        query = asked_for(query)
        if isinstance(query, Hybrid):
            check_unproved("measured", epsilon is not None or rho is not None)
            return HybridPlan(priced_microdata(query, self.policy))
        if isinstance(query, Rows):
            free = epsilon is None and rho is None
            loss = Loss("epsilon", Fraction(0)) if free else one_loss(epsilon, rho, "plan")
            return RowPlan(priced_rows(query, self.policy, loss, "measured" if free else "proved"))
        asked = one_loss(epsilon, rho, "plan")
        found = candidates(query, self.policy, asked)
        return Plan(
            query,
            asked,
            tuple(Priced(s, self.policy.people.grain) for s in found),
            notes(query, self.policy, asked),
        )

    def release(
        self,
        query: Query,
        epsilon: Number | None = None,
        mechanism: str | Mechanism | dict[str, Any] = "auto",
        name: str | None = None,
        again: bool = False,
        rho: Number | None = None,
        guarantee: str = "proved",
        audit: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> Any:
        """Charge the ledger, then draw.

        Args:
            query: what to publish.
            epsilon: its price, exact, with Laplace noise; or ``rho``: the same with Gaussian noise.
            mechanism: "auto" (least expected error among ``plan``), a name or a mechanism object.
            name: what the ledger calls it; by default the query's own title.
            again: draw and charge afresh although the name was released before.
            guarantee: "measured" for rows (``td.Rows``) without a proved bound, and for microdata (``td.HybridObscuring``): nothing
                is charged, and the ledger names the release beside every total.
            audit: a new private file for the mapping that microdata were made by (whose columns each row was given).
            resume: go on with staged rows (``td.Rows(…, staging=…)``) of a run that ended before they were published: what was
                drawn is kept, and nothing is charged again. What was not charged yet is released as ever. The ledger calls staged
                rows published when ``save`` has written them.

        Returns:
            A ``Release`` of answers, a ``RowRelease`` or a ``MicrodataRelease``.

        Raises:
            BudgetError: the budget does not cover it. Nothing was spent.
            LedgerError: the name was released already in this edition. Nothing was spent.
            DataError: the table does not fit its declaration. Nothing was spent.
        """
        query = asked_for(query)
        if not isinstance(query, Query):
            raise SpecificationError(
                f'release.query: a query such as td.CDF("age"), not {type(query).__name__}.'
            )
        chosen = None if mechanism == "auto" else mechanism_from_spec(mechanism)
        if name is not None:
            file_name(name)
        if isinstance(query, Hybrid):
            check_unproved(guarantee, epsilon is not None or rho is not None)
        free = guarantee == "measured" and epsilon is None and rho is None
        loss = Loss("epsilon", Fraction(0)) if free else one_loss(epsilon, rho, "release")
        private = None if audit is None else Path(audit)
        request = Request(
            query, loss, name or query.title, chosen, again, guarantee, audit=private, resume=resume
        )
        [made] = self.release_all([request])
        if isinstance(made, RowRelease) and isinstance(made.held, Staged):
            with ExitStack() as undo:
                undo.callback(made.held.folder.close)
                made.held.draw()
                undo.pop_all()
        else:
            self.ledger.published(made.charge, {"values": digest_of(made)})
        return made

    def release_all(
        self, requests: Sequence[Request], priced: Sequence[PricedRequest] | None = None
    ) -> list[Release | RowRelease | MicrodataRelease]:
        """Price everything, check the data, charge everything in one transaction, then draw: all or nothing.

        The ledger calls a charge published once ``publish`` has written its files. Rows that are staged are drawn when they are
        first read; those that are resumed are not charged again.

        Args:
            priced: what ``price_all`` said for these requests under this policy, if it was asked already.
        """
        requests = listed(requests, "release_all.requests", "a list of td.Request")
        for one in requests:
            if not isinstance(one, Request):
                raise SpecificationError(
                    f"release_all.requests: tetraodon.requests.Request, a query with its loss and name, not {kind_of(one)}."
                )
        priced = price_all(self.policy, requests) if priced is None else priced
        if [(p.request, p.policy_hash) for p in priced] != [(r, self.policy.hash) for r in requests]:
            raise SpecificationError("release_all.priced: made for other requests or another policy.")
        charges = [self._charge(p) for p in priced]
        going_on = self._going_on(priced, charges)
        # Before the data are looked at; charging decides.
        self.ledger.check([charge for charge in charges if charge.name not in going_on])
        context = self.context
        try:
            return self._drawn(priced, charges, going_on, context)
        except BaseException as error:
            # The frames below hold true counts, which tools that record local variables would show.
            raise error.with_traceback(None) from None

    def _charge(self, priced: PricedRequest) -> Charge:
        charge = charge_of(priced, self.policy, self.table.edition, self.table.choice)
        if isinstance(priced.strategy, RowStrategy):
            return signed(charged_once(charge, priced.strategy, self.ledger.entries), priced.strategy)
        return charge

    def _going_on(self, priced: Sequence[PricedRequest], charges: Sequence[Charge]) -> dict[str, Entry]:
        """The charges that resumed requests go on with, by name."""
        found, entries = dict[str, Entry](), self.ledger.entries
        for p, charge in zip(priced, charges, strict=True):
            if p.request.resume:
                entry = unfinished(charge, p.request.staging, entries)
                found |= {} if entry is None else {charge.name: entry}
        return found

    def _drawn(
        self,
        priced: Sequence[PricedRequest],
        charges: Sequence[Charge],
        going_on: dict[str, Entry],
        context: dict[str, Any],
    ) -> list[Release | RowRelease | MicrodataRelease]:
        with ExitStack() as held, ExitStack() as undo:
            # Entropy is read before the data, so that drawing cannot take longer for some data than for other.
            reserves = [held.enter_context(reserved(p.strategy.loss, p.strategy.draws)) for p in priced]
            self._check_known()
            tables: list[tuple[Any, int]] = []
            vanishing = self.policy.neighbourhood.vanishing
            for p, charge in zip(priced, charges, strict=True):
                if isinstance(p.strategy, HybridStrategy):
                    if p.request.audit is not None:
                        check_audit(p.request.audit)
                    found = read(self.table, p.strategy.layout)
                    tables.append(((found, p.strategy.fitted(found, p.request.name)), found.data.rows))
                    continue
                if isinstance(p.strategy, RowStrategy) and p.strategy.query.staging is not None:
                    entry = going_on.get(charge.name)
                    strategy, rows_held = opened(self.table, p.strategy, charge, entry, self.ledger)
                    undo.callback(abandon, rows_held, self.ledger)
                    tables.append(((strategy, rows_held), rows_held.count))
                    continue
                counts = self.table.counts(*p.strategy.domain.names)
                if isinstance(p.strategy, RowStrategy):
                    check_persons(self.table, p.strategy)
                    joints = joint_counts(self.table, p.strategy)
                    tables.append(((p.strategy.fitted(joints), joints), counts.total))
                    continue
                most = most_counted(self.policy)
                p.strategy.admit(most if vanishing else counts.total)
                if vanishing and counts.total > most:
                    raise DataError(
                        "table: more records, or steps of weight, than are counted (docs/people.md). Nothing was spent."
                    )
                tables.append((p.strategy.tabulate(counts), counts.total))
            fresh = [charge for charge in charges if charge.name not in going_on]
            numbers = {name: entry.seq for name, entry in going_on.items()}
            numbers |= zip((charge.name for charge in fresh), self.ledger.charge_all(fresh), strict=True)
            rows = [numbers[charge.name] for charge in charges]
            releases: dict[str, Any] = {}
            for p, charge, reserve, (table, total), row in zip(
                priced, charges, reserves, tables, rows, strict=True
            ):
                name = p.request.name
                if isinstance(p.strategy, RowStrategy):
                    strategy, rows_held = table
                    shown = p.request.publishes_evidence
                    releases[name] = made_rows(
                        self.table, strategy, rows_held, charge, row, releases, context, shown
                    )
                    continue
                if isinstance(p.strategy, HybridStrategy):
                    releases[name] = _microdata(p, p.strategy, table, row, context)
                    continue
                public = None if vanishing else total
                told = answers(p.strategy, p.strategy.observe(table, public, reserve))
                releases[name] = Release(
                    name, p.strategy, told, public, p.considered, row, context, self.policy.people
                )
            undo.pop_all()
        return list(releases.values())

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
                "headline": headline(policy),
                "protected": protected_lines(policy.domain, policy.secrets, policy.graph),
                "odds": odds_lines(
                    policy.graph,
                    policy.neighbourhood,
                    self.ledger.total if self.total.unit == "epsilon" else None,
                ),
                "people": [
                    *exempt_lines(policy.exempt, bool(policy.known)),
                    *people_lines(policy.people, policy.presence),
                ],
                "disclosed": [
                    *disclosed_lines(policy),
                    *chosen_lines(self.table.where, self.table.sql, policy.presence),
                ],
            },
            "ledger": self.ledger,
            "versions": {"python": platform.python_version(), "tetraodon": __version__},
        }


def _bound(table: Table, policy: Policy) -> str:
    """What an account is bound to besides the data's name: the domain, which texts count as null (they decide what a cell
    means), and which rows of a person are read and what they count, lest later releases see other rows of the same people."""
    if table.binding:
        return digest([policy.domain_hash, sorted(table.null), table.binding])
    return digest([policy.domain_hash, sorted(table.null)]) if table.null else policy.domain_hash


def _microdata(
    priced: PricedRequest,
    strategy: HybridStrategy,
    fitted: tuple[Read, Fitted],
    row: int,
    context: dict[str, Any],
) -> MicrodataRelease:
    """Draw rows from a fitted plan, and keep the mapping where it was asked for."""
    request, (found, plan) = priced.request, fitted
    with charged_already(request.name):
        made = rows_of(strategy, found, plan)
        if request.audit is not None:
            write_mapping(request.audit, made)
    return MicrodataRelease(
        request.name, strategy, made.table, made.groups, found.data.rows, row, context, plan, made.realised,
        request.publishes_evidence, request.audit, made.mapping if request.publishes_evidence else None,
    )  # fmt: skip
