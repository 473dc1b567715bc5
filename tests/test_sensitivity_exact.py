"""Small cases of every step of a sensitivity, each with its exact value: what one wrong sign or number would change."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tetraodon as td
from tetraodon.axes import Axis
from tetraodon.errors import PolicyError, Unsupported
from tetraodon.lattice import Grid, Lattice
from tetraodon.sensitivity import lattices, layers, persons, query_layers, rows, rule_r, stack, stacked
from tetraodon.sensitivity.arithmetic import root_sum
from tetraodon.sensitivity.cycles import heaviest_cycles
from tetraodon.sensitivity.gram import exact_gram
from tetraodon.sensitivity.joint import Joint
from tetraodon.sensitivity.kinds import Kinds, kinds_of
from tetraodon.sensitivity.ratios import INFINITE, Listed, Ratios
from tetraodon.sensitivity.stack import Term
from tetraodon.workload import resolve

# ---------- rule_r: more cells than can be gone through in pairs ----------

AGES, KINDS = 100, "abcd"
PLACE = {"age": td.Integer(0, AGES - 1), "kind": td.Categorical(list(KINDS))}


def largest_inside(joined: Any, label: Any) -> int:
    """By enumeration, the largest move of the ages' cumulative counts, one for every kind, along an edge inside a class."""
    age, kind = (v.ravel() for v in np.meshgrid(np.arange(AGES), np.arange(len(KINDS)), indexing="ij"))
    cumulative = (age[None, :] <= np.arange(AGES)[:, None]).astype(np.int64)
    matrix = np.concatenate([cumulative * (kind == k) for k in range(len(KINDS))])
    best = 0
    for x in range(len(age)):
        near = [y for y in range(x) if joined(age[x], kind[x], age[y], kind[y])]
        inside = [y for y in near if label(age[x], kind[x]) == label(age[y], kind[y])]
        if inside:
            best = max(best, int(np.abs(matrix[:, inside] - matrix[:, [x]]).sum(axis=0).max()))
    return best


def steps(age: int, other: int) -> bool:
    return abs(int(age) - int(other)) <= 3


CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    "kinds move inside the classes": (
        td.AttributeWise(age=td.Within(3), kind=td.Partition(by=dict(zip(KINDS, "ssnn", strict=True)))),
        td.CountConstraint({"kind": ["a", "b"]}),
        lambda a, k, b, j: (k == j and steps(a, b)) or (a == b and k // 2 == j // 2),
        lambda a, k: k // 2,
    ),
    "no move of a kind stays": (
        td.AttributeWise(age=td.Within(3), kind=td.Full()),
        td.MarginalConstraint("kind"),
        lambda a, k, b, j: (k == j and steps(a, b)) or a == b,
        lambda a, k: k,
    ),
    "one move of a kind stays": (
        td.AttributeWise(age=td.Within(3), kind=td.Edges([("a", "c"), ("b", "c")])),
        td.CountConstraint({"kind": ["a"]}),
        lambda a, k, b, j: (k == j and steps(a, b)) or (a == b and 2 in (k, j) and min(k, j) < 2 and k != j),
        lambda a, k: int(k == 0),
    ),
    "ages move inside their ranges": (
        td.AttributeWise(age=td.Full()),
        td.CountConstraint({"age": (0, 29)}),
        lambda a, k, b, j: k == j,
        lambda a, k: int(a < 30),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_record_alone_moves_along_an_edge_inside_its_class(case: str) -> None:
    secrets, known, joined, label = CASES[case]
    policy = td.Policy(td.Domain(**PLACE), secrets, [known])
    found = policy.sensitivity(td.CDF("age", by="kind"), records=1)
    assert found.value == largest_inside(joined, label)


@pytest.mark.parametrize("power", [1, 2])
def test_many_cells_of_rows_over_several_attributes_move_at_most_as_far_as_their_bound(
    power: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    factor = np.array([[7, -7, 3], [2, 5, 0]])
    layer, cells = Joint((factor, np.array([[3, -3]])), power=power), np.arange(6)
    whole = np.kron(factor, [[3, -3]])
    moves = [int((np.abs(whole[:, a] - whole[:, b]) ** power).sum()) for a in cells for b in cells]
    norms = (np.abs(whole) ** power).sum(axis=0)
    assert rule_r._spread_joint(layer, cells, norms) == max(moves)
    assert rule_r._spread_joint(layer, cells[3:4], norms) == 0
    assert rule_r._spread_joint(layer, cells[:2], norms) == moves[1] > 0
    resolved = resolve(td.Histogram("x"), td.Domain(x=td.Integer(0, 5)))
    assert persons._largest_norm(Term(resolved, (layer,))) == norms.max()
    monkeypatch.setattr(rule_r, "PAIRWISE", 5)
    assert rule_r._spread_joint(layer, cells, norms) == int(norms.max()) * 2**power >= max(moves)


@pytest.mark.parametrize(("count", "rule", "value"), [(15, rule_r.SHARP, 0), (16, rule_r.RULE, 4)])
def test_cycles_are_gone_through_up_to_fifteen_classes(count: int, rule: str, value: int) -> None:
    """Two records that change places between the classes 0 and 1 do not show; the closed form takes any two classes."""
    domain = td.Domain(place=td.Integer(0, count - 1), x=td.Integer(0, 1))
    policy = td.Policy(domain, td.AttributeWise(place=td.Edges([(0, 1)])), [td.MarginalConstraint("place")])
    found = policy.sensitivity(td.Histogram("x", where={"place": [5, 6]}), records=2)
    assert (found.value, found.rule) == (value, rule)


def test_the_heaviest_cycle_of_whole_numbers_is_a_whole_number() -> None:
    domain = td.Domain(place=td.Integer(0, 6), x=td.Integer(0, 1))
    policy = td.Policy(domain, td.AttributeWise(place=td.Edges([(0, 1)])), [td.MarginalConstraint("place")])
    found = policy.sensitivity(td.Linear([[0, 1001]], "x", where={"place": [1, 5]}), records=2)
    assert (found.value, found.rule) == (1001, rule_r.SHARP)


def test_the_plain_rule_is_named_where_cycles_say_no_less() -> None:
    domain = td.Domain(place=td.Integer(0, 2), x=td.Integer(0, 1))
    policy = td.Policy(domain, td.Full(), [td.MarginalConstraint("place")])
    found = policy.sensitivity(td.Histogram("x", by="place"))
    assert (found.value, found.rule) == (6, rule_r.RULE)


def test_roots_are_rounded_up_by_what_is_said() -> None:
    told = root_sum([1, 4], 2)
    assert 9 < told <= (3 + Fraction(2, 1 << 44)) ** 2


def test_rows_are_refused_from_the_limit_on(monkeypatch: pytest.MonkeyPatch) -> None:
    term = Term(resolve(td.CDF("x"), td.Domain(x=td.Integer(0, 4))), (rows.Prefixes(5, weight=3),))
    most = rows.ceiling(term.layers[0])
    monkeypatch.setattr(stack, "LARGEST", most + 1)
    stack.check_size([term])
    monkeypatch.setattr(stack, "LARGEST", most)
    with pytest.raises(Unsupported, match="too large to price exactly"):
        stack.check_size([term])


# ---------- rows along an interval ----------


def test_the_largest_value_of_a_window_is_that_of_looking_through_it() -> None:
    draws = np.random.default_rng(5)
    for size in range(1, 24):
        values = draws.integers(-4, 5, size)
        lefts, rights = np.divmod(np.arange(size * size), size)
        lefts, rights = np.minimum(lefts, rights), np.maximum(lefts, rights)
        at = rows._window_maxima(values, lefts, rights)
        assert ((lefts <= at) & (at <= rights)).all()
        largest = [values[a : b + 1].max() for a, b in zip(lefts, rights, strict=True)]
        assert values[at].tolist() == largest


def test_trees_are_priced_without_going_through_the_edges() -> None:
    draws = np.random.default_rng(6)
    for _ in range(60):
        base = int(draws.integers(3, 14))
        coarse = np.array([0, *sorted(draws.choice(np.arange(1, base), int(draws.integers(0, base)), False))])
        layers: tuple[rows.Layer, ...] = (
            rows.Blocks(base, coarse, np.append(coarse[1:], base), weight=int(draws.integers(1, 5))),
            rows.Blocks(base, weight=int(draws.integers(1, 5))),
            rows.Prefixes(base, weight=int(draws.integers(1, 3))),
        )
        axis = Axis(base, window=int(draws.integers(1, base)))
        found = rows._nested(layers, axis)
        edges = [(x, y) for y in range(base) for x in range(axis.first[y], y)]
        x, y = np.array(edges).T
        assert found is not None
        assert found[0] == rows.difference(layers, x, y).max()


def test_without_edges_nothing_moves() -> None:
    layers = (rows.Prefixes(3),)
    assert rows._enumerate(layers, Axis(3, window=0)) == (0, (0, 0))


def test_joined_cells_are_found_behind_two_joined_positions() -> None:
    draws = np.random.default_rng(7)
    for _ in range(150):
        base, groups = int(draws.integers(2, 10)), int(draws.integers(2, 5))
        axis = Axis(base, window=int(draws.integers(1, base)))
        labels = draws.integers(0, groups, base)
        for a, b in ((a, b) for a, b in axis.all_edges().tolist() if labels[a] != labels[b]):
            for x, y in ((a, b), (b, a)):
                found = stack._cells_of(axis, labels, (int(labels[x]), int(labels[y])))
                assert axis.joined(*np.array(found)) and labels[list(found)].tolist() == [
                    labels[x],
                    labels[y],
                ]
    labels = np.array([0, 1, 0, 0, 1, 2, 0, 0, 1])  # the cells at 1 and 8 are not joined to that at 5
    assert stack._cells_of(Axis(9, window=1), labels, (2, 1)) == (5, 4)


def test_two_joined_cells_that_move_most_are_named() -> None:
    domain = td.Domain(x=td.Integer(0, 4), place=td.Categorical(["a", "b"]))
    queries = td.CDF("x", by="place"), td.CDF("x", by="place", where={"place": ["b"]})
    for query, secrets in itertools.product(
        queries,
        (
            td.Within(2, on="x"),
            td.Partition(by=["n", "n"], on="place"),
            td.AttributeWise(x=td.Within(1), place=td.Full()),
        ),
    ):
        resolved = resolve(query, domain)
        policy = td.Policy(domain, secrets)
        term = Term(resolved, query_layers(resolved))
        found = stacked([term], policy.neighbourhood)
        assert found.cells is not None and found.domain is not None
        x, y = (np.array([cell]) for cell in found.cells)
        assert policy.graph.project(found.domain.names).joined(x, y).all()
        assert term.move(x, y, found.domain).tolist() == [found.value]


def test_one_row_of_squares_on_a_map_is_priced_without_going_through_the_edges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = td.Point("x", "y", box=((0, 6), (0, 5)), cell=1, metric="planar")
    axis = td.Policy(td.Domain(place=place), td.Within(2, metric=td.L1())).graph.axis("place")
    assert isinstance(axis, Lattice)
    values = np.random.default_rng(8).integers(-9, 9, (1, 30))
    layers = (rows.Matrix(values, weight=3, power=2),)
    true = rows._enumerate(layers, axis)[0]
    monkeypatch.setattr(lattices, "_enumerated", None)
    assert lattices.largest_on_map(layers, axis)[0] == true > 0


# ---------- products of many large numbers ----------


def test_sums_of_many_squares_are_exact_beyond_what_floats_hold() -> None:
    matrix = np.full((9, 1), 2**25 + 1)
    assert exact_gram(matrix).tolist() == [[9 * (2**25 + 1) ** 2]]


# ---------- what channels observe ----------


def test_a_record_that_a_channel_does_not_see_is_told_apart_from_one_that_it_does() -> None:
    pair = Ratios((2,), Listed(np.array([[0, 7], [7, 0]])))
    told = pair.difference(np.array([[0], [1], [2]]), np.array([[0, 1, 2]])).tolist()
    assert told == [[0, 7, INFINITE], [7, 0, INFINITE], [INFINITE, INFINITE, 0]]


def test_an_answer_that_loses_much_is_no_channel_that_tells_all() -> None:
    resolved = resolve(td.Histogram("x"), td.Domain(x=td.Integer(0, 1)))
    policy = td.Policy(resolved.domain, td.Full())
    channel = Term(resolved, (Ratios((2,), Listed(np.array([[0, 7], [7, 0]]))),), Fraction(1, 2**60), True)
    answer = Term(resolved, query_layers(resolved))
    assert stacked([channel, answer], policy.neighbourhood).value == 2 + Fraction(7, 2**60)
    told = Ratios((2,), Listed(np.array([[0, INFINITE], [INFINITE, 0]])))
    for terms in ([Term(resolved, (told,), Fraction(1, 2**60), True), answer], [Term(resolved, (told,))]):
        with pytest.raises(PolicyError, match="tell values apart for certain"):
            stacked(terms, policy.neighbourhood)


@pytest.mark.parametrize("secrets", [td.Full(), td.Partition({"x": 2})], ids=["full", "parts"])
def test_rows_over_several_attributes_are_priced_where_edges_move_several(secrets: Any) -> None:
    domain = td.Domain(x=td.Integer(0, 3), y=td.Integer(0, 2))
    resolved = resolve(td.Histogram("x", "y"), domain)
    draws = np.random.default_rng(9)
    factors = tuple(draws.integers(-3, 4, (2, size)) for size in (3, 4))  # the group y, then the axis x
    term, whole = Term(resolved, (Joint(factors),)), np.kron(*factors)
    policy = td.Policy(domain, secrets)
    group, position = term.place(np.arange(12), domain)
    whole = whole[:, group * 4 + position]
    a, b = (v.ravel() for v in np.meshgrid(np.arange(12), np.arange(12)))
    joined = policy.graph.joined(a, b)
    true = np.abs(whole[:, a[joined]] - whole[:, b[joined]]).sum(axis=0).max()
    assert stacked([term], policy.neighbourhood).value == true


# ---------- rows on tables ----------


def test_ranges_of_a_table_are_its_sums() -> None:
    table = np.array([[3, 1, 4, 1], [5, 9, 2, 6]])
    few = rows.Ranges(4, np.array([1, 0]), np.array([3, 4]))
    assert layers._applied(few, table).tolist() == [[5, 9], [11, 22]]
    every = [[int(row[a:b].sum()) for a in range(4) for b in range(a + 1, 5)] for row in table]
    assert layers._applied(rows.Ranges(4), table).tolist() == every


# ---------- kinds of cells ----------


def kinds_at(label: list[int], places: list[int]) -> Kinds:
    nothing: Any = None
    cells = np.arange(len(label))
    return Kinds(nothing, nothing, cells, cells, np.array(label), np.array(places)[:, None], positions=2)


def test_classes_are_apart_where_no_group_holds_several_kinds_of_two() -> None:
    assert kinds_at([0, 0, 1, 1], [0, 1, 2, 3]).are_apart
    assert not kinds_at([0, 0, 1, 1], [0, 2, 1, 3]).are_apart
    assert kinds_at([0, 0, 1, 1, 2], [0, 1, 2, 3, 0]).are_apart  # a class of one kind moves nothing
    assert kinds_at([0, 0, 1, 1], [0, 1, -1, 2]).are_apart  # nowhere is no group


def test_no_release_stands_nowhere() -> None:
    domain = td.Domain(x=td.Integer(0, 3))
    policy = td.Policy(domain, td.Full(), [td.CountConstraint({"x": [0, 1]})])
    assert kinds_of((), policy.neighbourhood).places.shape == (2, 0)


def test_edges_on_a_map_that_stay_in_their_class_cross_nothing() -> None:
    place = td.Point("x", "y", box=((0, 4), (0, 2)), cell=1, metric="planar")
    domain = td.Domain(place=place, seen=td.Categorical(["no", "yes"]))
    west = [td.CountConstraint({"place": [(x, y) for x in (0.5, 1.5) for y in (0.5, 1.5)]})]
    halves = td.Policy(domain, td.AttributeWise(place=td.Partition(2)), west)
    assert isinstance(halves.graph.axis("place"), Grid) and halves.neighbourhood.is_plain
    assert not td.Policy(domain, td.AttributeWise(place=td.Within(1)), west).neighbourhood.is_plain


def test_edges_along_an_order_that_stay_in_their_class_cross_nothing() -> None:
    domain = td.Domain(x=td.Integer(0, 5))
    secrets = td.AttributeWise(x=td.Partition(3))
    for low, high, plain in ((0, 1, True), (2, 3, True), (0, 3, True), (1, 2, False), (0, 2, False)):
        policy = td.Policy(domain, secrets, [td.CountConstraint({"x": (low, high)})])
        assert policy.neighbourhood.is_plain == plain


def test_graphs_of_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    axis = Axis(4, pairs=np.array([[0, 2], [1, 3]]))
    assert lattices.largest_partner(axis, np.array([1, 2, 3, 0])).tolist() == [3, 2, 3, 2]
    monkeypatch.setattr(rows, "MAX_WORK", 1)
    with pytest.raises(Unsupported, match="too many edges"):
        lattices.largest_partner(axis, np.array([1, 2, 3, 0]))


def test_places_of_one_group_lie_as_far_apart_as_their_rows() -> None:
    resolved = resolve(td.CDF("x"), td.Domain(x=td.Integer(0, 5)))
    term = Term(resolved, query_layers(resolved))
    assert rule_r._spread(term, np.array([1, 2]), rule_r._norms(term)) == 1
    assert rule_r._spread(term, np.array([-1, 1, 2]), rule_r._norms(term)) == 5


# ---------- records that come and go ----------


def test_a_record_that_comes_is_priced_for_several_releases_together() -> None:
    """Each of two rows weighs another value: one record adds 3 to one of them, never to both."""
    domain = td.Domain(x=td.Integer(0, 2))
    policy = td.Policy(domain, td.Within(1), presence="secret")
    terms = [
        Term(resolved, query_layers(resolved))
        for resolved in (resolve(td.Linear([row], "x"), domain) for row in ([3, 0, 0], [0, 0, 3]))
    ]
    found = stacked(terms, policy.neighbourhood)
    assert found.value == 3
    assert found.by_secret == {"x": 3, "presence": 3}


def test_a_record_that_comes_counts_where_no_edge_shows() -> None:
    domain = td.Domain(x=td.Integer(0, 2))
    resolved = resolve(td.Linear([[2, 2, 2]], "x"), domain)
    policy = td.Policy(domain, td.Full(), presence="secret")
    found = stacked([Term(resolved, query_layers(resolved))], policy.neighbourhood)
    assert (found.value, found.by_secret) == (2, {"any": 2})


def test_a_record_that_comes_and_one_that_changes_are_one_secret_where_edges_move_several_attributes() -> (
    None
):
    domain = td.Domain(x=td.Integer(0, 2))
    for row, most in ([3, 0, -1], 4), ([3, 1, 2], 3):
        resolved = resolve(td.Linear([row], "x"), domain)
        policy = td.Policy(domain, td.Full(), presence="secret")
        found = stacked([Term(resolved, query_layers(resolved))], policy.neighbourhood)
        assert (found.value, found.by_secret) == (most, {"any": most})


# ---------- cycles ----------


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_heaviest_cycles_are_those_of_all_orders(count: int) -> None:
    draws = np.random.default_rng(count)
    for _ in range(6):
        free = draws.integers(0, 20, (count, count)).astype(float)
        bound = np.where(draws.random((count, count)) < 0.5, free - draws.integers(0, 9), -np.inf)
        np.fill_diagonal(bound, -np.inf)
        best = np.full(1 << count, -np.inf)
        for length in range(2, count + 1):
            for order in itertools.permutations(range(count), length):
                arcs = list(zip(order, order[1:] + order[:1], strict=True))
                whole = sum(free[arc] for arc in arcs)
                told = max(whole - free[arc] + bound[arc] for arc in arcs)
                at = sum(1 << c for c in order)
                best[at] = max(best[at], told)
        assert heaviest_cycles(free, bound).tolist() == best.tolist()


# ---------- the reading along edges ----------


def test_an_edge_that_does_not_show_still_closes_a_cycle() -> None:
    """Four records go round four known counts, each along its edge: 1 to 2, 3 to 4, 5 to 6 and, unseen, 7 to 0."""
    known = [td.CountConstraint({"x": (low, low + 1)}) for low in (2, 4, 6)]
    edges = td.Edges([(1, 2), (3, 4), (5, 6), (7, 0)], on="x")
    query = td.Linear(np.array([[0, 0, 1, 0, 1, 0, 1, 0]]), "x")
    policy = td.Policy(td.Domain(x=td.Integer(0, 7)), edges, known)
    assert policy.sensitivity(query, reading="edges").value == 3
    assert policy.sensitivity(query, reading="edges", records=3).value == 2
