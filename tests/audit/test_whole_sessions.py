"""The same draws through whole sessions: table, charge, noise, published answers. What is published shows no more than what was noised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
from audit.judge import Ran, judged
from audit.mutants import twin_noise as broken

import tetraodon as td
from tetraodon.channels.table import Table as Law
from tetraodon.loss import Loss
from tetraodon.requests import Request, one_loss, price_all

CLAIM: Loss = one_loss(1, None, "test")
DOMAIN = td.Domain(v=td.Integer(0, 4))
POLICY = td.Policy(DOMAIN, td.Within(1))
ROWS = 8_000
RELEASES = 240


def _published(values: list[int], draws: int) -> Any:
    """Published cumulative counts of as many sessions over this table."""
    requests = [Request(td.CDF("v"), CLAIM, "counts")]
    priced, table = price_all(POLICY, requests), td.Table({"v": values}, DOMAIN)
    found = []
    for _ in range(draws):
        [made] = td.Session(table, POLICY, epsilon=1).release_all(requests, priced)
        assert isinstance(made, td.Release)
        found.append(made.values.ravel())
    return np.stack(found)


def _rows(value: int, draws: int) -> Any:
    """Released rows of one session over a table of equal records."""
    session = td.Session(td.Table({"v": [value] * draws}, DOMAIN), POLICY, epsilon=1)
    made = session.release(td.Rows("v", channel={"kind": "tight-constraints"}), epsilon=1)
    return np.array(made.to_arrow()["v"].to_pylist(), dtype=np.float64)[:, None]


def _ran(outputs: Callable[[Any, int], Any]) -> Ran:
    return Ran(CLAIM, lambda a, b: None, lambda a, b, draws: (outputs(a, draws), outputs(b, draws)))


@contextmanager
def _some_as_they_are() -> Iterator[None]:
    """One row in three leaves unchanged, wherever it is drawn."""
    real = Law.draw

    def draw(law: Any, cells: Any) -> Any:
        return np.where(np.arange(len(cells)) % 3 == 0, cells, real(law, cells))

    with mock.patch.object(Law, "draw", draw):
        yield


def test_rows_of_whole_sessions_show_no_more_than_the_claim() -> None:
    for pair in ((0, 1), (3, 2)):
        found = judged(_ran(_rows), [pair], ROWS)
        assert found.caught is None and found.bound is not None and found.bound > 0.5


def test_broken_rows_of_whole_sessions_are_caught() -> None:
    with _some_as_they_are():
        assert judged(_ran(_rows), [(0, 1)], ROWS).caught == "draws"


@pytest.mark.slow
def test_published_answers_of_whole_sessions_show_no_more_than_the_claim() -> None:
    tables = ([0, 1, 1, 3], [1, 1, 1, 3])
    assert judged(_ran(_published), [tables], RELEASES).caught is None
    with broken.last_in_clear():  # of the cumulative counts up to 3, which nothing hides then
        assert judged(_ran(_published), [([0, 1, 3, 3], [0, 1, 3, 4])], RELEASES).caught == "draws"
