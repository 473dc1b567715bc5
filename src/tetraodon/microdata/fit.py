"""From rows and settings to a plan: which families of groups are searched, in what order, and with what result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..axes import Bools, Ints
from ..errors import Refused, SpecificationError
from .alternating import alternate, first_groups
from .data import Data, PrivateColumn, labels_of
from .families import Family, Floats, intervals
from .joint import Candidates, Found, optimal, settled
from .merged import Merged, units_of
from .orders import correspondence_order, curve_order
from .plan import LN2, Group, Plan, laws_of
from .prepared import Prepared
from .rectangles import rectangles
from .requirements import Requirements
from .settings import Hybrid
from .trees import tree_cuts

MOST_BOXED = 400  # cells of a map up to which all rectangles are candidates
MOST_CANDIDATES = 250_000
MOST_ORDERED = 600  # values along an order up to which every run is a candidate
SWEEPS = 10
LEAST = 1e-9  # nats by which a step of coordinate descent must improve
SHAPES = {
    "ordered": ("intervals", "correspondence"),
    "tree": ("tree", "correspondence"),
    "grid": ("rectangles", "curve", "correspondence"),
    "plain": ("correspondence",),
}


def fit(data: Data, settings: Hybrid, rng: np.random.Generator | None = None) -> Plan:
    """Groups and channels of least leakage for these rows. Reads only; nothing is drawn for a release.

    Args:
        data: the rows.
        settings: with the exchanged columns by name.
        rng: what an alternating search starts from; fresh by default. No release noise.

    Raises:
        SpecificationError: settings that do not fit the columns.
        Refused: no groups meet the requirements within the distortion; the message holds no private count.
    """
    _check(data, settings)
    if settings.sample is not None and data.rows > settings.sample:
        from .from_sample import fit_on_sample

        return fit_on_sample(data, settings)
    return best(Prepared.of(data, settings), rng)


def best(prepared: Prepared, rng: np.random.Generator | None = None) -> Plan:
    """Groups and channels of least leakage for rows that are summed up.

    Raises:
        Refused: as ``fit``.
    """
    data, settings = prepared.data, prepared.settings
    if settings.method == "alternating":
        source = np.random.default_rng() if rng is None else rng
        found, history = alternate(prepared, first_groups(prepared, source), source)
        found, _ = settled(prepared, found)
        own = _groups(data.columns[0], found.groups)
        proved = (found.bound + prepared.classes) / LN2
        return Plan(
            settings, data.columns, (own,), laws_of(prepared, found), prepared, None, 0.0, history, proved
        )
    if len(data.columns) == 1:
        candidates = candidates_of(prepared, 0)
        found = optimal(prepared, candidates)
        cuts = [[candidates.family.members[i] for i in found.chosen]]
        bound: float | None = found.bound
    else:
        found, cuts = _several(prepared)
        bound = None  # each column's groups are best given the others'; nothing is proved of all together
    found, is_sampled = settled(prepared, found)
    if is_sampled:
        bound = None  # it was proved for the distances of other pairs
    found, cuts = _sorted(prepared, found, cuts)
    groups = tuple(_groups(column, own) for column, own in zip(data.columns, cuts, strict=True))
    classes = prepared.classes
    return Plan(
        settings,
        data.columns,
        groups,
        laws_of(prepared, found),
        prepared,
        None if bound is None else (bound + classes) / LN2,
        found.coarse / LN2,
    )


def _check(data: Data, settings: Hybrid) -> None:
    for column in data.columns:
        if column.size < 2:
            raise SpecificationError(
                f"hybrid.private: {column.name!r} has one value only, so that there is nothing to generalise."
            )
        if settings.generalise != "auto" and settings.generalise not in SHAPES[column.kind]:
            raise SpecificationError(
                f"hybrid.generalise: {settings.generalise!r} does not fit {column.name!r}; one of {', '.join(SHAPES[column.kind])}."
            )
    if settings.requirements.k > data.rows:
        raise SpecificationError("hybrid.k: more than the table has rows.")
    if settings.groups is not None and any(settings.groups > c.size for c in data.columns):
        raise SpecificationError("hybrid.groups: more than a private column has values.")


def candidates_of(
    prepared: Prepared, at: int, others: Sequence[Sequence[Ints]] = (), relaxed: bool = False
) -> Candidates:
    """The candidate groups of one private column while the others' groups stand.

    Args:
        at: the column.
        others: groups of every column (that of ``at`` is not looked at); none where it is the only one.
        relaxed: leave alpha aside, which groups of one column alone cannot keep.

    Raises:
        SpecificationError: too many of them.
    """
    data, settings = prepared.data, prepared.settings
    column = data.columns[at]
    family = family_of(prepared, column, at)
    if len(family.members) > MOST_CANDIDATES:
        raise SpecificationError(
            f"hybrid.private: {column.name!r} has more than {MOST_CANDIDATES:,} candidate groups; declare coarser values."
        )
    need = replace(settings.requirements, alpha=None) if relaxed else settings.requirements
    own = prepared.rows_of(at)
    share = family.counts_of(own.astype(np.float64)) / prepared.tested.rows
    width = family.counts_of(np.ones(column.size)) / column.size
    coarse = settings.coarseness * LN2 * share * width
    if not others:

        def alone(i: int) -> Sequence[Ints]:
            return [np.sort(family.members[i])]

        return Candidates(family, need.allowed(own, family.members), alone, coarse, settings.groups)
    products = _products(others, at)

    def among(i: int) -> Sequence[Ints]:
        mine = np.sort(family.members[i])
        found = [data.joint([*p[:at], mine, *p[at:]]) for p in products]
        return [m for m in found if len(prepared.inside(m))]

    allowed = _jointly(prepared, need, family, at, products, own)
    return Candidates(family, allowed, among, coarse, settings.groups)


def _products(others: Sequence[Sequence[Ints]], at: int) -> list[list[Ints]]:
    """Every combination of the other columns' groups."""
    found: list[list[Ints]] = [[]]
    for place, groups in enumerate(others):
        if place != at:
            found = [[*head, members] for head in found for members in groups]
    return found


def _jointly(
    prepared: Prepared,
    need: Requirements,
    family: Family,
    at: int,
    products: Sequence[Sequence[Ints]],
    own: Ints,
) -> Bools:
    """Rows of every joint group that occurs from k to alpha; variety of the column's own groups from l to beta."""
    variety = Requirements(k=1, l=need.l, beta=need.beta, variety=need.variety)
    allowed = variety.allowed(own, family.members)
    cube = prepared.per_value().reshape(prepared.data.sizes)
    table = np.moveaxis(cube, at, 0)
    for product in products:
        rows = family.counts_of(_sub(table, product).reshape(len(own), -1).sum(axis=1))
        good = rows >= need.k
        if need.alpha is not None:
            good &= rows <= need.alpha
        allowed = allowed & (good | (rows == 0))
    return np.asarray(allowed)


def _sub(table: Ints, product: Sequence[Ints]) -> Ints:
    for axis, members in enumerate(product, start=1):
        table = np.take(table, members, axis=axis)
    return table


def family_of(prepared: Prepared, column: PrivateColumn, at: int) -> Family:
    """The candidate groups of a private column, by its kind and the settings."""
    shape = prepared.settings.generalise
    if shape == "auto":
        shape = SHAPES[column.kind][0]
        if column.kind == "grid" and column.size > MOST_BOXED:
            shape = "curve"
    rows = prepared.rows_of(at)
    if shape == "intervals":
        return _runs(np.arange(column.size), rows)
    if shape == "tree":
        assert column.parents is not None
        return tree_cuts(column.labels, column.parents)
    if shape == "rectangles":
        assert column.shape is not None
        return rectangles(column.shape)
    if shape == "curve":
        assert column.shape is not None
        return _runs(curve_order(column.shape), rows)
    counts = np.zeros((column.size, prepared.clusters.number))
    np.add.at(counts, (prepared.data.codes[at], prepared.clusters.labels), 1.0)
    return _runs(correspondence_order(counts), rows)


def _runs(order: Ints, rows: Ints) -> Family:
    """Runs of an order; of very many values, runs of units with about equally many rows each."""
    if len(order) <= MOST_ORDERED:
        return intervals(len(order), order=order)
    units = units_of(order, rows, MOST_ORDERED)
    return Merged(intervals(len(units)), units)


def _several(prepared: Prepared) -> tuple[Found, list[list[Ints]]]:
    """Coordinate descent: the groups of one column at a time, each step exact, until none gets better.

    The first round starts from columns that are one group each, so that alpha holds from its last step on.
    """
    columns = prepared.data.columns
    cuts: list[list[Ints]] = [[np.arange(c.size)] for c in columns]
    coarse = [0.0] * len(columns)
    best: Found | None = None
    for sweep in range(SWEEPS):
        better = False
        for at in range(len(columns)):
            candidates = candidates_of(prepared, at, cuts, relaxed=sweep == 0 and at < len(columns) - 1)
            found = optimal(prepared, candidates)
            fell = best is not None and found.leak + found.coarse < best.leak + coarse[at] - LEAST
            if sweep == 0 or fell:
                cuts[at] = [np.sort(candidates.family.members[i]) for i in found.chosen]
                best, coarse[at], better = found, found.coarse, True
        if not better:
            break
    assert best is not None
    if not holds_jointly(prepared.settings.requirements, prepared.tested, _group_of(prepared.data, cuts)):
        raise Refused(
            "hybrid: no joint groups of these private columns were found that meet k, alpha, l and beta; relax them, or state fewer "
            "groups."
        )
    return replace(best, coarse=sum(coarse)), cuts


def _group_of(data: Data, cuts: Sequence[Sequence[Ints]]) -> tuple[Ints, ...]:
    found = []
    for column, own in zip(data.columns, cuts, strict=True):
        of = np.zeros(column.size, dtype=np.int64)
        for g, members in enumerate(own):
            of[members] = g
        found.append(of)
    return tuple(found)


def holds_jointly(need: Requirements, data: Data, group_of: Sequence[Ints]) -> bool:
    """Whether joint groups that occur have k to alpha rows, and each column's groups l to beta values."""
    sizes = tuple(int(g.max()) + 1 for g in group_of)
    parts = tuple(g[c] for g, c in zip(group_of, data.codes, strict=True))
    rows = np.bincount(np.ravel_multi_index(parts, sizes), minlength=int(np.prod(sizes)))
    rows = rows[rows > 0]
    if (rows < need.k).any() or (need.alpha is not None and (rows > need.alpha).any()):
        return False
    variety = Requirements(k=1, l=need.l, beta=need.beta, variety=need.variety)
    for codes, groups, column in zip(data.codes, group_of, data.columns, strict=True):
        own = np.bincount(codes, minlength=column.size)
        if not variety.allowed(
            own, [np.flatnonzero(groups == g) for g in range(int(groups.max()) + 1)]
        ).all():
            return False
    return True


def _sorted(
    prepared: Prepared, found: Found, cuts: Sequence[Sequence[Ints]]
) -> tuple[Found, list[list[Ints]]]:
    """Groups of every column by their first value, and the joint groups numbered row-major over them, as plans number them."""
    ordered = [
        [np.sort(m) for m in own] if prepared.data.columns[at].kind == "tree" else sorted((np.sort(m) for m in own), key=lambda m: int(m[0]))
        for at, own in enumerate(cuts)
    ]  # fmt: skip
    group_of = _group_of(prepared.data, ordered)
    sizes = tuple(len(o) for o in ordered)
    where: dict[int, int] = {}
    for place, members in enumerate(found.groups):
        parts = np.unravel_index(int(members[0]), prepared.data.sizes)
        code = np.ravel_multi_index(tuple(g[p] for g, p in zip(group_of, parts, strict=True)), sizes)
        where[int(code)] = place
    starts = np.concatenate([[0], np.cumsum([len(p) for p in found.pieces])])
    groups, pieces, channels = [], [], list[Floats]()
    for code in range(int(np.prod(sizes))):
        at = where.get(code)
        groups.append(np.zeros(0, dtype=np.int64) if at is None else found.groups[at])
        pieces.append(() if at is None else found.pieces[at])
        if at is not None:
            channels += found.channels[starts[at] : starts[at + 1]]
    return replace(found, groups=tuple(groups), pieces=tuple(pieces), channels=tuple(channels)), ordered


def _groups(column: PrivateColumn, members: Sequence[Ints]) -> tuple[Group, ...]:
    """Groups with labels that tell them apart, whatever the values are called."""
    found = [_group(column, own, at) for at, own in enumerate(members)]
    return tuple(
        replace(g, label=label) for g, label in zip(found, labels_of([g.label for g in found]), strict=True)
    )


def _group(column: PrivateColumn, members: Ints, at: int) -> Group:
    if column.parents is not None:
        family = tree_cuts(column.labels, column.parents)
        for label, own in zip(family.labels, family.members, strict=True):
            if np.array_equal(np.sort(own), members):
                return Group(str(label), members)
    return Group(column.label(members, at), members)
