"""Offsets stand for the edges of large maps: what they say agrees with the edges themselves."""

from __future__ import annotations

from typing import Any

import pytest

import tetraodon as td
from tetraodon.binding import bind
from tetraodon.channels.bounds import edges_of

MAP = td.Domain(at=td.Point("x", "y", box=((0, 24), (0, 30)), cell=1, metric="planar", unit="km"))
CUT = [("0.5 0.5", "1.5 3.5"), ("10.5 4.5", "10.5 9.5")]


@pytest.mark.parametrize(
    "secrets",
    [td.Within(1), td.Within(3, metric=td.L1()), td.Partition(blocks=(12, 10)), td.Edges(CUT)],
    ids=["within", "l1", "blocks", "pairs"],
)
def test_the_loss_over_offsets_is_that_over_the_edges(secrets: Any) -> None:
    channel = td.channels.planar_geometric(MAP, 1, 2)
    graph = bind(secrets, MAP)
    assert MAP.size > 512  # offsets are used from there on
    told = float(channel.epsilon(graph))
    assert told == pytest.approx(float(channel.law.losses(*edges_of(graph)).max()), rel=1e-9)
    assert 0 < told < 3


def test_special_cells_that_no_edge_joins_change_nothing() -> None:
    missing = td.Domain(
        at=td.Point("x", "y", box=((0, 24), (0, 30)), cell=1, metric="planar", unit="km", missing="public")
    )
    one, two = (td.channels.planar_geometric(d, 1, 2).epsilon(td.Within(1)) for d in (MAP, missing))
    assert one == two
