"""Policies × losses × mechanisms in closed form: what each would be accurate to, and the least loss for a wished ±.

Nothing is read or spent. Every point is what ``Session.plan`` says there: mechanisms are found at the reference of a loss
(``pricing.reference``), once for all losses that share it, and scaled to each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .errors import SpecificationError, TetraodonError, Unsupported, unknown
from .exact import Number, exact, show
from .loss import Loss, Unit
from .mechanisms import Mechanism, mechanism_from_spec
from .plans import Priced, finite, name_of, number, unit_of
from .policy import Policy
from .presenting import frame
from .pricing import REFERENCES, check, found, is_scaled, named, reference, scaled
from .queries import Query
from .reading import kind_of, listed, table
from .requests import release_loss
from .terminal import text_of

if TYPE_CHECKING:
    import pandas

GRID = (Fraction(1, 10), Fraction(1, 5), Fraction(1, 2), Fraction(1))
"""Losses that are looked at where none are named."""
COVERAGE = Fraction(95, 100)
# Three significant digits: 900 amounts a decade. The least loss is looked for among those from 10^-12 to 10^4.
A_DECADE, LEAST_DECADE, DECADES = 900, -12, 16
SIGN = re.compile(r"\s*(?:±|\+/-|\+-)?\s*([0-9.,/]+(?:[eE][+-]?[0-9]+)?)\s*(.*?)\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Point:
    """One mechanism under one policy at one loss.

    Attributes:
        policy: its name.
        loss: what the release would be charged.
        half_width: 95 % half-width of an answer of average error, in the answer's unit.
        expected_error: mean squared error over the workload, in its square.
    """

    policy: str
    loss: Loss
    mechanism: Mechanism
    half_width: float
    expected_error: float

    @property
    def epsilon(self) -> Fraction | None:
        """The loss in ε; None where it is in ρ."""
        return self.loss.epsilon

    @property
    def rho(self) -> Fraction | None:
        """The loss in ρ; None where it is in ε."""
        return self.loss.rho

    def to_spec(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            self.loss.unit: show(self.loss.amount),
            "mechanism": self.mechanism.to_spec(),
            "name": name_of(self.mechanism),
            "half_width": finite(self.half_width),
            "expected_error": finite(self.expected_error),
        }


@dataclass(frozen=True, eq=False)
class Offer:
    """What one query costs under one policy, at any loss; what was found at a reference is kept for all losses near it.

    Attributes:
        mechanisms: only these; None for all that a plan compares.
    """

    query: Query
    policy: Policy
    mechanisms: tuple[Mechanism, ...] | None = None
    _kept: dict[Loss, list[Any]] = field(default_factory=dict, repr=False)

    def at(self, loss: Loss) -> list[Priced]:
        """Every mechanism at a loss, least expected error first."""
        held = reference(loss)
        if held not in self._kept:
            self._kept[held] = (
                found(self.query, self.policy, held)
                if self.mechanisms is None
                else [named(m, self.query, self.policy, held) for m in self.mechanisms]
            )
        return [Priced(s, self.policy.people.grain) for s in scaled(self._kept[held], loss)]

    def half_width(self, loss: Loss, name: str | None = None) -> float:
        """The ± of the mechanism of least expected error, or of one by its key; infinite where it is none of them."""
        rows = self.at(loss)
        if name is None:
            return rows[0].half_width
        return next((row.half_width for row in rows if key_of(row.mechanism) == name), math.inf)

    def is_free(self, unit: Unit) -> bool:
        """Whether the answers are no secret: exact, at no cost."""
        return bool(self.at(Loss(unit, REFERENCES[0][1]))[0].strategy.spent.is_zero)


def key_of(mechanism: Mechanism) -> str:
    """What a mechanism goes by where its settings may change with the loss: its kind, or of tables which ones.

    >>> from .mechanisms import OrderedHierarchical
    >>> key_of(OrderedHierarchical(16, block=50))
    'ordered hierarchical'
    """
    kind = str(next(iter(mechanism.to_spec())))
    return name_of(mechanism) if kind == "tables" else kind.replace("-", " ")


def least_loss(
    offer: Offer, target: Fraction, unit: Unit = "epsilon", name: str | None = None
) -> Fraction | None:
    """The least loss of three significant digits at which the ± is at most a target; 0 where answers are exact at no cost.

    Args:
        name: of one mechanism by its key (``key_of``); by default the one that a plan would choose.

    Returns:
        None if no loss up to 10^4 reaches it.
    """
    if offer.is_free(unit):
        return Fraction(0)

    def reaches(index: int) -> bool:
        try:
            return offer.half_width(Loss(unit, amount_at(index)), name) <= target
        except SpecificationError:  # noise that no release could draw
            return False

    # The ± falls as the loss grows. One search serves each of the first stretches; beyond them every loss takes its own.
    last, step = A_DECADE * DECADES, A_DECADE // 3
    high = next((i for largest, _ in REFERENCES if reaches(i := _index_below(largest))), None)
    low = _index_below(REFERENCES[-1][0])
    while high is None:
        if low >= last:
            return None
        up = min(low + step, last)
        low, high = (low, up) if reaches(up) else (up, None)
    low = high - step
    while low > 0 and reaches(low):
        low, high = low - step, low
    low = max(low, -1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return amount_at(high)


def amount_at(index: int) -> Fraction:
    """Amounts of three significant digits in their order.

    >>> amount_at(A_DECADE * 12), amount_at(A_DECADE * 12 - 1), amount_at(A_DECADE * 11 + 25)
    (Fraction(1, 1), Fraction(999, 1000), Fraction(1, 8))
    """
    decade, digits = divmod(index, A_DECADE)
    return (100 + digits) * Fraction(10) ** (LEAST_DECADE + decade - 2)


def _index_below(amount: Fraction) -> int:
    """The largest index with an amount of at most this."""
    decade = math.floor(math.log10(float(amount)))
    digits = math.floor(amount / Fraction(10) ** (decade - 2))
    return (decade - LEAST_DECADE) * A_DECADE + digits - 100


def read_target(told: Any, unit: str, where: str = "target") -> Fraction:
    """A wished ± as an exact number: 100, "100", "± 100", "± 100 USD" (the answer's own unit), Fraction.

    Raises:
        SpecificationError: no number above 0, or another unit.

    >>> read_target("± 1,500 USD", "USD"), read_target("1/2", "records")
    (Fraction(1500, 1), Fraction(1, 2))
    """
    expected = f'{where}: a number above 0 such as 100 or "± 100", in {unit or "the unit of the answers"}'
    if isinstance(told, str):
        match = SIGN.match(told)
        if match is None:
            raise SpecificationError(f"{expected}.")
        digits, given = match[1], match[2]
        if given and given != unit:
            raise SpecificationError(
                f"{expected}; the answers are in {unit or 'no unit'}, not in another one."
            )
        if "," in digits and re.fullmatch(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?", digits) is None:
            raise SpecificationError(f"{expected}; a comma separates thousands, a point decimals.")
        told = digits.replace(",", "")
    try:
        value = exact(told, where)
    except SpecificationError:
        raise SpecificationError(f"{expected}, not {kind_of(told)}.") from None
    if value <= 0:
        raise SpecificationError(f"{expected}.")
    return value


@dataclass(frozen=True, eq=False)
class Frontier:
    """What every policy buys at every loss.

    Attributes:
        query: what is asked.
        unit: of the losses, "epsilon" or "rho".
        answer_unit: of every ±.
        names: of the policies, in their order.
        losses: the amounts that were looked at.
        points: every policy, loss and mechanism; of each policy and loss the least expected error first, as a plan has it.
        target: a wished ±, where one was named.
    """

    query: Query
    unit: Unit
    answer_unit: str
    names: tuple[str, ...]
    losses: tuple[Fraction, ...]
    points: tuple[Point, ...]
    target: Fraction | None
    offers: Mapping[str, Offer] = field(repr=False)

    def best(self, policy: str, epsilon: Number | None = None, *, rho: Number | None = None) -> Point:
        """What a plan would choose under one policy at a loss, listed or not.

        >>> from tetraodon import CDF, Domain, Full, Integer, Within
        >>> domain = Domain(age=Integer(0, 99))
        >>> told = frontier(CDF("age"), {"any": Policy(domain, Full()), "near": Policy(domain, Within(1))})
        >>> told.best("near", 1).half_width < told.best("any", 1).half_width
        True
        """
        amount = epsilon if self.unit == "epsilon" else rho
        if amount is None or (epsilon is not None and rho is not None):
            raise SpecificationError(f"best: state {self.unit}, which this frontier is in.")
        loss = release_loss(self.unit, amount, f"best.{self.unit}")
        return _points(policy, self._offer(policy, "best"), loss)[0]

    def least(self, target: Any = None) -> dict[str, Fraction | None]:
        """The least loss of every policy for a wished ±: three significant digits, rounded up; planned there, it is reached.

        Args:
            target: such as 100 or "± 100", in the answer's unit; by default the one that the frontier was made with.

        Returns:
            By policy; 0 where the answers are exact at no cost, None where no loss up to 10^4 is enough.
        """
        told = self.target if target is None else read_target(target, self.answer_unit)
        if told is None:
            raise SpecificationError('least: state a target, such as "± 100".')
        return {name: least_loss(self.offers[name], told, self.unit) for name in self.names}

    def _offer(self, policy: str, where: str) -> Offer:
        if policy not in self.offers:
            raise unknown(where, "policy", policy, self.names)
        return self.offers[policy]

    def to_spec(self) -> dict[str, Any]:
        """Plain values; with a target also the least loss of every policy."""
        spec: dict[str, Any] = {
            "query": self.query.to_spec(),
            "loss": self.unit,
            "unit": self.answer_unit,
            "coverage": float(COVERAGE),
            "policies": {name: self.offers[name].policy.secrets.to_spec() for name in self.names},
            "points": [point.to_spec() for point in self.points],
        }
        if self.target is not None:
            spec["target"] = show(self.target)
            spec["least"] = {n: None if a is None else show(a) for n, a in self.least().items()}
        return spec

    def to_frame(self) -> pandas.DataFrame:
        """The points as a pandas frame: ``policy``, ``epsilon`` or ``rho``, ``mechanism``, ``half_width``, ``expected_error``."""
        return frame(
            {
                "policy": [p.policy for p in self.points],
                self.unit: [float(p.loss.amount) for p in self.points],
                "mechanism": [name_of(p.mechanism) for p in self.points],
                "half_width": [p.half_width for p in self.points],
                "expected_error": [p.expected_error for p in self.points],
            },
            instead="points",
        )

    def __repr__(self) -> str:
        wide = max(len(name) for name in self.names)
        head = (
            f"{self.query.title}: ± in {self.answer_unit or 'the unit of the answers'} (95 %) by {self.unit}"
        )
        lines = [head, f"  {'':<{wide}}" + "".join(f"{show(a):>12}" for a in self.losses)]
        best: dict[tuple[str, Fraction], float] = {}
        for point in self.points:
            best.setdefault((point.policy, point.loss.amount), point.half_width)
        for name in self.names:
            lines.append(f"  {name:<{wide}}" + "".join(f"{number(best[name, a]):>12}" for a in self.losses))
        if self.target is not None:
            told = "; ".join(f"{n} {_amount(a)}" for n, a in self.least().items())
            lines.append(f"  least {self.unit} for ± {number(float(self.target))}: {told}")
        return text_of(lines)


def _amount(amount: Fraction | None) -> str:
    return "none" if amount is None else show(amount)


def frontier(
    query: Query,
    policies: Policy | Mapping[str, Policy],
    epsilons: Sequence[Number] | None = None,
    mechanisms: Sequence[str | Mechanism | dict[str, Any]] | None = None,
    target: Any = None,
    *,
    rhos: Sequence[Number] | None = None,
) -> Frontier:
    """Every policy × loss × mechanism in closed form. Reads and spends nothing; every point is what ``plan`` says there.

    Args:
        query: answers with a ±: tables, cumulative counts, ranges, totals, means, linear queries.
        policies: by name, over one domain; or a single one.
        epsilons: losses to look at (Laplace noise), or ``rhos`` (Gaussian noise); by default ε = 0.1, 0.2, 0.5 and 1.
        mechanisms: by name or as objects; by default all that a plan compares.
        target: a wished ± in the answer's unit, such as "± 100"; ``least`` says which loss reaches it.

    Raises:
        SpecificationError: a query without a ±, policies over different domains, a loss or a target that is no number above 0,
            a mechanism that does not apply.
        PolicyError: a policy under which the query has no price; the message names it.

    >>> from tetraodon import CDF, Domain, Full, Integer, Within
    >>> domain = Domain(loss=Integer(0, 4356))
    >>> told = {"any two": Policy(domain, Full()), "neighbours": Policy(domain, Within(1))}
    >>> {name: str(e) for name, e in frontier(CDF("loss"), told, [1], target="± 100").least().items()}
    {'any two': '253/500', 'neighbours': '3/100'}
    """
    told = named_policies(policies, "frontier.policies")
    check_tradable(query, next(iter(told.values())), "frontier.query")
    unit, amounts = _losses(epsilons, rhos)
    chosen = None
    if mechanisms is not None:
        each = listed(mechanisms, "frontier.mechanisms", "a list of mechanisms")
        chosen = tuple(mechanism_from_spec(m, "frontier.mechanisms") for m in each)
        if not chosen:
            raise SpecificationError("frontier.mechanisms: at least one, or leave it out.")
    offers = {name: Offer(query, policy, chosen) for name, policy in told.items()}
    points: list[Point] = []
    for name, offer in offers.items():
        with_name = f"policy {name!r}"
        for amount in amounts:
            try:
                points += _points(name, offer, Loss(unit, amount))
            except TetraodonError as error:
                raise type(error)(f"{with_name}: {error}") from None
    first = next(iter(offers.values())).at(Loss(unit, amounts[0]))[0]
    answer_unit = unit_of(first.strategy)
    wished = None if target is None else read_target(target, answer_unit)
    return Frontier(query, unit, answer_unit, tuple(told), amounts, tuple(points), wished, offers)


def _points(name: str, offer: Offer, loss: Loss) -> list[Point]:
    return [Point(name, loss, r.mechanism, r.half_width, r.expected_error) for r in offer.at(loss)]


def named_policies(told: Any, where: str) -> dict[str, Policy]:
    """Policies by name, over one domain.

    Raises:
        SpecificationError: none, no policy, or another domain.
    """
    found = {"policy": told} if isinstance(told, Policy) else table(told, where, "policies by name")
    if not found:
        raise SpecificationError(f"{where}: at least one policy.")
    first: Policy | None = None
    for name, policy in found.items():
        if not isinstance(name, str) or not name.strip():
            raise SpecificationError(f"{where}: policies are named by texts.")
        if not isinstance(policy, Policy):
            raise SpecificationError(f"{where}.{name}: a td.Policy, not {type(policy).__name__}.")
        first = first or policy
        if policy.domain != first.domain:
            raise SpecificationError(
                f"{where}.{name}: over another domain; compare policies over one domain."
            )
    return found


def check_tradable(query: Any, policy: Policy, where: str) -> None:
    """Refuse what has no ± that falls with the loss.

    Raises:
        SpecificationError: rows, microdata or clusters, or a question that does not fit the domain.
    """
    if not isinstance(query, Query):
        raise SpecificationError(f'{where}: a query such as td.CDF("age"), not {type(query).__name__}.')
    if not is_scaled(query):
        raise Unsupported(f"{where}: {query.word} has no ± that can be traded against a loss; use plan.")
    check(query, policy.domain)


def _losses(epsilons: Any, rhos: Any) -> tuple[Unit, tuple[Fraction, ...]]:
    if epsilons is not None and rhos is not None:
        raise SpecificationError(
            "frontier: state epsilons (Laplace noise) or rhos (Gaussian noise), not both."
        )
    unit: Unit = "epsilon" if rhos is None else "rho"
    told = epsilons if rhos is None else rhos
    if told is None:
        return unit, GRID
    where = f"frontier.{unit}s"
    each = listed(told, where, "a list of numbers above 0")
    amounts = tuple(sorted({release_loss(unit, a, where).amount for a in each}))
    if not amounts:
        raise SpecificationError(f"{where}: at least one, or leave it out.")
    return unit, amounts
