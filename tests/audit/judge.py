"""What every audit does: exact losses over all neighbours that an oracle lists, and bounds from draws of the worst of them.

Neighbours come from ``oracle`` (definitions, by loops), never from the package's graphs or its search for bad pairs; so a mutant
that breaks these is judged by the truth all the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from oracle import brute, constrained, people

from tetraodon.auditing import answering, bounds, losses
from tetraodon.auditing.events import learned
from tetraodon.loss import Loss
from tetraodon.table import Counts

ERROR = 1e-9
KEPT = 20
Exactly = Fraction | float  # infinite where it is unbounded


@dataclass(frozen=True, eq=False)
class Ran:
    """A mechanism, sound or broken, that claims a loss.

    Attributes:
        claim: what it says that it loses.
        loss: the exact loss between two tables; None where none is worked out.
        drawn: outputs for both tables of a pair, shape (draws, numbers) each.
    """

    claim: Loss
    loss: Callable[[Any, Any], Exactly | None]
    drawn: Callable[[Any, Any, int], tuple[Any, Any]]


@dataclass(frozen=True)
class Finding:
    """What an audit found of one mechanism.

    Attributes:
        exact: the largest exact loss; None where none was worked out.
        bound, resolution: from draws; None where none were taken.
        draws: of each table.
    """

    claim: Loss
    exact: Exactly | None
    bound: float | None = None
    resolution: float | None = None
    draws: int = 0
    event: str = ""

    @property
    def caught(self) -> str | None:
        """What contradicts the claim, if anything does."""
        if self.exact is not None and self.exact > self.claim.amount:
            return "exact"
        if self.bound is not None and self.bound > float(self.claim.amount):
            return "draws"
        return None


def judged(ran: Ran, pairs: Sequence[tuple[Any, Any]], draws: int, stop_early: bool = False) -> Finding:
    """The audit: every pair exactly, then the worst one by draws.

    Args:
        stop_early: no draws where exact arithmetic contradicts the claim.
    """
    told = [(ran.loss(a, b), i) for i, (a, b) in enumerate(pairs)]
    known = [(loss, i) for loss, i in told if loss is not None]
    exact, at = max(known, default=(None, 0), key=lambda t: t[0])
    found = Finding(ran.claim, exact)
    if not draws or (stop_early and found.caught):
        return found
    first, second = ran.drawn(*pairs[at], draws)
    half = len(first) // 2
    event = learned(ran.claim.unit, first[:half], second[:half])
    hits, others = (int(event.happens(part[half:]).sum()) for part in (first, second))
    if event.is_of_second:
        hits, others = others, hits
    n = len(first) - half
    bound = float(bounds.bound(ran.claim.unit, hits, others, n, ERROR))
    sharp = bounds.resolution(ran.claim.unit, float(ran.claim.amount), hits / n, n, ERROR)
    return Finding(ran.claim, exact, bound, sharp, len(first), event.words)


# ---------- neighbours ----------


def both(changes: Any, size: int, background: int = 2) -> list[tuple[Any, Any]]:
    """Tables, as counts of every cell, for changes of a histogram; one of two opposite changes is enough."""
    found, seen = [], set()
    for change in np.asarray(changes, dtype=np.int64).reshape(-1, size):
        if tuple(-change) in seen or not change.any():
            continue
        seen.add(tuple(change.tolist()))
        floor = np.full(size, background, dtype=np.int64)
        found.append((floor + np.maximum(-change, 0), floor + np.maximum(change, 0)))
    return found


def edges(policy: Any) -> list[tuple[int, int]]:
    """The edges of a policy's secrets, by definition."""
    return sorted(brute.edges(brute.adjacency(policy.domain, policy.secrets)))


def neighbours(policy: Any, records: int = 3) -> list[tuple[Any, Any]]:
    """All neighbouring tables of a policy on a tiny domain, by the oracle: one of each change of the histogram.

    Args:
        records: in a table, where counts are known.
    """
    adjacent = brute.adjacency(policy.domain, policy.secrets)
    size = len(adjacent)
    if policy.constraints:
        facts = [row for k in policy.known for row in _facts(k, policy.domain)]
        found = constrained.neighbours(adjacent, facts, records)
        return both(constrained.changes(found)[0], size, 0)
    if policy.presence == "secret" or not policy.people.is_plain:
        told = people.changes(adjacent, people.declared(policy.people, policy.presence))
        return both(told, size)
    return both(
        [np.eye(size, dtype=int)[b] - np.eye(size, dtype=int)[a] for a, b in brute.edges(adjacent)], size
    )


def _facts(known: Any, domain: Any) -> list[list[int]]:
    """A constraint as rows of 0 and 1 over the cells of the whole domain, from its declaration."""
    spec = known.to_spec()
    if "marginal" in spec:
        return constrained.predicates(domain, [("marginal", tuple(spec["marginal"]))])
    return constrained.predicates(domain, [("count", {n: _condition(v) for n, v in spec["where"].items()})])


def _condition(told: Any) -> Any:
    return tuple(told["between"]) if isinstance(told, dict) else told


# ---------- ways of answering ----------


def counted(hist: Any, policy: Any, strategy: Any) -> Counts:
    """The table as the strategy is given it: counts of the attributes that it asks for."""
    cells = np.arange(policy.domain.size, dtype=np.int64)
    at = dict(zip(policy.domain.names, policy.domain.decode(cells), strict=True))
    small = strategy.domain
    return Counts.collect(small, [(small.encode([at[n] for n in small.names]), np.asarray(hist))])


def published(policy: Any, hist: Any) -> int | None:
    """The number of records that goes out with the answers, as a session has it."""
    return None if policy.neighbourhood.vanishing else int(np.sum(hist))


def answered(strategy: Any, policy: Any, claim: Loss | None = None) -> Ran:
    """A priced way of answering, by its own ``observe``."""
    told = strategy.spent if claim is None else claim

    def loss(a: Any, b: Any) -> Exactly:
        totals = published(policy, a), published(policy, b)
        one, two = (
            answering.exact(strategy, counted(h, policy, strategy), t)
            for h, t in zip((a, b), totals, strict=True)
        )
        found = losses.of_rows(told.unit, one, two) if totals[0] == totals[1] else None
        return math.inf if found is None else found

    def drawn(a: Any, b: Any, draws: int) -> tuple[Any, Any]:
        totals = published(policy, a), published(policy, b)
        tables = [counted(h, policy, strategy) for h in (a, b)]
        one, two = (answering.exact(strategy, t, n) for t, n in zip(tables, totals, strict=True))
        moved = np.abs(one.values - two.values)
        kept = np.argsort(-moved, kind="stable")[:KEPT].tolist()
        outputs = [
            np.column_stack(
                [
                    answering.drawn(strategy, t, n, draws, kept),
                    np.full(draws, -1.0 if n is None else float(n)),
                ]
            )
            for t, n in zip(tables, totals, strict=True)
        ]
        return outputs[0], outputs[1]

    return Ran(told, loss, drawn)
