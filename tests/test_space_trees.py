"""Cells as points, and trees of boxes over released counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tetraodon as td
from tetraodon.clustering.space import space
from tetraodon.clustering.trees import kd_tree, quadtree
from tetraodon.errors import SpecificationError, Unsupported


def covered(boxes, shape):
    hits = np.zeros(shape, dtype=int)
    for box in boxes:
        hits[tuple(slice(a, b) for a, b in zip(box.low, box.high, strict=True))] += 1
    return bool((hits == 1).all())


@pytest.mark.parametrize("shape", [(1,), (7,), (8, 5), (3, 4, 5)])
def test_boxes_cover_every_cell_once_and_keep_the_total(shape):
    counts = np.random.default_rng(0).normal(5, 6, shape)
    for boxes in (kd_tree(counts, 4), quadtree(counts, 3), quadtree(counts, 3, least=40)):
        assert covered(boxes, shape)
        assert sum(b.count for b in boxes) == pytest.approx(np.maximum(counts, 0).sum())
    assert len(kd_tree(counts, 0)) == 1 and len(kd_tree(counts, 64)) == counts.size


def test_kd_boxes_hold_about_equal_counts():
    counts = np.random.default_rng(1).integers(0, 20, (64, 64)).astype(float)
    boxes = kd_tree(counts, 4)
    assert len(boxes) == 16
    held = [b.count for b in boxes]
    assert max(held) / min(held) < 1.3


def test_a_quadtree_is_finer_where_counts_are():
    counts = np.zeros((16, 16))
    counts[0, 0] = 100
    sizes = {b.low: b.high[0] - b.low[0] for b in quadtree(counts, 4, least=1)}
    assert sizes[(0, 0)] == 1 and sizes[(8, 8)] == 8


def test_trees_over_releases():
    domain = td.Domain(a=td.Integer(0, 15), b=td.Integer(0, 3))
    rows = {"a": list(range(16)) * 40, "b": [0, 1, 2, 3] * 160}
    session = td.Session(td.Table(rows, domain), td.Policy(domain, td.AttributeWise()), epsilon=100)
    cells = session.release(td.Histogram("b", "a"), epsilon=40)
    assert covered(kd_tree(cells, 3), (16, 4)) and covered(quadtree(cells, 2), (16, 4))
    along = session.release(td.CDF("a"), epsilon=40)
    assert [b.low[0] for b in kd_tree(along, 2)] == [0, 4, 8, 12]
    with pytest.raises(SpecificationError, match="without by"):
        kd_tree(session.release(td.CDF("a", by="b"), epsilon=1), 1)


@pytest.mark.parametrize("told", [None, "text", [], [float("nan")], [[1, 2], [3]], 5.0])
def test_trees_need_finite_numbers(told):
    with pytest.raises(SpecificationError, match="tree: a release, or an array"):
        kd_tree(told, 1)


@pytest.mark.parametrize("depth", [-1, 65, 1.0, True])
def test_depths_are_small_whole_numbers(depth):
    with pytest.raises(SpecificationError, match=r"tree.depth"):
        quadtree([1.0], depth)


def test_least_is_a_number():
    with pytest.raises(SpecificationError, match=r"quadtree.least"):
        quadtree([1.0], 1, least="many")


def test_places_of_cells_in_units():
    domain = td.Domain(a=td.Integer(3, 11, step=4), b=td.Numeric("0.5", 2, cells=3), c=td.Integer(7, 7))
    room = space(domain)
    points, inside = room.places(np.arange(domain.size))
    assert inside.all() and room.shape == (3, 3, 1) and room.names == ("a", "b", "c")
    told = room.published(points)
    assert sorted(set(told[:, 0])) == [4.5, 8.5, 11.0]  # the last cell is shorter
    assert sorted(set(told[:, 1])) == [0.75, 1.25, 1.75]
    assert room.unit == Fraction(1, 2)


def test_special_cells_are_no_places():
    domain = td.Domain(a=td.Integer(0, 1, missing="secret"), b=td.Integer(0, 1))
    room = space(domain)
    points, inside = room.places(np.arange(domain.size))
    assert room.has_special and inside.tolist() == [True] * 4 + [False] * 2
    assert (points[~inside] == 0).all()


def test_only_numbers_and_places_have_distances():
    with pytest.raises(SpecificationError, match="sex is categorical"):
        space(td.Domain(sex=td.Categorical(["f", "m"])))
    with pytest.raises(Unsupported, match="2\\^28"):
        space(td.Domain(a=td.Integer(0, 2), b=td.Numeric(0, 1, cells=2**20), c=td.Integer(0, 2**10)))
    with pytest.raises(Unsupported, match="more than 2\\^20 cells"):
        space(td.Domain(a=td.Integer(0, 2**23)))
