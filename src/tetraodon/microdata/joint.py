"""Groups and channels together, to their global optimum: prices of candidate groups, and the cheapest partition into them.

    I(Y; X̂, Ỹ) = Σ_g [ −w_g ln w_g + w_g I(Y; X̂ | Ỹ = g) ]

is additive over groups, and with a budget for each group so are the constraints: the price of a group is the optimum of its
own channel problem, and the best partition into candidate groups (intervals, nodes of a tree, rectangles) is a dynamic
program over prices. With one budget Δ for all rows,

    min over partitions and channels ≥ max over λ ≥ 0 of [ min over partitions Σ_g price_g(λ) − λΔ ],

where price_g(λ) is the least leakage + λ·distortion of the group; every λ gives a lower bound that the *certified* bounds
of the prices prove, and a partition to try. The two may stay apart (the partition is a discrete choice): the gap is told.
Only those candidates are priced that some cheapest partition needs (``lazily``). Derived, see docs/microdata.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from ..axes import Ints
from ..channels.attainable import Unreachable
from ..errors import Refused
from .families import Family, Floats
from .lazily import lazily_together
from .obfuscate import Obfuscated, Priced, obfuscate, with_budgets, with_multipliers
from .prepared import Piece, Prepared
from .requirements import explain_infeasible

ROUNDS = 16  # multipliers that are tried
TOL = 2e-5  # nats, of a price
NEAR = 1e-5


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """Groups that a partition may use.

    Attributes:
        family: which sets of a column's values may be groups, and how the cheapest partition into them is found.
        allowed: those that meet the requirements.
        groups_of: joint private values of the groups that a candidate stands for (one; several where other private columns
            have groups of their own).
        coarse: price of each candidate's width, in nats.
        number: how many candidates a partition has; None for any number.
    """

    family: Family
    allowed: np.ndarray[tuple[int], np.dtype[np.bool_]]
    groups_of: Callable[[int], Sequence[Ints]]
    coarse: Floats
    number: int | None


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """A partition with its channels.

    Attributes:
        chosen: the candidates.
        groups: joint private values of each group.
        pieces: channel problems of each group, class by class.
        channels: rows of probabilities for the pieces of all groups in turn.
        conditional: Σ w_g I(Y; X̂ | g), in nats.
        distortion: expected, over all rows.
        naming: what the groups' names tell, in nats; without what coarseness costs.
        coarse: what coarseness costs, in nats.
        bound: no partition into candidates, with any channels within the budget, has a smaller ``objective``. In nats.
        multiplier: where one budget is shared, what the bound was proved with.
    """

    chosen: tuple[int, ...]
    groups: tuple[Ints, ...]
    pieces: tuple[tuple[Piece, ...], ...]
    channels: tuple[Floats, ...]
    conditional: float
    distortion: float
    naming: float
    coarse: float
    bound: float
    multiplier: float = 0.0

    @property
    def leak(self) -> float:
        """I(Y; X̂, Ỹ) beyond what the classes tell, in nats."""
        return self.naming + self.conditional

    @property
    def objective(self) -> float:
        """What was minimised: the leakage and the price of coarseness."""
        return self.leak + self.coarse


@dataclass(frozen=True)
class _Price:
    """Of a candidate, in nats: value, certified lower bound; and the distortion of its channels."""

    value: float
    lower: float
    distortion: float


NEVER = _Price(inf, inf, inf)


@dataclass(eq=False)
class _Market:
    """Prices of candidates under one way of charging for distortion."""

    prepared: Prepared
    candidates: Candidates
    known: dict[tuple[float | None, int], _Price] = field(default_factory=dict)
    ends: dict[int, list[tuple[float, float]]] = field(default_factory=dict)  # (multiplier, lower end)

    @property
    def budget(self) -> float:
        return self.prepared.settings.distortion

    def pieces(self, i: int) -> list[Piece] | None:
        found: list[Piece] = []
        for members in self.candidates.groups_of(i):
            made = self.prepared.pieces(members)
            if made is None:
                return None
            found += made
        return found

    def naming(self, i: int) -> float:
        groups = self.candidates.groups_of(i)
        return float(self.candidates.coarse[i]) + sum(self.prepared.grouping(g) for g in groups)

    def least(self, i: int) -> float:
        """The least distortion that the candidate's groups can have; inf where some row has no possible donor."""
        pieces = self.pieces(i)
        return inf if pieces is None else sum(p.block.least() for p in pieces)

    def lowers(self, lam: float | None) -> Floats:
        """What no price is below: what names tell, and λ times the least distortion; and what prices at other multipliers prove.

        A price is the least of functions I + λ·D over channels: concave in λ, so that it lies above the chords of its lower
        ends, and rising by the least distortion or more per unit of λ.
        """
        found = np.full(len(self.candidates.allowed), inf)
        for i in np.flatnonzero(self.candidates.allowed).tolist():
            found[i] = self.naming(i)
            if lam:
                found[i] = self._above_chords(i, lam, found[i])
        return found

    def _above_chords(self, i: int, lam: float, naming: float) -> float:
        least = self.least(i)
        if least == inf:
            return inf
        before, low = 0.0, naming
        for at, end in sorted(self.ends.get(i, ())):
            if at > lam:
                chord = low + (end - low) * (lam - before) / (at - before)
                return max(naming + lam * least, low + (lam - before) * least, chord)
            before, low = at, max(end, low + (at - before) * least)
        return low + (lam - before) * least

    def prices(self, several: Ints, lam: float | None) -> list[_Price]:
        """With a multiplier for distortion, or (None) with a budget for each group. All new ones are solved in one call."""
        fresh = [i for i in several.tolist() if (lam, i) not in self.known]
        pieces = {i: self.pieces(i) for i in fresh}
        blocks = [p.block for own in pieces.values() for p in own or ()]
        told: Sequence[Priced | None] = (
            with_multipliers(blocks, lam, TOL)
            if lam is not None
            else [
                found
                if block.least() <= self.budget * block.share
                else None  # to the last digit, as channels will have it
                for block, found in zip(blocks, with_budgets(blocks, self.budget, TOL), strict=True)
            ]
        )
        at = 0
        for i, own in pieces.items():
            count = 0 if own is None else len(own)
            self.known[lam, i] = NEVER if own is None else self._price(i, told[at : at + count])
            if lam:
                self.ends.setdefault(i, []).append((lam, self.known[lam, i].lower))
            at += count
        return [self.known[lam, i] for i in several.tolist()]

    def _price(self, i: int, told: Sequence[Priced | None]) -> _Price:
        value = lower = self.naming(i)
        distortion = 0.0
        for each in told:
            if each is None:
                return NEVER
            value, lower, distortion = value + each.cost, lower + each.lower, distortion + each.distortion
        return _Price(value, lower, distortion)


def optimal(prepared: Prepared, candidates: Candidates, tol: float = 4e-5) -> Found:
    """The partition and the channels of least leakage, and a bound that no others of this family go below.

    Raises:
        Refused: no partition meets the requirements within the budget; why is a function of private rows and not said.
    """
    market = _Market(prepared, candidates)
    if prepared.settings.budget == "shared":
        return _shared_budget(market, tol)
    if not _is_possible(market):
        raise _none(market)
    found = _cheapest(market, None)
    made = None if found is None else _solved(market, found[0], tol)
    if found is None or made is None:
        raise _none(market)
    return _proved(made, found[1], made.multiplier)


def _shared_budget(market: _Market, tol: float) -> Found:
    """Multipliers of the channels of each new partition; between them, halves of what is left."""
    if not _is_possible(market):
        raise _none(market)
    first = _cheapest(market, None) or _nearest(market)
    best = None if first is None else _solved(market, first[0], tol)
    if first is None or best is None:
        raise _none(market)
    tried, bound, proof = {first[0]}, -inf, 0.0
    low, high = (
        0.0,
        inf,
    )  # multipliers at which the cheapest partition distorts more, and less, than the budget
    lam = best.multiplier
    for _ in range(ROUNDS):
        found = _cheapest(market, lam)
        if found is None:
            raise _none(market)
        chosen, lower = found
        if lower - lam * market.budget > bound:
            bound, proof = lower - lam * market.budget, lam
        over = sum(market.known[lam, i].distortion for i in chosen) > market.budget
        low, high = (max(low, lam), high) if over else (low, min(high, lam))
        wish = None
        if chosen not in tried:
            tried.add(chosen)
            made = _solved(market, chosen, tol)
            if made is not None:
                wish = made.multiplier
                best = made if made.objective < best.objective else best
        if best.objective - bound <= tol or high - low <= NEAR * max(low, NEAR):
            break
        if wish is None or not low < wish < high:
            wish = max(4 * low, 1e-2) if high == inf else (low + high) / 2
        lam = wish
    return _proved(best, bound, proof)


def _cheapest(market: _Market, lam: float | None) -> tuple[tuple[int, ...], float] | None:
    """The cheapest partition, and a certified bound on the price of every partition."""
    told = market.candidates

    def exact(several: Ints) -> list[tuple[float, float]]:
        return [(p.value, p.lower) for p in market.prices(several, lam)]

    found = lazily_together(told.family, market.lowers(lam), exact, told.number)
    return None if found is None else (tuple(int(i) for i in found.chosen), found.bound)


def _nearest(market: _Market) -> tuple[tuple[int, ...], float] | None:
    """The partition that can distort least, where no partition keeps the budget in each of its groups."""
    told = market.candidates
    costs = np.full(len(told.allowed), inf)
    for i in np.flatnonzero(told.allowed):
        costs[i] = market.least(int(i))
    found = told.family.best(costs, told.number)
    if found is None or found[0] > market.budget:
        return None
    return tuple(int(i) for i in found[1]), -inf


def reach(prepared: Prepared, candidates: Candidates) -> tuple[float, float]:
    """The least distortion that any groups have, and what exchange with anybody of the group costs in these groups.

    Raises:
        Refused: no groups meet the requirements.
    """
    market = _Market(prepared, candidates)
    if not _is_possible(market):
        raise _none(market)
    costs = np.full(len(candidates.allowed), inf)
    for i in np.flatnonzero(candidates.allowed).tolist():
        costs[i] = market.least(i)
    found = candidates.family.best(costs, candidates.number)
    if found is None:
        raise _none(market)
    anyone = 0.0
    for i in found[1].tolist():
        for piece in market.pieces(i) or ():
            block, mass = piece.block, np.zeros(prepared.clusters.number)
            mass[piece.rows] = block.mass
            law = mass[piece.columns] / mass[piece.columns].sum()
            anyone += block.distortion(np.tile(law, (len(piece.rows), 1)))
    return found[0], anyone


def _solved(market: _Market, chosen: Sequence[int], tol: float) -> Found | None:
    """A partition with the best channels for it; None where the budget is out of its reach."""
    groups = [g for i in chosen for g in market.candidates.groups_of(i)]
    made = channels(market.prepared, groups, tol)
    if made is None:
        return None
    pieces, solved = made
    naming = sum(market.prepared.grouping(g) for g in groups)
    coarse = float(market.candidates.coarse[list(chosen)].sum())
    return Found(
        tuple(chosen), tuple(groups), pieces, solved.channels, solved.leak, solved.distortion, naming, coarse,
        naming + coarse + solved.bound, largest(solved.multiplier),
    )  # fmt: skip


def settled(prepared: Prepared, found: Found, tol: float = 4e-5) -> tuple[Found, bool]:
    """The same groups with channels for distances that were sampled after the choice, where distances are sampled; and whether
    they are.

    Raises:
        Refused: the distances that were found then are beyond the budget.
    """
    if not prepared.settle(found.groups):
        return found, False
    made = channels(prepared, found.groups, tol)
    if made is None:
        raise Refused(
            "hybrid.distortion: pairs of rows that were sampled after the groups were chosen lie farther apart than the distortion allows. "
            "Allow more distortion, or more clusters."
        )
    pieces, solved = made
    anew = replace(
        found, pieces=pieces, channels=solved.channels, conditional=solved.leak, distortion=solved.distortion
    )
    return replace(anew, bound=found.naming + solved.bound), True


def largest(multiplier: float | tuple[float, ...]) -> float:
    """One multiplier for all."""
    return max(multiplier, default=0.0) if isinstance(multiplier, tuple) else multiplier


def channels(
    prepared: Prepared, groups: Sequence[Ints], tol: float = 4e-5
) -> tuple[tuple[tuple[Piece, ...], ...], Obfuscated] | None:
    """The best channels of some groups; None where some row has no donor, or the budget is out of reach."""
    settings = prepared.settings
    pieces = []
    for members in groups:
        made = prepared.pieces(members)
        if made is None:
            return None
        pieces.append(made)
    blocks = [p.block for own in pieces for p in own]
    shared = settings.budget == "shared"
    least = [b.least() for b in blocks]
    if shared and sum(least) > settings.distortion:
        return None
    if not shared and any(few > settings.distortion * b.share for few, b in zip(least, blocks, strict=True)):
        return None
    try:
        solved = obfuscate(
            blocks, settings.distortion, shared=shared, invariant=settings.is_invariant, tol=tol
        )
    except Unreachable:  # of channels that keep shares; how far off they are is private
        return None
    return tuple(pieces), solved


def _proved(found: Found, bound: float, multiplier: float) -> Found:
    return replace(found, bound=min(max(bound, 0.0), found.objective), multiplier=multiplier)


def _is_possible(market: _Market) -> bool:
    """Whether any partition into allowed candidates exists, before anything dear is asked of them."""
    told = market.candidates
    return told.family.best(np.where(told.allowed, 0.0, inf), told.number) is not None


def _none(market: _Market) -> Refused:
    """Which stage found nothing; how far off it is stays private."""
    settings, columns = market.prepared.settings, market.prepared.data.columns
    if not _is_possible(market):
        alone = len(columns) == 1
        text = explain_infeasible(
            settings.requirements,
            groups=settings.groups if alone else None,
            values=columns[0].size if alone and columns[0].is_declared else None,
        )
        return Refused(f"hybrid: {text}")
    each = "in every group " if settings.budget == "group" else ""
    return Refused(
        f"hybrid.distortion: there are groups that meet k, alpha, l and beta, but none in which rows can be exchanged {each}within the "
        "distortion. How far off that is would tell of private rows and is not said. Allow more distortion, more clusters, or fewer "
        "donors; HybridObscuring.distortions tells its owner what is possible."
    )
