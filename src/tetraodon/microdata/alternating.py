"""HyObscure's own search: channels and boundaries improved in turn, with one budget for all rows.

1. Groups by constraint-aware K-means on the private value (Algorithm 1).
2. Channels: the best for these groups (Algorithm 2).
3. Boundaries: with the channels held, values pass from their group to a neighbouring one as long as the requirements hold
   and leakage and distortion both fall; a value that moves takes over the channel of its new group (Algorithm 3).
4. Steps 2 and 3 in turn until no value moves (Algorithm 4).

With one budget for all rows the leakage never rises: a move lowers the distortion, so the old channels stay within the
budget of the next step 2, which is solved to its optimum and kept only if it is better. With a budget in each group that is
not so: a move can put a group beyond its own budget, and the next channels, which keep it, can leak more (tests hold an
example). Source: Han et al. 2021, algorithms 1–4;
convergence derived, see docs/microdata.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..axes import Ints
from ..errors import Refused, Unsupported
from .families import Floats, group_of, intervals
from .joint import TOL, Found, channels
from .kmeans import grouped_values
from .obfuscate import Obfuscated
from .prepared import Piece, Prepared
from .requirements import Requirements, explain_infeasible

ROUNDS = 50
MOVES = 10_000
LEAST = 1e-12  # nats, or distance: what counts as a fall


@dataclass(frozen=True)
class Step:
    """Where the search stood. Leakage in nats.

    Attributes:
        kind: "channels" or "boundaries".
        leak, distortion: of groups and channels together.
    """

    kind: str
    leak: float
    distortion: float


@dataclass(frozen=True, eq=False)
class _Channels:
    """The channel of each group and class over all clusters: a row for each, also for clusters that were not in the group."""

    laws: dict[tuple[int, int], Floats]


def first_groups(prepared: Prepared, rng: np.random.Generator) -> Ints:
    """The group of every private value to start from, by constraint-aware K-means.

    Raises:
        Refused: K-means finds no groups that meet the requirements.
    """
    [column] = prepared.data.columns
    counts, need = prepared.per_value(), prepared.settings.requirements
    number = prepared.settings.groups
    if number is None:
        by_rows = 1 if need.alpha is None else -(-prepared.total // need.alpha)
        by_values = 1 if need.beta is None else -(-int((counts > 0).sum()) // need.beta)
        number = max(by_rows, by_values, 2)
    places = np.arange(column.size, dtype=np.float64) if column.numbers is None else column.numbers
    if column.kind != "ordered":
        return grouped_values(places.reshape(column.size, -1), counts, number, need, rng)
    try:
        found = grouped_values(places.reshape(column.size, -1), counts, number, need, rng)
    except Refused:
        return _narrowest(places.ravel(), counts, number, need, column.is_declared)
    # Groups of an ordered column are intervals: those of K-means from low to high, or else the narrowest that are allowed.
    order = np.argsort([np.flatnonzero(found == g).mean() for g in range(number)])
    runs = np.sort(np.argsort(order)[found])
    if need.allowed(counts, [np.flatnonzero(runs == g) for g in range(number)]).all():
        return runs
    return _narrowest(places.ravel(), counts, number, need, column.is_declared)


def _narrowest(places: Floats, counts: Ints, number: int, need: Requirements, is_declared: bool) -> Ints:
    """Intervals with the least squared distances to their means among those that meet the requirements."""
    family = intervals(len(places))
    mass, first, second = (
        family.counts_of(counts * power) for power in (np.ones(len(places)), places, places**2)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(mass > 0, second - first**2 / mass, 0.0)
    costs = np.where(need.allowed(counts, family.members), np.maximum(spread, 0.0), np.inf)
    best = family.best(costs, number)
    if best is None:
        raise Refused(
            f"hybrid: {explain_infeasible(need, groups=number, values=len(places) if is_declared else None)}"
        )
    return group_of(family, best[1])


def alternate(prepared: Prepared, start: Ints, rng: np.random.Generator) -> tuple[Found, tuple[Step, ...]]:
    """The groups and channels where no step improves any more, and the way there.

    Args:
        start: the group of every private value.
        rng: the order in which moves are tried where there is no natural one. No release noise.

    Raises:
        Refused: the first groups' channels cannot keep the budget.
        Unsupported: several private columns.
    """
    if len(prepared.data.columns) != 1:
        raise Unsupported("hybrid.method: 'alternating' has one private column; use 'optimal' for several.")
    group_of = np.asarray(start, dtype=np.int64)
    shared = prepared.settings.budget == "shared"
    history: list[Step] = []
    kept: _Channels | None = None
    best: tuple[float, float] | None = None
    bound = 0.0  # of what these groups exchange, in nats
    last = None
    while True:
        groups = _members(group_of)
        made = channels(prepared, groups, TOL)
        if made is None and not shared and last is not None:
            group_of, kept, best, bound = last  # some group cannot keep its own budget any more
            history.append(Step("channels", *best))
            break
        bound = 0.0 if made is None else made[1].bound
        if made is not None:
            pieces, solved = made
            fresh = _Channels(_laws(prepared, pieces, solved))
            told = evaluated(prepared, groups, fresh.laws)
            # Within each group's own budget the old channels may be no more, so that the new ones stand even if they leak more.
            if told is not None and (best is None or told[0] < best[0] or not shared):
                kept, best = fresh, told
        if kept is None or best is None:
            raise Refused(
                "hybrid.distortion: the first groups cannot keep the budget; how far off they are is a function of private rows and "
                "withheld. Allow more distortion, or use method 'optimal'."
            )
        history.append(Step("channels", *best))
        if len(history) >= 2 * ROUNDS:
            break
        last = group_of, kept, best, bound
        moved = boosted(prepared, group_of, kept.laws, best, rng)
        if moved is None:
            break
        group_of, best = moved
        history.append(Step("boundaries", *best))
    return _found(prepared, group_of, kept, best, bound), tuple(history)


def _found(
    prepared: Prepared, group_of: Ints, kept: _Channels, best: tuple[float, float], bound: float
) -> Found:
    groups = _members(group_of)
    pieces = []
    laws = []
    for g, members in enumerate(groups):
        own = prepared.pieces(members)
        assert own is not None
        pieces.append(own)
        laws += [_taken_over(p, kept.laws[g, p.class_]) for p in own]
    naming = sum(prepared.grouping(m) for m in groups)
    bound += naming
    return Found(
        (), tuple(groups), tuple(pieces), tuple(laws), best[0] - naming, best[1], naming, 0.0, min(bound, best[0])
    )  # fmt: skip


def _members(group_of: Ints) -> list[Ints]:
    return [np.flatnonzero(group_of == g) for g in range(int(group_of.max()) + 1)]


def _laws(
    prepared: Prepared, pieces: Sequence[Sequence[Piece]], solved: Obfuscated
) -> dict[tuple[int, int], Floats]:
    size, found, at = prepared.clusters.number, {}, 0
    for g, own in enumerate(pieces):
        for piece in own:
            law = np.full((size, size), np.nan)
            law[piece.rows] = 0.0
            law[np.ix_(piece.rows, piece.columns)] = solved.channels[at]
            found[g, piece.class_] = law
            at += 1
    return found


def evaluated(
    prepared: Prepared, groups: Sequence[Ints], laws: dict[tuple[int, int], Floats]
) -> tuple[float, float] | None:
    """Leakage (nats) and distortion of groups with the channels held; None where a channel does not fit its group.

    A cluster that was not in a group before goes to its nearest target.
    """
    leak = distortion = 0.0
    for g, members in enumerate(groups):
        pieces = prepared.pieces(members)
        if pieces is None:
            return None
        leak += prepared.grouping(members)
        for piece in pieces:
            if (g, piece.class_) not in laws:
                return None
            law = _taken_over(piece, laws[g, piece.class_])
            if np.abs(law.sum(axis=1) - 1).max() > 1e-9:
                return None  # it sends rows to a cluster that has no donors here
            leak += piece.block.leak(law)
            distortion += piece.block.distortion(law)
    return leak, distortion


def _taken_over(piece: Piece, law: Floats) -> Floats:
    """A channel over all clusters for the clusters of a group: one that it has no row for goes to its nearest target."""
    found = law[piece.rows]
    new = np.flatnonzero(np.isnan(found).any(axis=1))
    found = found[:, piece.columns].copy()
    found[new] = 0.0
    found[new, piece.block.cost[new].argmin(axis=1)] = 1.0
    return found


def boosted(
    prepared: Prepared,
    group_of: Ints,
    laws: dict[tuple[int, int], Floats],
    now: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[Ints, tuple[float, float]] | None:
    """Moves that lower leakage and distortion both, until there is none; None if there was none at all."""
    counts, need = prepared.per_value(), prepared.settings.requirements
    at, best, moved = group_of, now, False
    for _ in range(MOVES):
        chosen = None
        ordered = prepared.data.columns[0].kind == "ordered"
        for tried in _moves(prepared, at, rng):
            changed = np.unique(np.concatenate([at[tried != at], tried[tried != at]]))
            parts = [np.flatnonzero(tried == g) for g in changed]
            if not all(len(p) for p in parts) or not need.allowed(counts, parts).all():
                continue
            told = evaluated(prepared, _members(tried), laws)
            limit = best if chosen is None else chosen[1]
            if told is not None and told[0] < limit[0] - LEAST and told[1] < limit[1] - LEAST:
                chosen = tried, told
                if not ordered:
                    break
        if chosen is None:
            break
        at, best, moved = chosen[0], chosen[1], True
    return (at, best) if moved else None


def _moves(prepared: Prepared, group_of: Ints, rng: np.random.Generator) -> Iterator[Ints]:
    """Groupings next to this one: of an ordered column, boundaries at other places; else single values in a neighbouring group."""
    [column] = prepared.data.columns
    n = column.size
    if column.kind == "ordered":
        for edge in np.flatnonzero(np.diff(group_of)) + 1:
            left, right = group_of[edge - 1], group_of[edge]
            low, high = edge, edge
            while low > 0 and group_of[low - 1] == left:
                low -= 1
                tried = group_of.copy()
                tried[low:edge] = right
                yield tried
            while high < n and group_of[high] == right:
                high += 1
                tried = group_of.copy()
                tried[edge:high] = left
                yield tried
        return
    pairs = _neighbours(column.shape, n, group_of)
    for value, group in pairs[rng.permutation(len(pairs))].tolist():
        tried = group_of.copy()
        tried[value] = group
        yield tried


def _neighbours(shape: tuple[int, int] | None, n: int, group_of: Ints) -> Ints:
    """(value, group) where the value may go: groups of adjacent places, or every other group."""
    if shape is None:
        groups = np.arange(int(group_of.max()) + 1)
        pairs = np.stack(np.meshgrid(np.arange(n), groups, indexing="ij"), axis=-1).reshape(-1, 2)
    else:
        cells = np.arange(n).reshape(shape)
        sides = [(cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])]
        one = np.concatenate([a.ravel() for pair in sides for a in pair])
        other = np.concatenate([a.ravel() for a, b in sides for a in (b, a)])
        pairs = np.unique(np.stack([one, group_of[other]], axis=1), axis=0)
    return np.asarray(pairs[group_of[pairs[:, 0]] != pairs[:, 1]], dtype=np.int64)
