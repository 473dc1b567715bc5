"""Families of groups: every dynamic program against enumeration, fixed and free numbers of groups, forbidden candidates."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator

import numpy as np
import pytest

from tetraodon.errors import SpecificationError
from tetraodon.microdata.families import Family, group_of, intervals, sums
from tetraodon.microdata.orders import correspondence_order, curve_order
from tetraodon.microdata.rectangles import rectangles
from tetraodon.microdata.trees import tree_cuts

Part = frozenset[frozenset[int]]


def prices(rng: np.random.Generator, count: int) -> np.ndarray:
    """Random prices, a third of the time whole ones with ties, some forbidden, some below 0."""
    kind = rng.integers(3)
    found = rng.integers(0, 4, count).astype(float) if kind == 0 else rng.normal(1.0, 1.0, count)
    found[rng.random(count) < rng.choice([0.0, 0.2, 0.5])] = math.inf
    return found


def cheapest(family: Family, parts: list[Part], costs: np.ndarray, groups: int | None) -> float:
    """The least total over listed partitions, looked up by the sets that their groups are."""
    price = {frozenset(held.tolist()): cost for held, cost in zip(family.members, costs, strict=True)}
    assert len(price) == len(costs)  # no set is a candidate twice
    totals = [sum(price[g] for g in part) for part in parts if groups is None or len(part) == groups]
    return min(totals, default=math.inf)


def agree(family: Family, parts: list[Part], costs: np.ndarray, groups: int | None) -> bool:
    """Compare with enumeration and check what is returned; whether there was a partition."""
    best = cheapest(family, parts, costs, groups)
    found = family.best(costs, groups)
    if found is None:
        assert best == math.inf
        return False
    value, chosen = found
    assert value == pytest.approx(best, abs=1e-12) and value == pytest.approx(costs[chosen].sum(), abs=1e-12)
    assert sorted(itertools.chain(*(family.members[i].tolist() for i in chosen))) == list(range(family.n))
    assert groups is None or len(chosen) == groups
    labels = group_of(family, chosen)
    assert all((labels[family.members[c]] == g).all() for g, c in enumerate(chosen))
    return True


def counted(family: Family, rng: np.random.Generator) -> None:
    """Sums over candidates are those of the members, one by one."""
    for table in (rng.integers(0, 9, family.n), rng.integers(0, 9, (family.n, 3)), rng.random((family.n, 2))):
        plain = np.array([table[held].sum(axis=0) for held in family.members])
        np.testing.assert_allclose(family.counts_of(table), plain, atol=1e-12)
        np.testing.assert_array_equal(sums(list(family.members), table), plain)
        assert table.dtype.kind == family.counts_of(table).dtype.kind
    held = rng.random(family.n) < 0.5
    assert family.counts_of(held).tolist() == [int(held[m].sum()) for m in family.members]


# Intervals


def runs(order: list[int], most: int) -> list[Part]:
    found = []
    for cuts in itertools.product([False, True], repeat=len(order) - 1):
        ends = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(order)]
        if max(b - a for a, b in itertools.pairwise(ends)) <= most:
            found.append(frozenset(frozenset(order[a:b]) for a, b in itertools.pairwise(ends)))
    return found


def test_intervals_equal_enumeration() -> None:
    rng = np.random.default_rng(1)
    feasible = 0
    for _ in range(400):
        n = int(rng.integers(1, 9))
        most = int(rng.integers(1, n + 1))
        order = rng.permutation(n) if rng.random() < 0.5 else np.arange(n)
        family = intervals(n, most, order)
        parts = runs(order.tolist(), most)
        costs = prices(rng, len(family.members))
        for groups in (None, int(rng.integers(1, n + 2))):
            feasible += agree(family, parts, costs, groups)
    assert feasible > 300


def test_intervals_by_stage_equal_enumeration() -> None:
    rng = np.random.default_rng(2)
    feasible = 0
    for _ in range(300):
        n, groups = int(rng.integers(1, 8)), int(rng.integers(1, 5))
        family = intervals(n, int(rng.integers(1, n + 1)))
        costs = np.stack([prices(rng, len(family.members)) for _ in range(groups)])
        best = math.inf
        for inner in itertools.combinations(range(1, n), groups - 1):
            spans = list(itertools.pairwise([0, *inner, n]))
            if all(b - a <= family.most for a, b in spans):
                best = min(best, sum(costs[s, family.candidate(a, b)] for s, (a, b) in enumerate(spans)))
        found = family.best_by_stage(costs)
        assert (found is None) == (best == math.inf)
        if found is not None:
            feasible += 1
            assert found[0] == pytest.approx(best, abs=1e-12)
            assert sum(costs[s, c] for s, c in enumerate(found[1])) == pytest.approx(best, abs=1e-12)
    assert feasible > 60


@pytest.mark.parametrize(("n", "most"), [(1, None), (5, None), (5, 1), (6, 3), (6, 99)])
def test_interval_candidates(n: int, most: int | None) -> None:
    family = intervals(n, most)
    counted(family, np.random.default_rng(n))
    for place, held in enumerate(family.members):
        assert family.candidate(int(held[0]), int(held[-1]) + 1) == place
    assert [m.tolist() for m in family.members[1:3]] == [m.tolist() for m in list(family.members)[1:3]]


def test_many_intervals_are_light_and_quick() -> None:
    family = intervals(300)
    assert len(family.members) == 45_150
    held = family.members.starts.nbytes + family.members.ends.nbytes + family.members.order.nbytes
    assert held < 1_000_000
    costs = np.random.default_rng(0).random(45_150)
    start = time.perf_counter()
    assert family.best(costs) is not None and family.best(costs, 20) is not None
    assert time.perf_counter() - start < 2


def test_bad_intervals_are_refused() -> None:
    for bad in (
        lambda: intervals(0),
        lambda: intervals(3, 0),
        lambda: intervals(3, None, np.array([0, 0, 1])),
    ):
        with pytest.raises(SpecificationError):
            bad()
    family = intervals(3)
    for costs in (np.zeros(5), np.full(6, math.nan), np.full(6, -math.inf)):
        with pytest.raises(SpecificationError, match="costs"):
            family.best(costs)
    for groups in (0, -1, True, 1.5):
        with pytest.raises(SpecificationError, match="groups"):
            family.best(np.zeros(6), groups)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match="candidate"):
        family.candidate(2, 2)


# Trees


def hierarchy(rng: np.random.Generator, n: int) -> dict[str, str | None]:
    """A random forest over values v0 … v(n − 1), some chains of single children among it."""
    parents: dict[str, str | None] = {}
    layer, made = [f"v{i}" for i in range(n)], 0
    while len(layer) > 1 and rng.random() < 0.85:
        above = [f"g{made + i}" for i in range(max(1, int(rng.integers(1, len(layer) + 1))))]
        made += len(above)
        chosen = rng.integers(0, len(above), len(layer))
        rises = rng.random(len(layer)) < 0.9
        parents |= {node: above[c] for node, c, up in zip(layer, chosen, rises, strict=True) if up}
        layer = sorted({above[c] for c, up in zip(chosen, rises, strict=True) if up}) + [
            node for node, up in zip(layer, rises, strict=True) if not up
        ]
    return parents


def cuts(n: int, parents: dict[str, str | None]) -> list[Part]:
    """Every partition of the values into sets of values under one node (or all), by search over those sets."""
    under: dict[str, set[int]] = {"*": set(range(n))}
    for i in range(n):
        node: str | None = f"v{i}"
        while node is not None:
            under.setdefault(node, set()).add(i)
            node = parents.get(node)
    sets = {frozenset(s) for s in under.values()}

    def fill(left: frozenset[int]) -> Iterator[list[frozenset[int]]]:
        if not left:
            yield []
            return
        for held in sets:
            if min(left) in held and held <= left:
                for rest in fill(left - held):
                    yield [held, *rest]

    return [frozenset(part) for part in fill(frozenset(range(n)))]


def test_tree_cuts_equal_enumeration() -> None:
    rng = np.random.default_rng(3)
    feasible, deep = 0, 0
    for _ in range(400):
        n = int(rng.integers(1, 9))
        parents = hierarchy(rng, n)
        family = tree_cuts([f"v{i}" for i in range(n)], parents)
        parts = cuts(n, parents)
        costs = prices(rng, len(family.members))
        deep += int(family.depth.max()) >= 2
        for groups in (None, int(rng.integers(1, n + 2))):
            feasible += agree(family, parts, costs, groups)
    assert feasible > 300 and deep > 100
    counted(family, rng)


def test_a_large_tree_with_many_groups() -> None:
    names = [f"{a}{b}{c}" for a in "abcdefgh" for b in "abcdefgh" for c in "abcdefgh"]
    parents: dict[str, str | None] = {name: name[:2] for name in names} | {
        name[:2]: name[:1] for name in names
    }
    family = tree_cuts(names, parents)
    assert len(family.labels) == 1 + 8 + 64 + 512 and family.labels[0] == "*"
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    costs = rng.random(len(family.labels))
    assert family.best(costs, 100) is None  # every split of a node adds 7 groups
    found = family.best(costs, 99)
    assert found is not None and len(found[1]) == 99
    assert time.perf_counter() - start < 2


def test_single_children_give_way_to_the_more_precise_name() -> None:
    family = tree_cuts(["a", "b"], {"a": "only a", "only a": "all", "b": "all", "all": None})
    assert family.labels == ("all", "a", "b")
    assert tree_cuts(["a"], {"a": "above"}).labels == ("a",)


@pytest.mark.parametrize(
    ("values", "parents", "said"),
    [
        (["a", "b"], {"a": "x", "x": "y", "y": "x"}, "circle"),
        (["a", "b"], {"a": "a"}, "circle"),
        (["a", "b"], {"a": "b"}, "'b' is a value"),
        (["b", "a"], {"a": "b"}, "'b' is a value"),
        (["a", "a"], {}, "once"),
        (["a", "b"], {"a": "*"}, r"'\*' names"),
        ([], {}, "at least one"),
    ],
)
def test_bad_hierarchies_are_refused(values: list[str], parents: dict[str, str], said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        tree_cuts(values, parents)


# Rectangles


def guillotine(codes: np.ndarray) -> set[Part]:
    """Every partition of a grid by cuts from side to side."""
    held = frozenset(codes[codes >= 0].tolist())
    if not held:
        return {frozenset()}
    found = {frozenset([held])}
    for axis in (0, 1):
        for at in range(1, codes.shape[axis]):
            first, second = np.split(codes, [at], axis)
            found |= {a | b for a in guillotine(first) for b in guillotine(second)}
    return found


def test_numbers_of_guillotine_partitions() -> None:
    # 322 partitions of 3 × 3 into rectangles (A182275), of which the two pinwheels need other cuts.
    assert len(guillotine(np.arange(4).reshape(2, 2))) == 8
    assert len(guillotine(np.arange(9).reshape(3, 3))) == 320


def test_rectangles_equal_enumeration() -> None:
    rng = np.random.default_rng(4)
    feasible = 0
    for shape in [(1, 1), (1, 4), (2, 2), (2, 3), (3, 2), (3, 3), (2, 4)]:
        for _ in range(6):
            present = rng.random(shape) < rng.choice([0.5, 0.8, 1.0])
            if not present.any():
                continue
            family = rectangles(shape, present)
            parts = list(guillotine(family.codes))
            counted(family, rng)
            for _ in range(10):
                costs = prices(rng, len(family.members))
                for groups in (None, int(rng.integers(1, family.n + 2))):
                    feasible += agree(family, parts, costs, groups)
    assert feasible > 300


def test_a_pinwheel_is_no_guillotine_partition() -> None:
    family = rectangles((3, 3))
    wheel = [{0, 1}, {2, 5}, {7, 8}, {3, 6}, {4}]
    costs = np.array([0.0 if set(held.tolist()) in wheel else 1.0 for held in family.members])
    found = family.best(costs)
    assert found is not None and found[0] == 1.0  # the whole map, and not the pinwheel at 0


def test_a_map_of_30_by_30_cells() -> None:
    rng = np.random.default_rng(5)
    start = time.perf_counter()
    family = rectangles((30, 30), rng.random((30, 30)) < 0.4)
    area = family.counts_of(np.ones(family.n))
    found = family.best((area - 30) ** 2 + rng.random(len(area)))
    assert found is not None and area[found[1]].sum() == family.n
    assert time.perf_counter() - start < 20


def test_bad_maps_are_refused() -> None:
    for bad in (
        lambda: rectangles((0, 3)),
        lambda: rectangles((65, 2)),
        lambda: rectangles((2, 2), np.zeros((2, 2), dtype=bool)),
        lambda: rectangles((2, 2), np.ones((2, 3), dtype=bool)),
        lambda: curve_order((0, 3)),
        lambda: curve_order((2, 2), np.ones((2, 3), dtype=bool)),
        lambda: curve_order((2, 2), np.zeros((2, 2), dtype=bool)),
    ):
        with pytest.raises(SpecificationError):
            bad()


# Orders


def test_the_curve_steps_to_neighbours_on_grids_of_any_shape() -> None:
    for shape in itertools.product(range(1, 14), repeat=2):
        order = curve_order(shape)
        assert sorted(order.tolist()) == list(range(shape[0] * shape[1]))
        rows, columns = np.divmod(order, shape[1])
        down, across = np.abs(np.diff(rows)), np.abs(np.diff(columns))
        assert (np.maximum(down, across) == 1).all()
        corner = max(shape) % 2 == 1 and min(shape) % 2 == 0
        assert ((down + across) > 1).sum() <= corner


def test_the_curve_is_hilberts_on_a_square_of_four() -> None:
    # Quarters are filled one after the other, and quarters of neighbours touch.
    rows, columns = np.divmod(curve_order((4, 4)), 4)
    quarters = (rows // 2 * 2 + columns // 2).reshape(4, 4)
    assert (quarters == quarters[:, :1]).all()


def test_the_curve_leaves_out_absent_cells() -> None:
    rng = np.random.default_rng(6)
    present = rng.random((5, 7)) < 0.5
    full = curve_order((5, 7))
    codes = np.where(present, np.cumsum(present).reshape(5, 7) - 1, -1).ravel()
    assert curve_order((5, 7), present).tolist() == [codes[c] for c in full if codes[c] >= 0]


def test_correspondence_order_finds_a_hidden_gradient() -> None:
    at = np.linspace(0, 1, 12)
    laws = np.exp(-(((at[:, None] - np.linspace(0, 1, 5)[None]) / 0.3) ** 2))
    rng = np.random.default_rng(7)
    mixed = rng.permutation(12)
    order = mixed[correspondence_order(laws[mixed] * rng.integers(10, 50, 12)[:, None])]
    assert order.tolist() in (list(range(12)), list(range(11, -1, -1)))


def test_correspondence_order_without_an_axis_keeps_the_codes() -> None:
    assert correspondence_order(np.ones((4, 3))).tolist() == [0, 1, 2, 3]
    assert correspondence_order(np.array([[1.0], [0.0], [3.0]])).tolist() == [0, 2, 1]
    for bad in (np.zeros((2, 2)), np.array([[1.0, -1.0]]), np.ones(3)):
        with pytest.raises(SpecificationError):
            correspondence_order(bad)
