"""Channels by formula: what each realises, exactly; goldens; degenerate cases; what is refused and how."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp, hypot, inf, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.grids import apart, clamped, keeps, plane, whole
from scipy.stats import chi2

import tetraodon as td
from tetraodon.binding import bind
from tetraodon.channels import (
    exponential,
    planar_geometric,
    planar_laplace,
    randomised_response,
    tight_constraints,
)
from tetraodon.channels.bounds import bounds_of, edges_of
from tetraodon.channels.channel import Channel
from tetraodon.channels.geometry import Geometry
from tetraodon.channels.reach import hops, longest
from tetraodon.channels.shift import Shift
from tetraodon.channels.table import Table
from tetraodon.domain import Categorical, Domain, Integer, Numeric, Point
from tetraodon.errors import SpecificationError, TetraodonError, Unsupported
from tetraodon.metrics import L1, Discrete, Haversine
from tetraodon.secrets import AttributeWise, Edges, Full, Nothing, Partition, Secrets, Within

F = Fraction
Maker = Callable[..., Channel]
ALONG = [randomised_response, exponential, tight_constraints, planar_geometric, planar_laplace]
PER = [exponential, tight_constraints, planar_geometric, planar_laplace]


def exact_rows(channel: Channel) -> list[list[Fraction]]:
    """The channel as it is drawn from."""
    law = channel.law
    if isinstance(law, Shift):
        assert law.fixed == 0
        return clamped(law.exact())
    assert isinstance(law, Table)
    found = []
    for row in law.row_of.tolist():
        line = [F(0)] * law.n_outputs
        for column, value in zip(law.columns.tolist(), law.exact_row(row), strict=True):
            line[column] = value
        found.append(line)
    return found


# --- what each realises ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", PER)
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (1, 6), (5, 1), (2, 2), (2, 5), (3, 3), (4, 6)])
@pytest.mark.parametrize("epsilon", ["1/3", "2", "25"])
def test_no_pair_exceeds_epsilon_per_length(make: Maker, shape: tuple[int, int], epsilon: str) -> None:
    domain = plane(*shape)
    try:
        channel = make(domain, epsilon, "2 km")
    except Unsupported:
        assert make is tight_constraints and epsilon != "25"
        return
    distance, rate = apart(shape[1], F(1), F(1)), F(epsilon) / 2
    rows = exact_rows(channel)
    assert all(sum(row) == 1 for row in rows)
    assert keeps(whole(rows), lambda a, b: rate * distance(a, b))
    realised = channel.epsilon_per("2 km")
    assert realised <= F(epsilon)
    if make in (planar_geometric, tight_constraints) and shape != (1, 1):
        assert realised > F(epsilon) * F(999, 1000)


@pytest.mark.parametrize("make", PER)
def test_no_pair_exceeds_epsilon_on_long_cells(make: Maker) -> None:
    domain = Domain(at=Point("x", "y", box=((0, 4), (0, 5)), cell="1.3", metric="planar"))
    channel = make(domain, 3, 1)
    height, width = Geometry(domain).steps
    assert height != width
    distance = apart(channel.place.shape[1], height, width)
    assert keeps(whole(exact_rows(channel)), lambda a, b: 3 * distance(a, b))
    assert channel.epsilon_per(1) <= 3


SECRETS: list[Secrets] = [
    Full(),
    Within("1 km"),
    Within("2 km"),
    Within("1 km", metric=L1()),
    Partition(blocks={"at": (2, 3)}),
    Edges([((0.5, 0.5), (3.5, 4.5)), ((0.5, 0.5), (1.5, 0.5))], on="at"),
]


@pytest.mark.parametrize("make", ALONG)
@pytest.mark.parametrize(
    ("secrets", "shape"),
    [(s, (4, 6)) for s in SECRETS] + [(s, (2, 3)) for s in SECRETS[:4]] + [(s, (1, 1)) for s in SECRETS[:5]],
)
def test_no_edge_exceeds_epsilon(make: Maker, secrets: Secrets, shape: tuple[int, int]) -> None:
    domain = plane(*shape)
    try:
        channel = make(domain, "0.7", secrets=secrets)
    except Unsupported:
        assert make is tight_constraints
        return
    graph = bind(secrets, domain)
    joined = set(zip(*(v.tolist() for v in edges_of(graph)), strict=True))
    numbers = whole(exact_rows(channel))
    assert keeps(numbers, lambda a, b: F(7, 10) if (b, a) in joined or (a, b) in joined else None)
    realised = channel.epsilon(secrets)
    assert realised <= F(7, 10)
    if joined and make in (planar_geometric, planar_laplace, randomised_response):
        assert realised > 0.7 * 0.999


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(ALONG),
    st.fractions(F(1, 50), F(30), max_denominator=100),
    st.integers(1, 5),
    st.integers(1, 5),
    st.one_of(st.none(), st.fractions(F(1, 2), F(3), max_denominator=4)),
)
def test_no_edge_exceeds_epsilon_anywhere(
    make: Maker, epsilon: Fraction, r: int, c: int, theta: Fraction | None
) -> None:
    domain, secrets = plane(r, c), Full() if theta is None else Within(theta)
    try:
        channel = make(domain, epsilon, secrets=secrets)
    except Unsupported:
        assert make is tight_constraints
        return
    joined = set(zip(*(v.tolist() for v in edges_of(bind(secrets, domain))), strict=True))
    numbers = whole(exact_rows(channel))
    assert keeps(numbers, lambda a, b: epsilon if (b, a) in joined or (a, b) in joined else None)
    assert channel.epsilon(secrets) <= epsilon


@pytest.mark.slow
@pytest.mark.parametrize("make", [planar_geometric, planar_laplace])
def test_no_pair_exceeds_epsilon_up_to_40(make: Maker) -> None:
    for r in range(1, 41):
        for c in {1, 2, (r + 1) // 2, r, 40}:
            channel = make(plane(r, c), 1, "km")
            realised = channel.epsilon_per("km")
            assert realised <= 1
            assert r * c == 1 or realised > 0.999 or make is planar_laplace


@pytest.mark.slow
@pytest.mark.parametrize("make", [exponential, tight_constraints])
def test_tables_keep_epsilon_on_large_grids(make: Maker) -> None:
    """By the exact test of the table, all pairs."""
    for shape in ((10, 10), (20, 20), (13, 24), (30, 30), (40, 40)):
        domain = plane(*shape)
        channel = make(domain, 1, "km")
        assert isinstance(channel.law, Table)
        assert channel.law.keeps(bounds_of(domain, 1, epsilon_per="km"))
        assert make is exponential or channel.epsilon_per("km") > 0.999


@pytest.mark.parametrize("make", [exponential, tight_constraints])
def test_tables_keep_epsilon(make: Maker) -> None:
    domain = plane(8, 9)
    channel = make(domain, 1, "km")
    assert isinstance(channel.law, Table)
    assert channel.law.keeps(bounds_of(domain, 1, epsilon_per="km"))
    assert not channel.law.keeps(bounds_of(domain, "0.6", epsilon_per="km"))


# --- what they are --------------------------------------------------------------------------------------------------------

GOLDEN = {
    planar_geometric: {5: 1.301, 7: 1.474, 10: 1.605, 15: 1.705, 20: 1.754},
    exponential: {5: 1.85, 7: 2.32, 10: 2.78, 15: 3.18, 20: 3.37},
    tight_constraints: {5: 1.24586, 7: 1.42348, 10: 1.56229, 15: 1.67250, 20: 1.72826},
}


@pytest.mark.parametrize(
    ("make", "n", "loss"), [(m, n, v) for m, told in GOLDEN.items() for n, v in told.items()]
)
def test_expected_distance_of_an_even_prior(make: Maker, n: int, loss: float) -> None:
    """Unit cells, ε = 1."""
    tolerance = {planar_geometric: 6e-4, exponential: 6e-3, tight_constraints: 6e-6}[make]
    assert make(plane(n, n), 1, "km").distortion() == pytest.approx(loss, abs=tolerance)


def test_randomised_response_is_its_formula() -> None:
    domain = Domain(vote=Categorical(["a", "b", "c", "d"], other="else"))
    channel = randomised_response(domain, log(6))
    expected = np.full((5, 5), 1 / 10)
    np.fill_diagonal(expected, 6 / 10)
    np.testing.assert_allclose(channel.matrix, expected, rtol=1e-10)
    assert 1.7917594 < channel.epsilon(Full()) <= F(str(log(6)))


def test_exponential_is_its_formula() -> None:
    domain = Domain(x=Integer(0, 4))
    cells = np.arange(5)
    for channel, scale in (
        (exponential(domain, 3, secrets=Within(2)), np.ceil(np.abs(cells[:, None] - cells) / 2)),
        (exponential(domain, 3, 2), np.abs(cells[:, None] - cells) / 2),
        (exponential(domain, 3, 1, metric=Discrete()), 1 - np.eye(5)),
    ):
        expected = np.exp(-1.5 * scale)
        np.testing.assert_allclose(channel.matrix, expected / expected.sum(axis=1, keepdims=True), rtol=1e-10)


def test_exponential_by_another_distance() -> None:
    channel = exponential(plane(3, 4), 1, "km", metric=L1())
    rows = exact_rows(channel)
    assert keeps(whole(rows), lambda a, b: F(abs(a // 4 - b // 4) + abs(a % 4 - b % 4)))


def test_tight_constraints_are_tight() -> None:
    """In every column, all log-ratios to the output's own cell are ε times the distance."""
    channel = tight_constraints(plane(4, 4), 2, "km")
    place, cells = channel.place, np.arange(16)
    ratio = np.log(np.diag(channel.matrix)[None, :] / channel.matrix)
    np.testing.assert_allclose(ratio, 2 * place.between(None, cells[:, None], cells), atol=1e-9)


def test_tight_constraints_over_the_full_graph_are_randomised_response() -> None:
    domain = Domain(x=Categorical(list("abcdef")))
    one, two = (make(domain, "1.5", secrets=Full()) for make in (tight_constraints, randomised_response))
    np.testing.assert_allclose(one.matrix, two.matrix, rtol=1e-10)


def test_tight_constraints_that_do_not_exist_say_from_where_on_they_do() -> None:
    with pytest.raises(Unsupported, match="below an epsilon of about") as refused:
        tight_constraints(plane(5, 5), "0.5", "km")
    least = float(str(refused.value).split("about ")[1].split(";")[0])
    assert 0.5 < least < 1
    assert tight_constraints(plane(5, 5), least * 1.01, "km").epsilon_per("km") > 0.5
    with pytest.raises(Unsupported, match="does not exist"):
        tight_constraints(plane(5, 5), least / 1.11, "km")


def test_planar_geometric_along_one_axis_is_geometric() -> None:
    channel = planar_geometric(Domain(age=Integer(0, 4, unit="years")), 1, "years")
    q = exp(-1)
    expected = [1 / (1 + q)] + [(1 - q) / (1 + q) * q**k for k in (1, 2, 3)] + [q**4 / (1 + q)]
    np.testing.assert_allclose(channel.matrix[0], expected, rtol=1e-9)
    assert channel.epsilon_per("years") > 0.999


def test_planar_noise_over_two_numbers() -> None:
    domain = Domain(x=Numeric(0, 4, width=1), y=Numeric(0, 6, width=2))
    channel = planar_geometric(domain, 1, 1)
    assert isinstance(channel.law, Shift) and channel.law.shape == (4, 3)
    distance = apart(3, F(1), F(2))
    assert keeps(whole(exact_rows(channel)), distance)


def test_noise_for_secrets_is_smaller_than_for_the_longest_edge_where_that_is_enough() -> None:
    domain = plane(5, 5)
    by_edges = planar_laplace(domain, 1, secrets=Within("1 km"))
    by_length = planar_laplace(domain, 1, F(2) ** 2)
    assert by_edges.distortion() < by_length.distortion()


@pytest.mark.parametrize("make", [planar_geometric, planar_laplace])
def test_noise_for_blocks_is_as_large_as_a_block_needs(make: Maker) -> None:
    """Of a map that is larger than one block, and of listed edges."""
    domain = plane(30, 30)
    for secrets in (Partition(blocks={"at": (5, 3)}), Edges([((0.5, 0.5), (3.5, 4.5))], on="at")):
        channel = make(domain, 1, secrets=secrets)
        told = channel.law.losses(*edges_of(bind(secrets, domain))).max()
        assert 0.9 < told <= 1


def test_resolution_makes_a_finer_lattice() -> None:
    home = Domain(home=Point("lat", "lon", box=((48, "48.1"), (2, "2.1")), cell="1 km", missing="public"))
    coarse, fine = planar_laplace(home, 1, "500 m"), planar_laplace(home, 1, "500 m", resolution="200 m")
    assert fine.domain == fine.outputs and fine.domain.size > 20 * coarse.domain.size
    assert fine.domain["home"].missing == "public"
    assert fine.epsilon_per("500 m") <= 1
    assert fine.distortion() == pytest.approx(1000, rel=0.1)  # the mean radius of continuous noise is 2/ε
    line = planar_laplace(Domain(x=Numeric(0, 10, cells=2)), 1, 1, resolution="0.3")
    assert line.domain["x"].n_values == 34
    for domain in (Domain(x=Integer(0, 9)), Domain(x=Numeric(0, 1, cells=2), y=Numeric(0, 1, cells=2))):
        with pytest.raises(SpecificationError, match="resolution"):
            planar_laplace(domain, 1, 1, resolution=1)
    with pytest.raises(SpecificationError, match="resolution"):
        planar_laplace(Domain(x=Numeric(0, 10, cells=2)), 1, 1, resolution=0)


def test_components_are_not_mixed_up() -> None:
    domain, secrets = Domain(x=Integer(0, 5)), Partition(blocks=2)
    for make in (randomised_response, exponential, tight_constraints):
        channel = make(domain, 2, secrets=secrets)
        assert (channel.matrix[:3, 3:] == 0).all() and (channel.matrix[3:, :3] == 0).all()
        assert (channel.matrix[:3, :3] > 0).all()
        assert channel.epsilon(secrets) <= 2 and channel.epsilon(Full()) == inf


def test_secrets_over_several_attributes() -> None:
    domain = Domain(age=Integer(0, 2), sex=Categorical(["f", "m"], missing="secret"))
    for secrets in (AttributeWise(), Full(), AttributeWise(age=Within(1))):
        graph = bind(secrets, domain)
        told = hops(graph)
        for a in range(9):
            for b in range(9):
                expected = graph.distance(a, b)
                assert told[a, b] == (inf if expected is None else expected)
        channel = exponential(domain, 1, secrets=secrets)
        assert F(49, 100) < channel.epsilon(secrets) <= 1


def test_hops_of_listed_edges() -> None:
    domain = Domain(a=Categorical(["p", "q", "r"]), b=Categorical(["s", "t"]))
    secrets = Edges([(("p", "s"), ("q", "t")), (("q", "t"), ("r", "s"))])
    told = hops(bind(secrets, domain))
    assert told[0, 3] == 1 and told[0, 4] == 2 and told[0, 1] == inf and told[1, 1] == 0


@pytest.mark.parametrize(
    ("secrets", "length"),
    [
        (Within("1 km"), hypot(1, 1)),
        (Within("1.5 km"), hypot(2, 2)),
        (Within("2 km", metric=L1()), hypot(1, 2)),
        (Partition(blocks={"at": (2, 3)}), hypot(39, 24)),
        (Partition(blocks={"at": 80}), 0),
        (Full(), hypot(79, 74)),
        (Nothing(), 0),
        (Edges([((0.5, 0.5), (3.5, 4.5))], on="at"), 5),
    ],
)
def test_longest_edges(secrets: Secrets, length: float) -> None:
    """On 80 × 75 cells, more than are listed."""
    domain = plane(80, 75)
    told = longest(bind(secrets, domain), Geometry(domain))
    assert float(told) == pytest.approx(length, rel=1e-15)
    assert told**2 >= round(length**2)


def test_longest_edges_of_a_small_map_and_of_lines() -> None:
    for domain in (
        plane(4, 5),
        plane(1, 7),
        Domain(x=Numeric(0, 10, cells=4)),
        Domain(x=Integer(0, 3), y=Integer(0, 5)),
    ):
        place = Geometry(domain)
        for secrets in (Full(), Within(2, on=domain.names[0])):
            graph = bind(secrets, domain)
            far = place.between(None, *edges_of(graph)).max()
            assert float(longest(graph, place)) == pytest.approx(far, rel=1e-12)
    large = Domain(x=Integer(0, 99), y=Integer(0, 99))
    for secrets, length in ((AttributeWise(x=Within(3), y=Within(5)), 5.0), (Full(), hypot(99, 99))):
        assert float(longest(bind(secrets, large), Geometry(large))) == pytest.approx(length)
    assert (
        float(longest(bind(Within(9), Domain(x=Integer(0, 9999))), Geometry(Domain(x=Integer(0, 9999))))) == 9
    )


# --- special cells, one cell, saving, drawing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", PER)
def test_a_public_missing_cell_passes(make: Maker) -> None:
    domain = Domain(at=Point("x", "y", box=((0, 3), (0, 3)), cell=1, metric="planar", missing="public"))
    channel = make(domain, 1, 1)
    assert channel.matrix[9].tolist() == [0.0] * 9 + [1.0] and (channel.matrix[:9, 9] == 0).all()
    assert channel.sample([9, 9]).tolist() == [9, 9]
    assert channel.epsilon_per(1) <= 1


@pytest.mark.parametrize("make", [planar_geometric, planar_laplace])
def test_a_public_missing_cell_passes_under_secrets(make: Maker) -> None:
    domain = Domain(at=Point("x", "y", box=((0, 3), (0, 4)), cell=1, metric="planar", missing="public"))
    for secrets in (Within(1), Full(), Partition(blocks={"at": 2})):
        channel = make(domain, 1, secrets=secrets)
        assert channel.matrix[12, 12] == 1 and 0.999 < channel.epsilon(secrets) <= 1


@pytest.mark.parametrize("make", PER)
def test_a_secret_missing_cell_is_refused_where_it_has_no_distance(make: Maker) -> None:
    domain = Domain(at=Point("x", "y", box=((0, 3), (0, 3)), cell=1, metric="planar", missing="secret"))
    with pytest.raises(SpecificationError, match=r"missing='secret'.*missing='public'"):
        make(domain, 1, 1)
    if make in (planar_geometric, planar_laplace):
        with pytest.raises(SpecificationError, match="missing='secret'"):
            make(domain, 1, secrets=Within(1))
    else:
        assert make(domain, 3, secrets=Full()).matrix[0, 9] > 0


def test_other_cells_without_a_place_are_refused() -> None:
    ordered = Domain(size=Categorical(["s", "m", "l"], ordered=True, other="?"))
    two = Domain(x=Integer(0, 3, missing="public"), y=Integer(0, 3))
    for domain in (ordered, two):
        for make in PER:
            with pytest.raises(SpecificationError, match="without a place"):
                make(domain, 1, 1)


@pytest.mark.parametrize("make", ALONG)
def test_one_cell(make: Maker) -> None:
    """That cell always, under any epsilon."""
    for domain in (plane(1, 1), Domain(x=Integer(7, 7))):
        for epsilon in (1, "1/1000000000000"):
            try:
                channel = make(domain, epsilon, secrets=Full())
            except Unsupported:
                assert epsilon != 1 and make in (randomised_response, exponential, tight_constraints)
                continue
            assert channel.matrix.tolist() == [[1.0]] and channel.sample([0, 0]).tolist() == [0, 0]
            assert channel.epsilon(Full()) == 0 and channel.epsilon_per(1) == 0
            assert channel.distortion() == 0


def test_saved_and_loaded(tmp_path: Path) -> None:
    domain = plane(5, 6)
    for at, make in enumerate(PER):
        channel = make(domain, 2, "km")
        channel.save(tmp_path / f"{at}.npz")
        again = Channel.load(tmp_path / f"{at}.npz")
        assert np.array_equal(again.matrix, channel.matrix)
        assert again.epsilon_per("km") == channel.epsilon_per("km")
        assert (again.name, again.asked, dict(again.settings)) == (
            channel.name,
            channel.asked,
            dict(channel.settings),
        )


@pytest.mark.parametrize("make", ALONG)
def test_samples_have_the_law_of_the_matrix(make: Maker) -> None:
    channel = make(plane(3, 2), 2, secrets=Within("1 km"))
    cells = np.repeat(np.arange(6), 20_000)
    counts = np.zeros((6, 6))
    np.add.at(counts, (cells, channel.sample(cells)), 1)
    expected = channel.matrix * 20_000
    assert chi2.sf(float(((counts - expected) ** 2 / expected).sum()), 30) > 1e-9


def test_what_a_channel_says_of_itself() -> None:
    channel = planar_geometric(plane(3, 3), "0.5", "100 m")
    assert (channel.name, channel.source, channel.guarantee, str(channel.asked)) == (
        "planar geometric",
        "none",
        "proved",
        "epsilon 0.5 per 100 m",
    )
    assert dict(channel.settings) == {"kind": "planar-geometric", "epsilon": "0.5", "epsilon_per": "100 m"}
    told = exponential(plane(3, 3), 1, secrets=Within("1 km")).settings
    assert told["secrets"] == {"within": "1 km"}
    assert exponential(plane(3, 3), 1, 1, metric=L1()).settings["metric"] == {"l1": {}}
    assert planar_laplace(plane(3, 3), 1, 1, resolution="500 m").settings["resolution"] == "500 m"


def test_tables_mixed_where_doubles_end() -> None:
    """ε·distance far beyond the logarithm of the largest double: still nothing is 0, still no more than ε."""
    domain = Domain(x=Integer(0, 60))
    for make in (exponential, tight_constraints, planar_geometric):
        channel = make(domain, 100, secrets=Within(1))
        assert channel.matrix.min() > 0 and channel.epsilon(Within(1)) <= 100
        assert channel.matrix[0, 0] > 0.999
    assert randomised_response(domain, 5000).epsilon(Full()) > 500


# --- large ----------------------------------------------------------------------------------------------------------------


def test_a_map_of_65_536_cells() -> None:
    domain = Domain(at=Point("x", "y", box=((0, 256), (0, 256)), cell=1, metric="planar", unit="km"))
    channel = planar_geometric(domain, "0.2", "km")
    assert 0.1998 < channel.epsilon_per("km") <= F(1, 5)
    assert 0.28 < channel.epsilon(Within("1 km")) <= F(1, 5) * F("1.4142136")
    assert channel.distortion() == pytest.approx(10, rel=0.05)  # 2/ε, a little less because of the border
    joint = np.zeros((2, 65_536))
    joint[0, :32_768] = joint[1, 32_768:] = 1
    assert 0.5 < channel.leakage(joint) < 1
    assert planar_laplace(domain, 1, secrets=Within("3 km")).epsilon(Within("3 km")) <= 1
    assert planar_geometric(domain, 1, secrets=Full()).epsilon(Full()) <= 1


# --- what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ALONG)
@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), inf, "much", True, None, "1/100000000000000"])
def test_epsilon_that_is_none(make: Maker, epsilon: object) -> None:
    with pytest.raises(TetraodonError, match="epsilon"):
        make(plane(3, 3), epsilon, secrets=Full())


@pytest.mark.parametrize("make", PER)
def test_neither_or_both_ways_to_ask(make: Maker) -> None:
    for told in ({}, {"epsilon_per": "km", "secrets": Full()}):
        with pytest.raises(SpecificationError, match="one of them"):
            make(plane(3, 3), 1, **told)
    for length in ("0 km", "parsec", -1):
        with pytest.raises(SpecificationError, match="epsilon_per"):
            make(plane(3, 3), 1, length)


@pytest.mark.parametrize("make", ALONG)
def test_secrets_that_join_nothing(make: Maker) -> None:
    with pytest.raises(SpecificationError, match="joins no two values"):
        make(plane(3, 3), 1, secrets=Nothing())


def test_domains_that_do_not_fit() -> None:
    eye = Domain(eye=Categorical(["blue", "brown"]))
    uneven = Domain(x=Integer(0, 9, step=4))
    three = Domain(x=Integer(0, 1), y=Integer(0, 1), z=Integer(0, 1))
    units = Domain(x=Integer(0, 1, unit="m"), y=Integer(0, 1, unit="kg"))
    for domain in (eye, uneven, three, units):
        for make in (planar_geometric, planar_laplace):
            with pytest.raises(SpecificationError, match="grid"):
                make(domain, 1, secrets=Full())
    for make in (exponential, tight_constraints):
        with pytest.raises(SpecificationError, match="no place"):
            make(eye, 1, 1)
        with pytest.raises(SpecificationError, match="metric"):
            make(plane(2, 2), 1, secrets=Full(), metric=L1())
        with pytest.raises(SpecificationError, match="great circles"):
            make(
                Domain(home=Point("a", "b", box=((0, 1), (0, 1)), cell="50 km")), 1, "km", metric=Haversine()
            )
    with pytest.raises(SpecificationError, match="knows no distances"):
        randomised_response(eye, 1, "km")


def test_tables_that_would_be_too_large() -> None:
    large = Domain(x=Integer(0, 4096))
    for make in (randomised_response, exponential, tight_constraints):
        with pytest.raises(Unsupported, match="4,096"):
            make(large, 1, secrets=Within(1))
    assert planar_geometric(large, 1, secrets=Within(1)).domain.size == 4097


def test_public_names() -> None:
    assert td.__version__
    from tetraodon import channels

    for make in ALONG:
        assert getattr(channels, make.__name__) is make


@pytest.mark.parametrize(
    "make", [td.channels.planar_geometric, td.channels.planar_laplace], ids=lambda m: m.__name__
)
@pytest.mark.parametrize("epsilon", [300, 900, 10**5])
def test_an_epsilon_at_the_end_of_doubles_is_kept_and_ends(make: Any, epsilon: int) -> None:
    line = td.Domain(x=td.Integer(0, 4))
    assert 200 < make(line, epsilon, secrets=td.Within(1)).epsilon(td.Within(1)) <= epsilon
