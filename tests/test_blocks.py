"""Totals of the blocks that a policy discloses: which they are, that they go out exactly, and that finer answers agree with them."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from oracle import brute
from strategies import asked_policies, examples

import tetraodon as td
from tetraodon.errors import PolicyError
from tetraodon.loss import Loss
from tetraodon.mechanisms.blocks import disclosed_blocks
from tetraodon.mechanisms.project import EqualCells, projection
from tetraodon.mechanisms.select import candidates
from tetraodon.sensitivity import Term, stacked
from tetraodon.workload import resolve

GRID = td.Domain(lat=td.Integer(0, 5), lon=td.Integer(0, 5))
BLOCKS = td.Policy(GRID, td.Partition(blocks={"lat": 2, "lon": 3}))
ROWS = {"lat": [0, 0, 1, 2, 5, 4, 3, 3, 3], "lon": [0, 1, 1, 2, 5, 5, 4, 4, 0]}


def block_of(lat: Any, lon: Any) -> Any:
    return np.asarray(lat) // 3 * 3 + np.asarray(lon) // 2


@given(asked_policies())
@examples(600)
def test_blocks_hold_what_edges_join_and_their_totals_never_move(asked_policy: Any) -> None:
    """Against enumeration: records on an edge count in one block or in none, and the rows that observe the totals cost nothing."""
    policy, asked = asked_policy
    if asked.word in ("Sum", "Mean", "Linear"):
        return
    resolved = resolve(asked.query(), policy.domain)
    found = disclosed_blocks(resolved, policy.neighbourhood)
    event(f"blocks: {found is not None}")
    if found is None:
        return
    adjacent = brute.adjacency(policy.domain, policy.secrets)
    every = brute.tuples(policy.domain)
    whole = policy.domain.encode(np.array(every).T)
    cells = dict(zip(policy.domain.names, policy.domain.decode(whole), strict=True))
    group, position = resolved.place(resolved.domain.encode([cells[n] for n in resolved.domain.names]))
    block = np.where(group < 0, -1, found.labels[np.maximum(group, 0) * resolved.n_positions + position])
    for a, b in itertools.combinations(range(len(every)), 2):
        if adjacent[a][b]:
            assert block[a] == block[b]
    assert stacked([Term(resolved, (found.layer,))], policy.neighbourhood).value == 0
    table = np.arange(resolved.n_groups * resolved.n_positions).reshape(resolved.n_groups, -1)
    assert found.layer.applied(table.reshape(-1)).ravel().tolist() == found.totals(table).tolist()


@pytest.mark.parametrize("mechanism", ["identity", "auto"])
def test_finer_counts_add_up_to_the_disclosed_totals(mechanism: str) -> None:
    session = td.Session(td.Table(ROWS, GRID), BLOCKS, epsilon=10)
    made = session.release(td.Histogram("lat", "lon"), epsilon=1, mechanism=mechanism)
    shown = made.to_frame()
    found = shown.groupby(block_of(shown["lat"], shown["lon"]))["value"].sum()
    true = np.bincount(block_of(ROWS["lat"], ROWS["lon"]), minlength=6)
    assert np.allclose(found, true, atol=1e-4)
    assert made.disclosures() == [
        "the number of records in every one of the 6 blocks of lat, lon that the policy discloses"
    ]
    assert (shown["value"] >= 0).all()


def test_the_totals_alone_are_exact_cost_nothing_and_are_recorded() -> None:
    session = td.Session(td.Table(ROWS, GRID), BLOCKS, epsilon=1)
    made = session.release(td.Histogram("lat", "lon", bins={"lat": 3, "lon": 2}), epsilon="1/2")
    assert made.spent.is_zero and session.remaining.epsilon == 1
    assert made.values.tolist() == np.bincount(block_of(ROWS["lat"], ROWS["lon"]), minlength=6).tolist()
    assert session.remaining.outside == tuple(made.disclosures()) != ()


def test_the_stated_error_is_that_of_least_squares_with_the_totals() -> None:
    """Counts of one variance v in a block of k cells, whose sum is known, keep v·(1 − 1/k)."""
    resolved = resolve(td.Histogram("lat", "lon"), GRID)
    for strategy in candidates(resolved, BLOCKS.neighbourhood, Loss("epsilon", Fraction(1))):
        if strategy.mechanism.to_spec() == {"identity": {}}:
            v = strategy.noise_variance(strategy.draws[0][0])
            assert strategy.expected_error == pytest.approx(v * (1 - 1 / 6))
        dense = np.zeros((36, 36))
        spread = np.diff(np.diff(_covariance(strategy), axis=0), axis=1)
        for g in range(6):
            dense[g * 6 : g * 6 + 6, g * 6 : g * 6 + 6] = spread
        lon, lat = np.divmod(np.arange(36), 6)  # rows run along lat, group by group of lon
        labels = block_of(lat, lon)
        held = (np.arange(6)[:, None] == labels).astype(float)
        gain = dense @ held.T @ np.linalg.pinv(held @ dense @ held.T) @ held @ dense
        assert np.allclose(strategy.answer_variance().ravel(), np.diag(dense - gain), rtol=1e-6)


def _covariance(strategy: Any) -> np.ndarray:
    """Of the prefix sums of one group, without what blocks add."""
    ends = np.arange(7)
    low, high = np.minimum(ends[:, None], ends), np.maximum(ends[:, None], ends)
    apart = strategy.weights.range_variance(low.ravel(), high.ravel()).reshape(low.shape)
    variance = strategy.weights.prefix_variance
    return np.asarray(0.5 * (variance[:, None] + variance[None, :] - apart))


def test_a_policy_that_holds_the_blocks_secret_cannot_follow(tmp_path: Any) -> None:
    ledger = tmp_path / "a.ledger"
    table = td.Table(ROWS, GRID, name="t")
    td.Session(table, BLOCKS, epsilon=10, ledger=ledger).release(td.Histogram("lat", "lon"), epsilon=1)
    with pytest.raises(PolicyError, match="exactly in part"):
        td.Session(table, td.Policy(GRID, td.Full()), epsilon=10, ledger=ledger)
    finer = td.Policy(GRID, td.Partition(blocks={"lat": 6, "lon": 3}))
    assert td.Session(table, finer, epsilon=10, ledger=ledger).ledger.spent == 1


def test_no_block_is_disclosed_where_people_may_be_gone_or_a_filter_is_secret() -> None:
    hidden = td.Policy(GRID, BLOCKS.secrets, presence="secret")
    assert disclosed_blocks(resolve(td.Histogram("lat", "lon"), GRID), hidden.neighbourhood) is None
    domain = td.Domain(lat=td.Integer(0, 5), lon=td.Integer(0, 5), x=td.Integer(0, 3))
    policy = td.Policy(domain, td.Partition(blocks={"lat": 2, "lon": 3}))
    told = resolve(td.Histogram("lat", "lon", where={"x": (0, 1)}), domain)
    assert disclosed_blocks(told, policy.neighbourhood) is None
    through = td.Policy(domain, td.Partition(blocks={"lat": 2, "lon": 3, "x": 2}))
    assert disclosed_blocks(told, through.neighbourhood) is not None


def test_equal_cells_and_the_general_projection_say_the_same() -> None:
    resolved = resolve(td.Histogram("lat", "lon"), GRID)
    told = candidates(resolved, BLOCKS.neighbourhood, Loss("epsilon", Fraction(1)))
    [strategy] = [s for s in told if isinstance(s.projection, EqualCells)]
    quick = strategy.projection
    general = projection(quick.facts, resolved, strategy.weights)
    assert general is not None
    rng = np.random.default_rng(0)
    prefix = np.concatenate([np.zeros((6, 1)), rng.normal(size=(6, 6)).cumsum(axis=1)], axis=1)
    stated, matrix = np.arange(6.0), rng.integers(-2, 3, (4, 6)).astype(float)
    lows, highs = np.triu_indices(7, 1)
    for one, two in (
        (quick.applied(prefix, stated), general.applied(prefix, stated)),
        (quick.cells(), general.cells()),
        (quick.prefixes(), general.prefixes()),
        (quick.ranges(lows, highs), general.ranges(lows, highs)),
        (quick.rows_of(matrix), general.rows_of(matrix)),
        (quick.all_ranges(), general.all_ranges()),
    ):
        assert np.allclose(one, two)
