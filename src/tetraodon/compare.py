"""Policies side by side for one question at one loss: what each costs, what it no longer protects, and what that buys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .attributes import Integer
from .errors import SpecificationError, TetraodonError
from .exact import Number, show
from .frontiers import Offer, check_tradable, least_loss, named_policies
from .loss import Loss
from .mechanisms import Mechanism
from .plans import finite, name_of, number, unit_of
from .policy import Policy
from .presenting import frame
from .queries import Query, Ranges, query_from_spec
from .reading import table
from .requests import one_loss
from .secrets import AttributeWise, Edges, Full, Nothing, Partition, Within
from .terminal import text_of
from .weaker import given_up, strongest
from .workload import SomeRanges, resolve

if TYPE_CHECKING:
    import pandas

OWN = "this policy"
"""What the policy of a settings file is called beside others."""
WORTH = 1.02
"""Factor from which on a gain is worth a word."""


@dataclass(frozen=True)
class Compared:
    """One policy for one question at one loss.

    Attributes:
        sensitivity: largest change of the exact answers between neighbours (of its square, for Gaussian noise).
        mechanism: what a plan would choose.
        half_width: its ±, 95 %, in the answer's unit.
        expected_error: its mean squared error.
        gives_up: what is no longer protected beside the strongest policy of the list, in sentences.
        narrower: by which factor the ± of the strongest policy is wider at this loss; None if one of them is no number.
        same_for: the least loss at which this policy has the ± of the strongest; 0 where it is exact, None where none is.
    """

    policy: str
    sensitivity: Fraction
    mechanism: Mechanism
    half_width: float
    expected_error: float
    gives_up: tuple[str, ...]
    narrower: float | None
    same_for: Fraction | None

    def to_spec(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "sensitivity": show(self.sensitivity),
            "mechanism": self.mechanism.to_spec(),
            "name": name_of(self.mechanism),
            "half_width": finite(self.half_width),
            "expected_error": finite(self.expected_error),
            "gives_up": list(self.gives_up),
            "narrower": self.narrower,
            "same_for": None if self.same_for is None else show(self.same_for),
        }


@dataclass(frozen=True, eq=False)
class Comparison:
    """Policies side by side. Nothing was read or spent.

    Attributes:
        query, loss: what is asked, at what price.
        unit: of every ±.
        strongest: the name of the policy that the others are told beside.
        rows: one for each policy, in the order in which they were named.
    """

    query: Query
    loss: Loss
    unit: str
    strongest: str
    rows: tuple[Compared, ...]

    def to_spec(self) -> dict[str, Any]:
        return {
            "query": self.query.to_spec(),
            self.loss.unit: show(self.loss.amount),
            "unit": self.unit,
            "strongest": self.strongest,
            "policies": [row.to_spec() for row in self.rows],
        }

    def to_frame(self) -> pandas.DataFrame:
        """A row for each policy, as a pandas frame."""
        return frame(
            {
                "policy": [r.policy for r in self.rows],
                "sensitivity": [float(r.sensitivity) for r in self.rows],
                "mechanism": [name_of(r.mechanism) for r in self.rows],
                "half_width": [r.half_width for r in self.rows],
                "expected_error": [r.expected_error for r in self.rows],
                "gives_up": [" ".join(r.gives_up) for r in self.rows],
            },
            instead="rows",
        )

    def lines(self) -> list[str]:
        """The comparison as text, a list of lines without an end."""
        wide = max(len(row.policy) for row in self.rows)
        told = []
        for row in self.rows:
            half = f"± {number(row.half_width)} {self.unit}".rstrip()
            told.append(
                f"  {row.policy:<{wide}}  {half:>18}  sensitivity {show(row.sensitivity)}, {name_of(row.mechanism)}"
            )
            told += [f"      gives up: {text}" for text in row.gives_up]
            bought = buys(row, self)
            told += [f"      buys: {bought}"] if bought else []
        return told

    def __repr__(self) -> str:
        head = f"{self.query.title}, {self.loss.show()}, beside {self.strongest!r}:"
        return text_of([head, *self.lines()])


def buys(row: Compared, told: Comparison) -> str:
    """What a weaker secret buys, in words; empty for the strongest policy and where nothing is bought."""
    if row.policy == told.strongest:
        return ""
    if row.same_for == 0:
        return "exact answers at no cost."
    parts = []
    if row.narrower is not None and row.narrower >= WORTH:
        parts.append(f"a ± {number(row.narrower)} times narrower")
    saved = float(told.loss.amount / row.same_for) if row.same_for else 1.0
    if row.same_for is not None and saved >= WORTH:
        times = number(saved)
        parts.append(
            f"the ± of {told.strongest!r} for {told.loss.unit} {show(row.same_for)}, {times} times less"
        )
    return f"{', or '.join(parts)}." if parts else ""


def compare(
    policy: Policy,
    others: Mapping[str, Any],
    query: Query,
    epsilon: Number | None = None,
    rho: Number | None = None,
) -> Comparison:
    """``Policy.compare``: the policies of a list side by side; secrets stand for ``policy`` with these in place of its own.

    Raises:
        SpecificationError: no policies, another domain, a question without a ±, no loss or two.
        PolicyError: a policy under which the query has no price; the message names it.
    """
    policies = named_policies(made(policy, others, "compare"), "compare")
    check_tradable(query, policy, "compare.query")
    loss = one_loss(epsilon, rho, "compare")
    return side_by_side(policies, query, loss)


def made(policy: Policy, others: Any, where: str) -> dict[str, Any]:
    """Policies of secrets, which keep the facts, people and presence of a given one."""
    told = table(others, where, 'policies or secrets by name, such as {"full": td.Full()}')
    kinds = Full | Nothing | Within | Partition | Edges | AttributeWise
    found: dict[str, Any] = {}
    for name, other in told.items():
        try:
            found[name] = policy.under(other) if isinstance(other, kinds) else other
        except TetraodonError as error:
            raise type(error)(f"{where}.{name}: {error}") from None
        if isinstance(found[name], Policy) and found[name].domain != policy.domain:
            raise SpecificationError(f"{where}.{name}: over another domain than this policy.")
    return found


def side_by_side(policies: Mapping[str, Policy], query: Query, loss: Loss) -> Comparison:
    """Policies by name, for a question and a loss that were checked."""
    first, offers = strongest(policies), {name: Offer(query, p) for name, p in policies.items()}
    priced = {name: _named(name, lambda o=offer: o.at(loss)[0]) for name, offer in offers.items()}
    norm, alike = "l1" if loss.unit == "epsilon" else "l2", in_fewest_cells(query, policies[first])
    rows = []
    for name, policy in policies.items():
        row, wide = priced[name], priced[first].half_width
        moved = _named(name, lambda p=policy: p.sensitivity(alike, norm=norm).value)
        reached = math.isfinite(wide) and wide > 0
        rows.append(
            Compared(
                policy=name,
                sensitivity=Fraction(moved),
                mechanism=row.mechanism,
                half_width=row.half_width,
                expected_error=row.expected_error,
                gives_up=given_up(policy, policies[first], loss.unit),
                narrower=wide / row.half_width if reached and row.half_width > 0 else None,
                same_for=least_loss(offers[name], Fraction(wide), loss.unit) if reached else None,
            )
        )
    return Comparison(query, loss, unit_of(priced[first].strategy), first, tuple(rows))


def in_fewest_cells(query: Query, policy: Policy) -> Query:
    """A query with the same answers, and so the same sensitivity, over as few cells as its stated ranges tell apart: pairs of
    cells are gone through, and of a long axis there are too many.

    >>> from tetraodon import Domain, Full, Integer, Ranges
    >>> query = Ranges("loss", [(0, 0), (1, 1499)])
    >>> in_fewest_cells(query, Policy(Domain(loss=Integer(0, 4356)), Full())).to_spec()["bins"]
    {'loss': [0, 1, 1500]}
    """
    if not isinstance(query, Ranges) or isinstance(query.of, str):
        return query
    name, attribute = query.attribute, policy.domain[query.attribute]
    if not isinstance(attribute, Integer) or any(n == name for n, _ in (*query.bins, *query.where)):
        return query
    asked = resolve(query, policy.domain).workload
    if not isinstance(asked, SomeRanges):
        return query
    cuts = {0, *asked.lows.tolist(), *asked.highs.tolist()}
    ends = [attribute.low + attribute.step * cut for cut in sorted(cuts) if cut < attribute.n_values]
    spec = query.to_spec()
    return query_from_spec(spec | {"bins": {**spec.get("bins", {}), name: ends}})


def _named(name: str, price: Any) -> Any:
    """An error under one of several policies names it."""
    try:
        return price()
    except TetraodonError as error:
        raise type(error)(f"policy {name!r}: {error}") from None
