"""One release put to the test, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from ..axes import Ints
from ..domain import Domain
from ..errors import SpecificationError, Unsupported
from ..exact import Number, exact, show
from ..loss import Loss
from ..mechanisms import Mechanism
from ..microdata.strategy import HybridStrategy, asked_for
from ..plans import name_of, number
from ..policy import Policy
from ..queries import Query
from ..reading import kind_of
from ..requests import Request, one_loss, price_all
from ..rows.strategy import RowStrategy
from . import answering, bounds, losses, rowing
from .bounds import Floats
from .events import learned
from .neighbours import Pair, pairs

ERROR = 1e-9
DRAWS = 200_000
LEAST_DRAWS, MOST_DRAWS = 400, 10**7
MOST_NUMBERS = 2**22
PAIRS = 2
KEPT = 24
BESIDE = 2
ROUNDING = 1 + 1e-9
CERTAIN = 1e6
SYMBOLS = {"epsilon": "ε", "rho": "ρ"}


@dataclass(frozen=True)
class Audit:
    """What was found of one release. Measured: it can contradict a claim, and proves none.

    Attributes:
        name, mechanism: of the release.
        claim: the loss that it is charged.
        bound: the loss is at least this, by draws, wrong with a chance of at most ``error``; 0 if nothing was seen.
        error: that chance.
        resolution: a loss above this would have been seen with 99.9 %, if it shows in an event as likely as the one tried; None if
            so few draws could show none.
        exact: the largest exact loss of the rows, or of a channel, between the tables tried; None where it is not worked out so.
        draws: outputs for each table of a pair.
        pairs: pairs of neighbouring tables that were tried.
        change: how the tables of the pair differ that shows most.
        event: what of the outputs shows it.
        notes: what was not tried, in words.
    """

    name: str
    mechanism: str
    claim: Loss
    bound: float
    error: float
    resolution: float | None
    exact: Fraction | float | None
    draws: int
    pairs: int
    change: str
    event: str
    notes: tuple[str, ...] = ()

    guarantee = "measured"

    @property
    def is_contradicted(self) -> bool:
        """Whether what was found is above the claim."""
        return self._by_arithmetic or self.bound > float(self.claim.amount) * ROUNDING

    @property
    def _by_arithmetic(self) -> bool:
        if self.exact is None:
            return False
        # Losses of channels are worked out to a dozen digits; those of rows are exact.
        most = self.claim.amount if isinstance(self.exact, Fraction) else float(self.claim.amount) * ROUNDING
        return self.exact > most

    @property
    def verdict(self) -> str:
        """In plain words."""
        symbol, claim = SYMBOLS[self.claim.unit], show(self.claim.amount)
        if self._by_arithmetic:
            told = "an unbounded loss" if self.exact == inf else f"{symbol} {number(float(self.exact or 0))}"
            return f"CONTRADICTED: exact arithmetic gives {told} between these tables, above the claim of {claim}."
        if self.is_contradicted:
            return (
                f"CONTRADICTED: the draws show a loss of at least {symbol} {number(self.bound)}, above the claim of {claim}; "
                f"that they do so by chance has a probability below {self.error:g}."
            )
        if not self.pairs:
            return "nothing that it publishes differs between neighbouring tables of this policy."
        if self.resolution is None:
            return "nothing found above the claim; so few draws, of so unlikely an event, could not have shown a loss above it."
        return (
            f"nothing found above the claim; a loss above {number(self.resolution)}, in an event as likely as the one tried, would "
            "have been seen with 99.9 %."
        )

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form."""
        return {
            "guarantee": self.guarantee,
            "claim": {"unit": self.claim.unit, "amount": show(self.claim.amount)},
            "at_least": self.bound,
            "error": self.error,
            "resolution": self.resolution,
            "exact": None if self.exact is None or self.exact == inf else float(self.exact),
            "draws": self.draws,
            "pairs": self.pairs,
            "change": self.change,
            "event": self.event,
            "contradicted": self.is_contradicted,
            "verdict": self.verdict,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"Audit({self.name!r}, {self.mechanism}, measured: {self.verdict})"


def audit(
    query: Query,
    policy: Policy,
    epsilon: Number | None = None,
    rho: Number | None = None,
    mechanism: str | Mechanism | dict[str, Any] = "auto",
    draws: int = DRAWS,
) -> Audit:
    """Put the mechanism that would answer a query to the test, on made-up neighbouring tables. Reads no data, spends nothing.

    Args:
        query: as for ``Session.release``; rows (``td.Rows``) too.
        policy: whose neighbours are tried.
        epsilon: the loss that is claimed, or ``rho``.
        mechanism: "auto", a name or a mechanism.
        draws: outputs of each table; fewer where a mechanism takes long (the result says how many).

    Raises:
        SpecificationError: as ``Session.release``; a number of draws that is none from 400 to 10^7.
        Unsupported: more than 2^22 numbers with noise.

    >>> from tetraodon import Domain, Histogram, Integer, Within
    >>> found = audit(Histogram("age"), Policy(Domain(age=Integer(0, 9)), Within(1)), epsilon=1, draws=4000)
    >>> found.exact, found.is_contradicted, found.guarantee
    (Fraction(1, 1), False, 'measured')
    """
    query = asked_for(query)
    if not isinstance(query, Query):
        raise SpecificationError(f'audit.query: a query such as td.CDF("age"), not {kind_of(query)}.')
    if not isinstance(policy, Policy):
        raise SpecificationError(f"audit.policy: a td.Policy, not {kind_of(policy)}.")
    chosen = None if mechanism == "auto" else mechanism
    request = Request(query, one_loss(epsilon, rho, "audit"), query.title, chosen)  # type: ignore[arg-type]
    [priced] = price_all(policy, [request])
    return audited(priced.strategy, policy, draws_of(draws), query.title)


def draws_of(told: object) -> int:
    """A number of draws.

    >>> draws_of(1000)
    1000
    """
    count = exact(told, "draws")
    if count.denominator != 1 or not LEAST_DRAWS <= count <= MOST_DRAWS:
        raise SpecificationError(f"draws: a whole number from {LEAST_DRAWS} to 10^7.")
    return int(count)


def audited(strategy: Any, policy: Policy, draws: int, name: str) -> Audit:
    """The audit of a priced strategy.

    Args:
        draws: of each table.

    Raises:
        SpecificationError: it claims no loss.
        Unsupported: more than 2^22 numbers with noise.
    """
    if isinstance(strategy, HybridStrategy) or (isinstance(strategy, RowStrategy) and strategy.loss.is_zero):
        raise SpecificationError(
            f"release {name!r}: claims no loss (measured); there is nothing to contradict."
        )
    if isinstance(strategy, RowStrategy):
        return _of_rows(strategy, draws, name)
    return _of_answers(strategy, policy, draws, name)


@dataclass(frozen=True)
class _Seen:
    """What one pair of tables showed."""

    bound: float
    likely: float
    event: str


def _seen(first: Floats, second: Floats, claim: Loss, error: float) -> _Seen:
    """The event that one half of the draws suggests, counted in the other."""
    half = len(first) // 2
    event = learned(claim.unit, first[:half], second[:half])
    hits, others = (int(event.happens(part[half:]).sum()) for part in (first, second))
    if event.is_of_second:
        hits, others = others, hits
    n = len(first) - half
    found = float(bounds.bound(claim.unit, hits, others, n, error))
    return _Seen(found, hits / n, event.words)


def _report(
    name: str,
    words: str,
    claim: Loss,
    draws: int,
    tried: list[tuple[Pair, _Seen]],
    exact_: Fraction | float | None,
    notes: tuple[str, ...],
) -> Audit:
    if not tried:
        return Audit(name, words, claim, 0.0, ERROR, None, exact_, 0, 0, "", "", notes)
    pair, best = max(tried, key=lambda t: t[1].bound)
    error = ERROR / len(tried)
    sharp = bounds.resolution(claim.unit, float(claim.amount), best.likely, draws - draws // 2, error)
    return Audit(
        name, words, claim, best.bound, ERROR, sharp, exact_, draws, len(tried), pair.words, best.event, notes
    )  # fmt: skip


# Answers


def _of_answers(strategy: Any, policy: Policy, draws: int, name: str) -> Audit:
    claim: Loss = strategy.spent
    if answering.is_linear(strategy) and answering.numbers(strategy) > MOST_NUMBERS:
        raise Unsupported(
            f"audit: more than {MOST_NUMBERS:,} numbers of {name!r} carry noise; audit it with coarser bins, where the same mechanism runs."
        )
    found = answer_pairs(strategy, policy, PAIRS)
    is_linear = answering.is_linear(strategy)
    count = answering.most_draws(strategy, draws)
    worst: Fraction | float | None = Fraction(0) if is_linear else None
    tried = []
    for pair in found:
        tables = pair.counts(strategy.domain)
        totals = [published_total(policy, t.total) for t in tables]
        kept: list[int] | None = None
        if is_linear:
            told = [answering.exact(strategy, t, n) for t, n in zip(tables, totals, strict=True)]
            loss = losses.of_rows(claim.unit, *told)
            loss = None if totals[0] != totals[1] else loss
            worst = inf if loss is None or worst == inf else max(worst or Fraction(0), loss)
            kept = _moving(*told)
        outputs = []
        for table, total in zip(tables, totals, strict=True):
            wanted = list(range(_numbers(strategy))) if kept is None else kept
            made = answering.drawn(strategy, table, total, count, wanted)
            outputs.append(np.column_stack([made, np.full(count, -1.0 if total is None else float(total))]))
        tried.append((pair, _seen(outputs[0], outputs[1], claim, ERROR / len(found))))
    notes = []
    if count < draws:
        notes.append(f"{count:,} draws of each table, since each takes long")
    if answering.is_projected(strategy):
        notes.append("of each output the numbers that the change moves most, and a few others")
    if not policy.neighbourhood.is_plain:
        notes.append("both tables of a pair have the same known counts, which are not the declared numbers")
    return _report(name, name_of(strategy.mechanism), claim, count, tried, worst, tuple(notes))


def published_total(policy: Policy, total: int) -> int | None:
    """The number of records as a release publishes it: not at all where it is a secret."""
    return None if policy.neighbourhood.vanishing else total


def answer_pairs(strategy: Any, policy: Policy, count: int) -> list[Pair]:
    """Neighbouring tables between which a way of answering seems to lose most."""
    domain: Domain = strategy.domain
    power = 2 if strategy.is_gaussian else 1
    move = strategy.move
    witness = [(move.domain, [c for c in move.cells if c >= 0])] if move.cells and move.domain else []
    return pairs(policy, domain.names, _rows_of(strategy, power), power, witness, count)


def _rows_of(strategy: Any, power: int) -> Any:
    """What a record in each cell adds to every number that is released, in units of its noise."""
    from ..table import Counts

    domain: Domain = strategy.domain

    def counted(cells: list[int]) -> Any:
        return Counts.collect(domain, [(cells, [1] * len(cells))])

    if not answering.is_linear(strategy):
        return lambda cells: _places(strategy, domain, cells)
    empty = answering.exact(strategy, counted([]), 0)
    unit = np.array(
        [
            CERTAIN if s is None else (1 / float(s) if power == 1 else (2 * float(s)) ** -0.5)
            for s in empty.scales
        ]
    )

    def rows(cells: Ints) -> Floats:
        told = [answering.true_values(strategy, counted([c]), 1) for c in cells.tolist()]
        moved: Floats = (np.stack(told) - empty.values) * unit
        return moved

    return rows


def _places(strategy: Any, domain: Domain, cells: Ints) -> Floats:
    """Coordinates, for ways whose rows are not laid out in advance."""
    room = strategy.room
    told = dict(zip(domain.names, domain.decode(cells), strict=True))
    points, _ = room.places(room.domain.encode([told[n] for n in room.domain.names]))
    return np.asarray(points, dtype=np.float64)


def _moving(one: answering.Exact, two: answering.Exact) -> list[int]:
    """The numbers that differ most before noise, in units of their noise, and a few that do not differ."""
    scales = np.array([1 / CERTAIN if s is None else float(s) for s in one.scales])
    moved = np.abs(one.values - two.values) / scales
    order = np.argsort(-moved, kind="stable")
    kept: list[int] = order[moved[order] > 0][:KEPT].tolist()
    still = [j for j in order[moved[order] == 0].tolist() if one.scales[j] is not None]
    return [*kept, *still[:BESIDE]]


def _numbers(strategy: Any) -> int:
    """How many numbers a way of k-means gives out."""
    return int(strategy.query.k * (len(strategy.room.lines) + 1))


# Rows


def _of_rows(strategy: RowStrategy, draws: int, name: str) -> Audit:
    made = rowing.finished(strategy)
    found = rowing.row_pairs(made, PAIRS)
    worst: float | None = 0.0
    tried = []
    for pair in found:
        loss = rowing.exact_loss(made, pair)
        worst = None if loss is None or worst is None else max(worst, loss)
        outputs = [rowing.outputs(made, held, pair.domain, draws) for held in (pair.before, pair.after)]
        tried.append((pair, _seen(outputs[0], outputs[1], strategy.spent, ERROR / len(found))))
    notes = []
    if strategy.needs:
        notes.append(
            "its prior is an answer that is not drawn yet; here the channel is made for a uniform one"
        )
    if strategy.has_floor:
        notes.append("what its floor lets out; what is learned from that is post-processing")
    if strategy.query.permanent is not None:
        notes.append("the one answer of a person, without the store that keeps it")
    return _report(name, strategy.mechanism.words, strategy.spent, draws, tried, worst, tuple(notes))
