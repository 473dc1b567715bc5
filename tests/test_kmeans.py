"""Ways of k-means: their prices, what they release, and which one a plan takes."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import tetraodon as td
from tetraodon import noise
from tetraodon.clustering.costs import Assignment
from tetraodon.clustering.declared import FromHistogram, InRounds, WholeBlocks
from tetraodon.clustering.iterative import observed, scales
from tetraodon.clustering.lloyd import squares
from tetraodon.clustering.query import KMeans, kmeans_from_spec
from tetraodon.clustering.released import places
from tetraodon.clustering.select import candidates, price
from tetraodon.clustering.simulate import samples
from tetraodon.clustering.space import space
from tetraodon.errors import PolicyError, SpecificationError
from tetraodon.loss import Loss
from tetraodon.sensitivity import stacked
from tetraodon.table import Counts

PLANE = td.Domain(a=td.Integer(0, 63), b=td.Integer(0, 63))
QUERY = KMeans("a", "b", k=3, records=600, iterations=3)
ONE, RHO = Loss("epsilon", Fraction(1)), Loss("rho", Fraction(1, 4))
SECRETS = {
    "full": td.Full(),
    "within": td.AttributeWise(a=td.Within(4), b=td.Within(4)),
    "ball": td.Within(6, metric=td.L1(a=1, b=1)),
    "blocks": td.Partition(blocks={"a": 4, "b": 4}),
}
WAYS = [FromHistogram(8), InRounds(2, "0.25"), WholeBlocks()]


def hood(secrets, domain=PLANE):
    return td.Policy(domain, secrets).neighbourhood


def data(domain=PLANE, n=600, seed=5):
    rng = np.random.default_rng(seed)
    centres = np.array([[10, 10], [50, 12], [30, 50]])
    points = np.clip(np.rint(centres[rng.integers(0, 3, n)] + rng.normal(0, 4, (n, 2))), 0, 63)
    codes = domain.encode([points[:, 0], points[:, 1]])
    return Counts.collect(domain, [(codes, np.ones(n, dtype=np.int64))])


def release(way, counts):
    draws = ([], way.draws) if way.is_gaussian else (way.draws, [])
    with noise.reserve(draws[0], gaussian=draws[1]) as held:
        return way.finish(way.observe(way.tabulate(counts), counts.total, held))


@pytest.mark.parametrize("loss", [ONE, RHO], ids=["epsilon", "rho"])
@pytest.mark.parametrize("mechanism", WAYS, ids=lambda m: type(m).__name__)
def test_clusters_are_found_and_their_terms_cost_the_loss(mechanism, loss):
    secrets = SECRETS["blocks"] if isinstance(mechanism, WholeBlocks) else SECRETS["within"]
    loss = Loss(loss.unit, loss.amount * 20)
    way = price(mechanism, QUERY, PLANE, hood(secrets), loss)
    found = release(way, data())
    assert found.names == ("a", "b") and found.centroids.shape == (3, 2)
    truth = np.array([[10, 10], [30, 50], [50, 12]])
    assert np.abs(found.centroids - truth).max() < 4
    assert found.values.sum() == pytest.approx(600, abs=60)
    assert ((found.lower <= found.values) & (found.values <= found.upper)).all()
    assert way.spent == loss
    if way.terms:
        assert stacked(way.terms, hood(secrets), way.power).value == loss.amount
    else:  # the account then goes by distances
        assert loss.unit == "rho" and not isinstance(mechanism, FromHistogram)
    assert way.cost.value == loss.amount and way.cost.witness is not None


def test_the_histogram_s_loss_is_exact_on_every_pair():
    """A tiny domain, every edge: Σ|Δ|/scale of the blocks' counts is at most ε, and attained."""
    domain = td.Domain(a=td.Integer(0, 10))
    for secrets in (td.Full(), td.Within(1), td.Within(3), td.Partition(blocks=3)):
        for counted in ("identity", "ordered"):
            way = price(FromHistogram(4, counted), KMeans("a", k=2), domain, hood(secrets, domain), ONE)
            graph = td.Policy(domain, secrets).graph
            rows = []
            for cell in range(11):
                table = way.tabulate(Counts.collect(domain, [([cell], [1])]))
                rows.append([r[0] for r in way.strategy._apply(table)])
            losses = []
            for x, y in combinations(range(11), 2):
                if not graph.joined(np.array(x), np.array(y)):
                    continue
                loss = Fraction(0)
                for part, one, other in zip(way.strategy.parts, rows[x], rows[y], strict=True):
                    moved = int(np.abs(one - other).sum())
                    scale = way.strategy.scale(part)
                    assert scale is not None or not moved
                    loss += 0 if scale is None else moved / scale
                losses.append(loss)
            assert max(losses) == (way.spent.amount if losses else 0)
            assert way.spent.amount in (0, 1)


def test_whole_blocks_lose_their_share_and_not_more():
    """A tiny domain, every pair within a block: the sums' exact loss; sizes do not move."""
    domain = td.Domain(a=td.Integer(0, 10))
    secrets = td.Partition(blocks=3)
    way = price(WholeBlocks(), KMeans("a", k=2), domain, hood(secrets, domain), ONE)
    graph, room = td.Policy(domain, secrets).graph, space(domain)
    label = way.blocks.of(np.arange(11))
    twice = (2 * room.places(np.arange(11))[0] - way.blocks.middles[label]).ravel()
    losses = []
    for x, y in combinations(range(11), 2):
        if graph.joined(np.array(x), np.array(y)):
            assert label[x] == label[y]
            losses.append(abs(int(twice[x] - twice[y])) / way.scale)
    assert max(losses) == 1
    assert way.disclosed() == [
        "the number of records in every one of the 3 blocks of a that the policy discloses"
    ]
    assert stacked(way.exact_terms, hood(secrets, domain)).value == 0
    assert stacked(way.exact_terms, hood(td.Full(), domain)).value > 0


def test_exact_sizes_are_exact():
    way = price(WholeBlocks(), QUERY, PLANE, hood(SECRETS["blocks"]), ONE)
    found = release(way, data())
    assert (
        found.values.sum() == 600
        and (found.values == found.lower).all()
        and (found.values == found.upper).all()
    )
    assert way.half_width == 0 and way.n_exact == 16


def test_single_cells_cost_nothing():
    domain = td.Domain(a=td.Integer(0, 9))
    way = price(WholeBlocks(), KMeans("a", k=2), domain, hood(td.Nothing(), domain), ONE)
    assert way.spent.amount == 0 and way.draws == [] and way.terms == ()
    counts = Counts.collect(domain, [([1, 2, 8], [1, 1, 2])])
    assert release(way, counts).centroids.ravel().tolist() == [1.5, 8.0]


@pytest.mark.parametrize("name", SECRETS)
def test_a_plan_ranks_the_ways_that_apply(name):
    found = candidates(QUERY, PLANE, hood(SECRETS[name]), ONE)
    assert {type(w.mechanism) for w in found} == {FromHistogram, InRounds} | (
        {WholeBlocks} if name == "blocks" else set()
    )
    ratios = [w.expected_error for w in found]
    assert ratios == sorted(ratios) and ratios[0] < 1.5
    if name == "blocks":
        assert isinstance(found[0].mechanism, WholeBlocks)
    for way in found:  # a named way prices the same
        again = price(way.mechanism, QUERY, PLANE, hood(SECRETS[name]), ONE)
        assert again.mechanism == way.mechanism and again.draws == way.draws
        assert again.expected_error == way.expected_error
        assert np.isfinite(way.half_width) and all(n["number"] > 0 for n in way.noise_spec())


def test_what_is_simulated_is_close_to_what_happens():
    counts = data()
    codes, numbers = next(counts.items())
    room = space(PLANE)
    points, _ = room.places(codes)
    for mechanism in WAYS[:2]:
        way = price(mechanism, QUERY, PLANE, hood(SECRETS["full"]), ONE)
        sample = samples(room, 3, 600)[0]
        sample = type(sample)(codes, points, numbers, 600 * 32.0)
        rng = np.random.default_rng(0)
        simulated = [sample.ratio(way.simulated(sample, rng)) for _ in range(30)]
        drawn = [sample.ratio(release(way, counts).centroids) for _ in range(30)]
        assert abs(np.median(simulated) - np.median(drawn)) < 0.35 * np.median(drawn)


def test_the_same_noisy_histogram_gives_the_same_clusters():
    """Everything after the noise is a function of the noise: two tables, one noisy histogram."""
    way = price(FromHistogram(8), QUERY, PLANE, hood(td.Full()), ONE)
    with noise.reserve(way.draws) as held:
        noisy = way.observe(way.tabulate(data()), 600, held)
    first, second = way.finish(noisy), way.finish(noisy)
    assert np.array_equal(first.centroids, second.centroids) and np.array_equal(first.values, second.values)


def test_intervals_of_sizes_hold_the_true_sizes():
    """The number of records in the blocks nearest to each released centroid, over 60 releases of 3 sizes."""
    way, counts = price(FromHistogram(8), QUERY, PLANE, hood(td.Full()), ONE), data()
    true = way.tabulate(counts).ravel()
    missed = 0
    for _ in range(60):
        found = release(way, counts)
        label = squares(way.boxes.middles, found.centroids).argmin(axis=1)
        sizes = np.bincount(label, true, 3)
        missed += int(((sizes < found.lower[0]) | (sizes > found.upper[0])).sum())
    assert missed <= 22  # 9 expected at most; more than 22 with a probability below 1e-4


@pytest.mark.parametrize("mechanism", WAYS, ids=lambda m: type(m).__name__)
def test_an_empty_table_gives_clusters_in_the_box(mechanism):
    way = price(mechanism, QUERY, PLANE, hood(SECRETS["blocks"]), ONE)
    found = release(way, Counts.collect(PLANE, []))
    assert ((found.centroids >= 0) & (found.centroids <= 63)).all() and (found.values == 0).all()


@pytest.mark.parametrize("mechanism", WAYS, ids=lambda m: type(m).__name__)
def test_nothing_but_centroids_and_sizes_is_released(mechanism):
    """C24: no labels, no objective, no number of rounds."""
    way = price(mechanism, QUERY, PLANE, hood(SECRETS["blocks"]), ONE)
    found = release(way, data())
    assert list(found.columns) == ["a", "b", "value", "lower", "upper"]
    shown = {"values", "lower", "upper", "centroids", "names"}
    assert set(vars(found)) == shown | {"prefix", "raw_prefix", "estimate", "span", "ends"}
    assert found.prefix is None and found.raw_prefix is None and found.estimate is None
    assert found.span == (
        0.0,
        float(data().total),
    )  # the number of records, which is public; ends are intervals of sizes


def test_values_beyond_the_bounds_are_their_nearest_cells():
    """C26: permuting out-of-bound values within their clamp class changes nothing before the noise."""
    told = [
        td.Table({"a": a, "b": [5, 5, 5]}, PLANE).counts() for a in ([99, -7, 3], [70, -1, 3], [63, 0, 3])
    ]
    for mechanism in WAYS:
        way = price(mechanism, QUERY, PLANE, hood(SECRETS["blocks"]), ONE)
        first, *others = (way.tabulate(c) for c in told)
        for other in others:
            assert all(np.array_equal(x, y) for x, y in zip(first, other, strict=True))


def test_special_cells_belong_to_no_cluster():
    domain = td.Domain(a=td.Integer(0, 20, missing="secret"))
    query = KMeans("a", k=2, records=100)
    counts = Counts.collect(domain, [([3, 17, 21], [30, 30, 40])])
    for mechanism in (FromHistogram(), InRounds(2, 1)):
        way = price(mechanism, query, domain, hood(td.Full(), domain), Loss("epsilon", Fraction(50)))
        found = release(way, counts)
        assert np.abs(found.centroids.ravel() - [3, 17]).max() < 2
        assert np.abs(found.values.ravel() - [30, 30]).max() < 10


def test_only_records_that_the_filter_keeps_are_clustered():
    domain = td.Domain(a=td.Integer(0, 20), sex=td.Categorical(["f", "m"]))
    query = KMeans("a", k=2, where={"sex": ["f"]})
    codes = domain.encode([np.array([2, 18, 10]), np.array([0, 0, 1])])
    counts = Counts.collect(domain, [(codes, np.array([50, 50, 900]))])
    for secrets, count in ((td.Full(), 2), (td.AttributeWise(a=td.Partition(blocks=3)), 3)):
        found = candidates(query, domain, hood(secrets, domain), Loss("epsilon", Fraction(50)))
        assert len(found) == count
        for way in found:
            told = release(way, counts)
            assert np.abs(told.centroids.ravel() - [2, 18]).max() < 2
            assert np.abs(told.values.ravel() - [50, 50]).max() < 30
            assert stacked(way.terms, hood(secrets, domain)).value == 50
    [blocks] = [w for w in found if isinstance(w.mechanism, WholeBlocks)]
    assert blocks.disclosed() == [
        "the number of records with sex = f in every one of the 3 blocks of a that the policy discloses"
    ]


def test_whole_blocks_are_not_for_filters_on_secrets():
    domain = td.Domain(a=td.Integer(0, 20), sex=td.Categorical(["f", "m"]))
    secrets = td.AttributeWise(a=td.Partition(blocks=3), sex=td.Full())
    with pytest.raises(SpecificationError, match="discloses the block of every record"):
        price(WholeBlocks(), KMeans("a", k=2, where={"sex": ["f"]}), domain, hood(secrets, domain), ONE)


def test_a_record_that_the_filter_takes_in_costs_a_round_its_share():
    """Exact losses of all pairs of cells, some of which count nowhere."""
    domain = td.Domain(a=td.Integer(0, 10))
    for where in ({"a": (0, 6)}, {"a": [1, 2, 9]}):
        way = price(InRounds(1, 1), KMeans("a", k=2, where=where), domain, hood(td.Full(), domain), ONE)
        rounds, room = way.rounds(2**14), way.room
        inside = way.cells.place(np.arange(11))[0] >= 0
        for c in ((2, 8), (0, 3), (5, 5), (10, 1)):
            assignment = Assignment(np.array(c)[:, None], np.array(c)[:, None], rounds.radius)
            size, total = scales(rounds, room, assignment)
            rows = []
            for cell in range(11):
                codes, numbers = places(room, way.cells, Counts.collect(domain, [([cell], [1])]))
                sizes, sums = observed(assignment, room.places(codes)[0], numbers)
                assert sizes.sum() == inside[cell]
                rows.append((sizes, sums))
            for (n, v), (m, w) in combinations(rows, 2):
                loss = int(np.abs(n - m).sum()) / size + int(np.abs(v - w).sum()) / total
                assert loss <= 1


@pytest.mark.parametrize(
    ("domain", "secrets", "k"),
    [
        (td.Domain(a=td.Integer(5, 5)), td.Full(), 2),
        (td.Domain(a=td.Integer(5, 5), b=td.Integer(0, 9)), td.Full(), 2),
        (td.Domain(a=td.Integer(0, 2)), td.Full(), 5),
        (td.Domain(a=td.Integer(0, 20)), td.Full(), 1),
        (td.Domain(a=td.Integer(0, 2**18)), td.Within(5), 2),
        (td.Domain(a=td.Numeric("-0.5", "2.75", cells=13)), td.Edges([(0, 1)]), 2),
        (td.Domain(a=td.Integer(0, 5), b=td.Integer(0, 5)), td.Edges([((0, 0), (3, 3))]), 2),
        (td.Domain({f"x{i}": td.Integer(0, 9) for i in range(6)}), td.AttributeWise(x0=td.Within(1)), 2),
    ],
)
def test_odd_domains_give_clusters_in_the_box(domain, secrets, k):
    query = KMeans(*domain.names, k=k, records=10)
    counts = Counts.collect(domain, [([0, domain.size - 1], [3, 4])])
    room = space(domain)
    for way in candidates(query, domain, hood(secrets, domain), ONE):
        found = release(way, counts)
        low, high = room.published(np.zeros(len(room.lines))), room.published(room.extents.astype(float))
        assert found.centroids.shape == (k, len(room.lines))
        assert ((found.centroids >= low - 1e-9) & (found.centroids <= high + 1e-9)).all()
        assert (found.values >= 0).all() and (found.values <= 7).all()


def test_known_counts_are_priced():
    """Constraints make neighbours change several records; the terms still cost the loss exactly."""
    domain = td.Domain(a=td.Integer(0, 10))
    known = [td.CountConstraint(where={"a": (0, 4)}, answer=3)]
    policy = td.Policy(domain, td.Within(1), constraints=known)
    plain = price(InRounds(2, 1), KMeans("a", k=2), domain, hood(td.Within(1), domain), ONE)
    way = price(InRounds(2, 1), KMeans("a", k=2), domain, policy.neighbourhood, ONE)
    assert stacked(way.terms, policy.neighbourhood).value == 1
    assert way.rounds(2**14).each == plain.rounds(2**14).each / 2  # two records may move
    with pytest.raises(SpecificationError, match="needs secret values"):
        price(InRounds(2, 1), KMeans("a", k=2), domain, policy.neighbourhood, RHO)
    with pytest.raises(SpecificationError, match="no constraints"):
        price(WholeBlocks(), KMeans("a", k=2), domain, policy.neighbourhood, ONE)
    for way in candidates(KMeans("a", k=2), domain, policy.neighbourhood, RHO):
        told = float(stacked(way.terms, policy.neighbourhood, 2).value)
        assert told <= RHO.amount and told == pytest.approx(float(RHO.amount))


def test_places_are_clustered_in_their_unit_of_length():
    domain = td.Domain(home=td.Point("lat", "lon", box=((48, 49), (1, 3)), cell="5 km"))
    query = KMeans("home", k=2, records=2000)
    found = candidates(query, domain, hood(td.Within("20 km"), domain), Loss("epsilon", Fraction(5)))
    assert {type(w.mechanism) for w in found} == {FromHistogram, InRounds}
    cells = domain["home"].cells([(48.2, 1.3), (48.8, 2.6)])
    for way in found:
        told = release(way, Counts.collect(domain, [(cells, np.array([1000, 1000]))]))
        assert told.names == ("lat", "lon")
        assert np.abs(told.centroids - [[48.2, 1.3], [48.8, 2.6]]).max() < 0.2
    blocks = hood(td.Partition(blocks={"home": 4}), domain)
    assert isinstance(candidates(query, domain, blocks, ONE)[0].mechanism, FromHistogram | WholeBlocks)


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: KMeans(k=2), "name at least one attribute"),
        (lambda: KMeans("a", k=0), "kmeans.k: a whole number from 1 to 256"),
        (lambda: KMeans("a", k=True), "kmeans.k"),
        (lambda: KMeans("a", k=2, iterations=101), "kmeans.iterations: a whole number from 1 to 100"),
        (lambda: KMeans("a", k=2, records=-1), "kmeans.records"),
        (lambda: KMeans("a", "a", k=2), "each once"),
        (lambda: kmeans_from_spec({"kmeans": "a"}), "query.k: required"),
        (lambda: kmeans_from_spec({"kmeans": "a", "k": 2, "seeds": 3}), "seeds"),
        (lambda: kmeans_from_spec({"kmeans": 5, "k": 2}), "a list of names"),
        (lambda: FromHistogram(0), "FromHistogram.along: a whole number"),
        (lambda: FromHistogram(2, "sorted"), "FromHistogram.counted"),
        (lambda: InRounds(0), "InRounds.rounds"),
        (lambda: InRounds(2, 0), "InRounds.radius"),
        (lambda: InRounds(2, "3/2"), "InRounds.radius"),
    ],
)
def test_wrong_declarations(build, told):
    with pytest.raises(SpecificationError, match=told):
        build()


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (KMeans("x", k=2), "no attribute 'x'"),
        (KMeans("sex", k=2), "sex is categorical"),
        (KMeans("value", k=2), "name of a column of the answers"),
        (KMeans("a", "home", k=2), "clustered by itself"),
    ],
)
def test_queries_that_do_not_fit(query, told):
    domain = td.Domain(
        a=td.Integer(0, 5),
        sex=td.Categorical(["f", "m"]),
        value=td.Integer(0, 5),
        home=td.Point("x1", "x2", box=((0, 1), (0, 1)), cell=1, metric="planar"),
    )
    with pytest.raises(SpecificationError, match=told):
        candidates(query, domain, hood(td.AttributeWise(), domain), ONE)


@pytest.mark.parametrize(
    "query",
    [KMeans("a", k=3), KMeans("a", "b", k=2, iterations=4, records=9, where={"sex": ["f"], "c": (1, 2)})],
)
def test_queries_survive_their_specification(query):
    assert kmeans_from_spec(query.to_spec()) == query
    assert hash(query) == hash(kmeans_from_spec(query.to_spec()))


# ---------- sessions, accounts, settings files ----------


def table(domain=PLANE):
    codes, numbers = next(data().items())
    a, b = domain.decode(np.repeat(codes, numbers))
    return td.Table({"a": a, "b": b}, domain)


def test_a_session_plans_charges_and_releases(tmp_path):
    session = td.Session(table(), td.Policy(PLANE, SECRETS["full"]), epsilon=10)
    plan = session.plan(QUERY, epsilon=8)
    assert "objective ratio" in repr(plan) and session.ledger.spent == 0
    made = session.release(QUERY, epsilon=8)
    assert made.mechanism == plan[0].mechanism and made.epsilon == 8 and session.ledger.spent == 8
    assert made.centroids.shape == (3, 2) and list(made.to_frame()) == ["a", "b", "value", "lower", "upper"]
    assert made.values.tolist() == made.to_frame()["value"].tolist() and made.unit == "records"
    assert "objective" in plan[0].workload and made.disclosures() == []
    manifest = made.save(tmp_path / "published")
    assert manifest.exists() and (manifest.parent / "kmeans-a-b.parquet").exists()
    with pytest.raises(SpecificationError, match="only for a CDF"):
        made.quantile(0.5)
    with pytest.raises(SpecificationError, match="only for Marginals"):
        _ = made.tables
    counts = session.release(td.Histogram("a"), epsilon=1)
    with pytest.raises(SpecificationError, match="only for KMeans"):
        _ = counts.centroids


def test_clusters_have_no_sensitivity_of_their_own():
    with pytest.raises(SpecificationError, match="no linear answers"):
        td.Policy(PLANE, td.Full()).sensitivity(QUERY)


@pytest.mark.parametrize("mechanism", ["kmeans-rounds", {"kmeans-rounds": {"rounds": 2, "radius": "0.5"}}])
def test_ways_are_asked_for_by_name(mechanism):
    session = td.Session(table(), td.Policy(PLANE, SECRETS["full"]), rho=1, delta="1e-6")
    made = session.release(QUERY, rho="1/2", mechanism=mechanism)
    assert isinstance(made.mechanism, InRounds) and made.spent == Loss("rho", Fraction(1, 2))
    assert session.ledger.spent == Fraction(1, 2)
    with pytest.raises(SpecificationError, match="for KMeans"):
        session.release(td.CDF("a"), rho="1/4", mechanism="kmeans-histogram")
    with pytest.raises(SpecificationError, match="KMeans is released by"):
        session.release(QUERY, rho="1/4", mechanism="ordered", name="other")


def test_later_policies_price_clusters_too(tmp_path):
    """Rounds cost any pair of values at most their share, under every policy; exact blocks have no price under ``Full``."""
    path = tmp_path / "k.ledger"
    session = td.Session(table(), td.Policy(PLANE, SECRETS["blocks"]), epsilon=3, ledger=path)
    session.release(QUERY, epsilon=1, mechanism="kmeans-rounds", name="rounds")
    later = td.Session(table(), td.Policy(PLANE, SECRETS["full"]), epsilon=3, ledger=path)
    assert later.ledger.spent == 1
    session = td.Session(table(), td.Policy(PLANE, SECRETS["blocks"]), epsilon=3)
    session.release(QUERY, epsilon=1, mechanism="kmeans-blocks")
    assert session.remaining.outside == (
        "the number of records in every one of the 16 blocks of a, b that the policy discloses",
    )


def test_exact_blocks_are_refused_by_a_later_policy_that_protects_them(tmp_path):
    path = tmp_path / "k.ledger"
    session = td.Session(table(), td.Policy(PLANE, SECRETS["blocks"]), epsilon=3, ledger=path)
    session.release(QUERY, epsilon=1, mechanism="kmeans-blocks")
    with pytest.raises(PolicyError, match="exactly"):
        td.Session(table(), td.Policy(PLANE, SECRETS["full"]), epsilon=3, ledger=path)


def test_settings_files_ask_for_clusters(tmp_path):
    from tetraodon.planning import plan_text, planned, run
    from tetraodon.spec import load

    codes, numbers = next(data().items())
    a, b = PLANE.decode(np.repeat(codes, numbers))
    rows = "\n".join(f"{x},{y},{x / 64},{y / 64}" for x, y in zip(a, b, strict=True))
    (tmp_path / "people.csv").write_text(f"a,b,x,y\n{rows}\n")
    (tmp_path / "release.toml").write_text(
        """
[data]
source = "people.csv"
[domain.a]
integer = [0, 63]
[domain.b]
integer = [0, 63]
[domain.home]
point = ["x", "y"]
box = [[0, 1], [0, 1]]
cell = 0.1
metric = "planar"
[policy]
secrets = "full"
[budget]
epsilon = 2
[[release]]
name = "centres"
epsilon = 1
mechanism = { kmeans-rounds = { rounds = 2, radius = "0.25" } }
query = { kmeans = ["a", "b"], k = 3, records = 600, iterations = 2 }
[[release]]
name = "places"
epsilon = 1
mechanism = { kmeans-histogram = { along = 5 } }
query = { kmeans = "home", k = 30, records = 600, iterations = 1 }
"""
    )
    document = load(tmp_path / "release.toml")
    assert "k-means in 2 rounds of noisy sums" in plan_text(planned(document))
    manifest = run(document, tmp_path / "out", [], again=False)
    page = (manifest.parent / "report.html").read_text()
    assert "Centres of 3 clusters of records along a and b" in page
    assert (
        "Centres of 30 clusters of records along home" in page
    )  # more than the blocks that hold records: some coincide
    assert "times the objective of plain k-means" in page and "sums of the first of 2 rounds" in page


def test_the_example_in_the_documents_runs():
    text = (Path(__file__).parent.parent / "docs" / "kmeans.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    told: dict[str, object] = {}
    exec(compile(block, "kmeans.md", "exec"), told)
    assert told["made"].centroids.shape == (2, 3)
