"""Requests for releases: what is asked, what it may be charged, and its price."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from .charges import cost_of, cost_spec
from .clustering.released import Way
from .disclosure import exact_rows
from .entries import Charge
from .errors import SpecificationError, unknown
from .exact import positive
from .loss import Loss, Unit
from .marginals.strategy import MarginalStrategy
from .mechanisms import Mechanism, mechanism_from_spec
from .mechanisms.strategy import Strategy
from .microdata.release import MicrodataRelease
from .microdata.settings import Hybrid
from .microdata.strategy import HybridStrategy, check_unproved
from .microdata.strategy import priced as priced_microdata
from .plans import Priced
from .policy import Policy, digest
from .pricing import candidates, price
from .queries import Histogram, Query
from .release import Release
from .rows.query import Rows
from .rows.release import RowRelease
from .rows.strategy import RowStrategy
from .rows.strategy import priced as priced_rows

LEAST_LOSS = Fraction(1, 2**50)


@dataclass(frozen=True)
class Request:
    """One release to be made.

    Attributes:
        again: draw and charge afresh although the name is already in the ledger for this edition.
        resume: go on with staged rows that were charged and not published; what was not charged yet is released as ever.
        guarantee: "proved", or "measured" for rows without a proved bound, which are charged nothing and named beside every
            total.
        publishes_evidence: write what is computed from private rows (leakage, distortion) beside the release.
        audit: a private file for the mapping that microdata were made by, outside of any published folder.
    """

    query: Query
    loss: Loss
    name: str
    mechanism: Mechanism | None = None
    again: bool = False
    guarantee: str = "proved"
    publishes_evidence: bool = False
    audit: Path | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        if self.again and self.resume:
            raise SpecificationError(
                "resume: goes on with what was charged, again charges afresh; ask for one of them."
            )
        if self.guarantee not in ("proved", "measured"):
            raise SpecificationError("guarantee: 'proved', or 'measured' for rows without a proved bound.")
        if isinstance(self.query, Hybrid):
            check_unproved(self.guarantee, not self.loss.is_zero)
        elif self.audit is not None:
            raise SpecificationError("audit: goes with hybrid; nothing else has a mapping of rows.")
        elif self.guarantee == "measured" and not isinstance(self.query, Rows):
            raise SpecificationError("guarantee: answers are proved; 'measured' is for rows.")
        if self.guarantee == "proved":
            object.__setattr__(self, "loss", release_loss(self.loss.unit, self.loss.amount, self.loss.unit))
        if self.mechanism is not None:
            object.__setattr__(self, "mechanism", mechanism_from_spec(self.mechanism))

    @property
    def staging(self) -> str | None:
        """The folder in which rows are kept until they are published; None where nothing is."""
        return self.query.staging if isinstance(self.query, Rows) else None


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


def chosen(requests: Sequence[Request], only: Sequence[str]) -> list[Request]:
    """The requests that ``--only`` names, in their own order; all where it names none.

    Raises:
        SpecificationError: a name that no request has.
    """
    known = [request.name for request in requests]
    for name in only:
        if name not in known:
            raise unknown("--only", "release", name, known)
    return [request for request in requests if not only or request.name in only]


@dataclass(frozen=True, eq=False)
class PricedRequest:
    """A request with the strategy that answers it and all that were considered, best first."""

    request: Request
    policy_hash: str
    strategy: Strategy | MarginalStrategy | Way | RowStrategy | HybridStrategy
    considered: tuple[Priced, ...]


def digest_of(made: Release | RowRelease | MicrodataRelease) -> str:
    """SHA-256 of what was drawn."""
    if isinstance(made, Release):
        return hashlib.sha256(made.answers.values.tobytes()).hexdigest()
    found = hashlib.sha256()
    for column in made.table.itercolumns():
        for chunk in column.cast(
            column.type.value_type if hasattr(column.type, "value_type") else column.type
        ).chunks:
            for buffer in chunk.buffers():
                found.update(b"" if buffer is None else memoryview(buffer))
    return found.hexdigest()


def charge_of(
    priced: PricedRequest, policy: Policy, edition: str, choice: Mapping[str, Any] | None = None
) -> Charge:
    """What the ledger is asked for.

    Args:
        edition, choice: of the table.
    """
    request, strategy = priced.request, priced.strategy
    if isinstance(strategy, RowStrategy | HybridStrategy):
        cost = cost_spec(
            strategy.spent, strategy.cost.rule, strategy.by_secret, strategy.terms, strategy.exact_terms
        )
        flag = "measured" if strategy.spent.is_zero else "row"
    else:
        cost, flag = cost_of(strategy, policy), "histogram"
    cost |= choice or {}
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
        flag=flag,
        disclosures=tuple(exact_rows(strategy, policy.people)),
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
    found: list[PricedRequest] = []
    for at, request in enumerate(requests):
        try:
            found.append(_price(policy, request))
            _check_rows(found[-1], requests[:at])
        except SpecificationError as error:
            raise type(error)(f"release {request.name!r}: {error}") from None
    return found


def _check_rows(priced: PricedRequest, earlier: Sequence[Request]) -> None:
    """Priors come from histograms that the same run has drawn before; a run uses a store of permanent answers once."""
    strategy, audit = priced.strategy, priced.request.audit
    if audit is not None and audit.resolve() in {r.audit.resolve() for r in earlier if r.audit is not None}:
        raise SpecificationError("audit: serves an earlier release of this run; give each a file of its own.")
    if not isinstance(strategy, RowStrategy):
        return
    before = {request.name: request.query for request in earlier}
    for part in strategy.parts:
        for name in part.declared.needs if part.declared is not None else ():
            if name not in before:
                raise SpecificationError(
                    f"channel.prior: takes the answer {name!r}, which must be an earlier release of the same run."
                )
            query = before[name]
            whole = isinstance(query, Histogram) and not (query.by or query.where or query.bins)
            if not whole or set(query.attributes) != set(part.names):
                raise SpecificationError(
                    f"channel.prior: {name!r} must be a histogram of {', '.join(part.names)}, without by, where and bins."
                )
    staging = strategy.query.staging
    staged = [r.staging for r in earlier if r.staging is not None]
    if staging is not None and os.path.realpath(staging) in {os.path.realpath(folder) for folder in staged}:
        raise SpecificationError(
            "rows.staging: serves an earlier release of this run; give each a folder of its own."
        )
    lasting = strategy.query.permanent
    told = [q.permanent.store for q in before.values() if isinstance(q, Rows) and q.permanent is not None]
    stores = {Path(store).resolve() for store in told}
    if lasting is not None and Path(lasting.store).resolve() in stores:
        raise SpecificationError(
            "permanent.store: serves an earlier release of this run; give each a store of its own."
        )


def _price(policy: Policy, request: Request) -> PricedRequest:
    if isinstance(request.query, Hybrid):
        if request.mechanism is not None:
            raise SpecificationError("mechanism: microdata have a method instead; leave it out.")
        return PricedRequest(
            request, policy.hash, priced_microdata(request.query, policy, request.guarantee), ()
        )
    if isinstance(request.query, Rows):
        if request.mechanism is not None:
            raise SpecificationError("mechanism: rows have a channel instead.")
        made = priced_rows(request.query, policy, request.loss, request.guarantee)
        return PricedRequest(request, policy.hash, made, ())
    ranked = candidates(request.query, policy, request.loss)
    strategy = ranked[0]
    if request.mechanism is not None:
        strategy = price(request.mechanism, request.query, policy, request.loss)
        if strategy.mechanism.to_spec() not in [s.mechanism.to_spec() for s in ranked]:
            ranked = [strategy, *ranked]
    grain = policy.people.grain
    return PricedRequest(request, policy.hash, strategy, tuple(Priced(s, grain) for s in ranked))
