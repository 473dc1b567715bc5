"""Rows through channels: what they cost, what leaves, what the account holds, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from oracle import composed, constrained

import tetraodon as td
from tetraodon.composition import loss_under
from tetraodon.costs import terms_from_spec, terms_spec
from tetraodon.errors import BudgetError, PolicyError, Refused, SpecificationError, Unsupported
from tetraodon.ledger import verify
from tetraodon.loss import Loss
from tetraodon.report import render
from tetraodon.requests import Request, charge_of, price_all
from tetraodon.rows.strategy import priced
from tetraodon.sensitivity import stacked

F = Fraction
PLANE = td.Point("lat", "lon", box=((0, 6), (0, 5)), cell=1, metric="planar", unit="km")
DOMAIN = td.Domain(region=td.Categorical(["n", "s"]), home=PLANE)
NEAR = td.Policy(DOMAIN, td.AttributeWise(home=td.Within(1)))


def epsilon(amount: Any) -> Loss:
    return Loss("epsilon", F(amount))


def rows(n: int = 200, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "region": rng.choice(["n", "s"], n).tolist(), "lat": (6 * rng.random(n)).tolist(), "lon": (5 * rng.random(n)).tolist(),
        "name": [f"canary{i}" for i in range(n)],
    }  # fmt: skip


def session(policy: Any = NEAR, total: Any = 2, **more: Any) -> Any:
    return td.Session(td.Table(rows(), policy.domain), policy, epsilon=total, **more)


PLANAR = {"kind": "planar-geometric"}


# ---------- what leaves ----------


def test_replaced_values_and_kept_attributes_leave_and_nothing_else() -> None:
    made = session().release(td.Rows("home", keep=["region"], channel=PLANAR), epsilon=1)
    frame = made.to_frame()
    assert list(frame.columns) == ["lat", "lon", "region"] and len(frame) == 200
    assert set(frame["lat"]) <= {0.5 + i for i in range(6)} and set(frame["lon"]) <= {
        0.5 + i for i in range(5)
    }
    assert sorted(frame["region"]) == sorted(rows()["region"])
    assert made.guarantee == "proved" and "canary" not in frame.to_csv()


def test_a_kept_attribute_leaves_by_its_declared_label() -> None:
    domain = td.Domain(region=td.Categorical(["n"], other="elsewhere"), home=PLANE)
    told = rows(50) | {"region": ["canary"] * 50}
    policy = td.Policy(domain, td.AttributeWise(home=td.Within(1)))
    made = td.Session(td.Table(told, domain), policy, epsilon=1).release(
        td.Rows("home", keep="region", channel=PLANAR), epsilon=1
    )
    assert set(made.to_frame()["region"]) == {"elsewhere"}


def test_a_secret_cannot_be_kept() -> None:
    both = td.Policy(DOMAIN, td.AttributeWise(region=td.Full(), home=td.Within(1)))
    with pytest.raises(PolicyError, match=r"rows\.keep: region is a secret"):
        session(both).plan(td.Rows("home", keep="region", channel=PLANAR), epsilon=1)


def test_what_no_edge_changes_needs_no_channel() -> None:
    with pytest.raises(SpecificationError, match="region is no secret of this policy"):
        session().release(td.Rows("region", channel={"kind": "exponential"}), epsilon=1)


def test_a_kept_attribute_is_an_exact_disclosure_that_later_policies_see(tmp_path: Path) -> None:
    first = session(ledger=tmp_path / "a.ledger")
    first.release(td.Rows("home", keep="region", channel=PLANAR), epsilon=1)
    assert any("region of every record" in text for text in first.remaining.outside)
    later = td.Policy(DOMAIN, td.AttributeWise(region=td.Full(), home=td.Within(1)))
    with pytest.raises(PolicyError, match="exactly in part, which edges of this policy change"):
        session(later, ledger=tmp_path / "a.ledger")


# ---------- what it costs ----------


def test_places_and_rows_of_a_person_share_the_budget_as_it_is_printed() -> None:
    domain = td.Domain(
        home=PLANE, work=td.Point("a", "b", box=((0, 4), (0, 4)), cell=1, metric="planar", unit="km")
    )
    policy = td.Policy(domain, td.AttributeWise(home=td.Within(1), work=td.Within(1)))
    found = priced(td.Rows("home", "work", channel=PLANAR, rows_per_person=2), policy, epsilon(4))
    assert found.per_person is not None
    assert found.per_person["text"] == "epsilon 8 per person = 2 places × 2 rows × 2"
    assert found.by_secret == {"home": F(4), "work": F(4)}
    for part in found.parts:
        assert part.channel is not None and part.channel.epsilon(part.secrets) <= 2
    whole = td.Policy(domain, td.Full())  # one edge may move both places of a record
    for part in priced(td.Rows("home", "work", channel=PLANAR, rows_per_person=2), whole, epsilon(4)).parts:
        assert part.epsilon == 1


@pytest.mark.parametrize("kind", ["planar-geometric", "planar-laplace", "exponential", "randomised-response"])
@pytest.mark.parametrize(
    "secrets", [td.Within(1), td.Full(), td.Partition(blocks=(2, 1))], ids=["within", "full", "blocks"]
)
def test_every_declared_kind_keeps_what_is_charged(kind: str, secrets: Any) -> None:
    policy = td.Policy(DOMAIN, td.AttributeWise(home=secrets))
    found = priced(td.Rows("home", channel={"kind": kind}), policy, epsilon("0.7"))
    [part] = found.parts
    assert part.channel is not None and part.channel.epsilon(part.secrets) <= F("0.7")
    assert found.cost.value == F("0.7") and found.spent == epsilon("0.7")


def test_a_given_channel_is_priced_as_it_is() -> None:
    loose = td.channels.exponential(DOMAIN.select("home"), 2, secrets=td.Within(1))
    realised = loose.epsilon(td.Within(1))
    assert F(1) < realised <= 2
    with pytest.raises(SpecificationError, match="1 is asked, but these channels lose up to"):
        priced(td.Rows("home", channel=loose), NEAR, epsilon(1))
    assert priced(td.Rows("home", channel=loose), NEAR, epsilon(2)).spent == epsilon(2)


def test_a_channel_that_tells_secrets_apart_has_no_price() -> None:
    law = np.eye(30)
    law[0] = [0.5, 0.5] + [0.0] * 28
    with pytest.raises(PolicyError, match="tell values apart for certain"):
        priced(td.Rows("home", channel=td.Channel.of_matrix(law, DOMAIN.select("home"))), NEAR, epsilon(5))


def a_channel(rng: np.random.Generator, domain: Any) -> Any:
    law = rng.dirichlet(np.full(domain.size, 2.0), domain.size) * 0.95 + 0.05 / domain.size
    return td.Channel.of_matrix(law, domain)


def losses_of(channel: Any) -> Any:
    logs = np.log(channel.matrix)
    return np.abs(logs[:, None, :] - logs[None, :, :]).max(axis=2)


def test_a_price_is_never_below_any_neighbour_and_exact_without_known_counts() -> None:
    """Random policies on tiny domains, with and without known counts; outputs stay attached to records."""
    rng, compared, exact = np.random.default_rng(7), 0, 0
    while compared < 60:
        case = constrained.drawn(rng, most=400)
        for policy, facts in ((td.Policy(case.domain, case.secrets), []), (case.policy(), case.predicates)):
            free = [n for n in case.domain if not policy.graph.project([n]).has_edges]
            if not policy.graph.has_edges or (free and policy.graph.kind == "cartesian"):
                continue  # a place must have secrets, in each of its attributes where they stand alone
            channel = a_channel(rng, case.domain)
            try:
                found = priced(td.Rows(list(case.domain), channel=channel), policy, epsilon(100))
            except (PolicyError, Unsupported):
                continue  # known counts without a useful bound are refused
            value = float(stacked(found.terms, policy.neighbourhood).value)
            for reading in constrained.READINGS:
                pairs = constrained.neighbours(case.adjacent, facts, case.n, reading)
                true = constrained.largest_by_rows(pairs, losses_of(channel))
                assert value >= true * (1 - 1e-9)
            if not facts:
                exact += 1
                assert value == pytest.approx(true, rel=1e-9)
            compared += 1
    assert exact > 20


def test_channels_and_answers_add_up_change_by_change() -> None:
    """c_answers(x, y) + ε_K(x, y) over the edges, against every neighbouring database."""
    rng, compared, sharper = np.random.default_rng(11), 0, 0
    while compared < 25:
        case = constrained.drawn(rng, most=300)
        policy = case.policy()
        if not policy.graph.has_edges:
            continue
        channel = a_channel(rng, case.domain)
        query = td.Rows(list(case.domain), channel=channel)
        requests = [
            Request(query, epsilon(9), "rows"),
            Request(td.CDF(next(iter(case.domain))), epsilon(1), "cdf"),
        ]
        try:
            made = price_all(policy, requests)
            charges = [charge_of(p, policy, "") for p in made]
            found = float(loss_under(policy, charges).value)
        except (PolicyError, Unsupported, SpecificationError):
            continue
        size = len(case.adjacent)
        table = [[F(float(v)) for v in row] for row in losses_of(channel)]
        strategy: Any = made[1].strategy
        matrix, noise = observed(strategy, case.domain, size)
        seen = [composed.PerRecord(table), composed.Noisy(matrix, noise)]
        pairs = constrained.neighbours(case.adjacent, case.predicates, case.n, "literal")
        assert found >= float(composed.worst(seen, pairs).value) * (1 - 1e-9)
        sharper += found < 10 - 1e-6
        compared += 1
    assert sharper > 5  # less than the sum of what the two were charged


def observed(strategy: Any, domain: Any, size: int) -> tuple[list[list[int]], list[Fraction]]:
    """The integer rows of a priced answer over all cells of the domain, with their scales, read off its terms."""
    matrix, noise = [], []
    for term in strategy.terms:
        resolved = term.resolved
        group, position = resolved.place(
            resolved.domain.encode(
                [
                    dict(zip(domain.names, domain.decode(np.arange(size)), strict=True))[n]
                    for n in resolved.domain.names
                ]
            )
        )
        for layer in term.layers:
            count = layer.size
            eye = np.eye(count, dtype=np.int64)
            held = [eye[:, p] for p in range(count)]
            rows_ = applied(layer, count)
            for row in rows_:
                for g in range(resolved.n_groups):
                    matrix.append(
                        [int(row[p]) if gg == g else 0 for gg, p in zip(group, position, strict=True)]
                    )
                    noise.append(1 / (term.factor * layer.weight))
            assert len(held) == count
    return matrix, noise


def applied(layer: Any, count: int) -> Any:
    """The rows of a layer as a dense matrix: what a unit count at each position adds to them."""
    from tetraodon.sensitivity.layers import _applied

    return _applied(layer, np.eye(count, dtype=np.int64)).T


def test_the_ledger_keeps_what_a_small_channel_observes() -> None:
    domain = td.Domain(x=td.Integer(0, 3))
    policy = td.Policy(domain, td.Within(1))
    channel = a_channel(np.random.default_rng(3), domain)
    found = priced(td.Rows("x", channel=channel), policy, epsilon(30))
    told = json.loads(json.dumps(terms_spec(found.terms), default=str))
    again = terms_from_spec(told, domain, True)
    for a, b in ((0, 1), (0, 3), (1, 2)):
        ends = np.array([a]), np.array([b])
        assert again[0].move(*ends, domain).tolist() == found.terms[0].move(*ends, domain).tolist()
    wider = td.Policy(domain, td.Full())
    charge = charge_of(
        price_all(policy, [Request(td.Rows("x", channel=channel), epsilon(30), "x")])[0], policy, ""
    )
    known = {policy.hash: policy}
    largest = float(losses_of(channel).max())
    assert float(loss_under(wider, [charge], "epsilon", known).value) == pytest.approx(largest, rel=1e-9)


def test_a_large_channel_costs_its_hops_under_a_wider_policy() -> None:
    domain = td.Domain(home=td.Point("a", "b", box=((0, 60), (0, 50)), cell=1, metric="planar", unit="km"))
    policy, wider = (td.Policy(domain, td.Within(r)) for r in (2, 4))
    [made] = price_all(policy, [Request(td.Rows("home", channel=PLANAR), epsilon(1), "x")])
    charge = charge_of(made, policy, "")
    found = loss_under(wider, [charge], "epsilon", {policy.hash: policy}).value
    assert 2 <= found <= 3


def test_a_pure_channel_enters_an_account_in_rho_by_half_its_square() -> None:
    first = td.Session(td.Table(rows(), DOMAIN), NEAR, rho="0.5", delta="1e-9")
    first.release(td.Rows("home", channel=PLANAR), epsilon="0.5")
    assert first.ledger.spent == F(1, 8)
    with pytest.raises(SpecificationError, match="channels have a loss in epsilon"):
        first.release(td.Rows("home", channel=PLANAR), rho="0.1", name="again")


# ---------- where the prior comes from ----------


def test_one_person_and_a_private_prior_publish_the_exact_value() -> None:
    """Rules that no matrix repairs: the best channel for the table's own law is constant at the one person's cell, has a
    realised ε of 0, and publishes the cell. So it is never called proved."""
    domain = td.Domain(cell=td.Integer(0, 2))
    for place in range(3):
        law = np.eye(3)[place]
        channel = td.channels.least_distortion(
            law, td.Discrete(), secrets=td.Full(), epsilon=1, domain=domain
        )
        assert channel.matrix[:, place].min() > 1 - 1e-6
        assert channel.epsilon(td.Full()) <= 1 and channel.is_private and channel.guarantee == "measured"
        policy = td.Policy(domain, td.Full())
        with pytest.raises(SpecificationError, match="fitted on a private prior"):
            priced(td.Rows("cell", channel=channel), policy, epsilon(1))


def test_ten_people_and_a_private_prior_have_no_epsilon() -> None:
    """8 : 2 never shows the second value, 7 : 3 does: one output has probability 0 on one of two neighbouring tables."""
    domain = td.Domain(cell=td.Integer(0, 1))

    def best(counts: list[int], source: str) -> Any:
        return td.channels.least_distortion(
            counts, td.Discrete(), secrets=td.Full(), epsilon=1, domain=domain, source=source
        )

    switch = np.e / (1 + np.e)
    assert 0.7 < switch < 0.8
    often, seldom = best([7, 3], "private").matrix[:, 1].min(), best([8, 2], "private").matrix[:, 1].max()
    assert often > 0.2 and seldom < 1e-6
    assert best([8, 2], "disjoint").guarantee == "proved"  # the same matrix, from other persons


def test_a_prior_from_a_charged_answer_of_the_same_run_is_released(tmp_path: Path) -> None:
    s = session(total=3)
    channel = PLANAR | {"remap": {"prior": {"answer": "density"}}}
    made = s.release_all([
        Request(td.Histogram("home"), epsilon(1), "density"),
        Request(td.Rows("home", channel=channel), epsilon(1), "places"),
    ])  # fmt: skip
    assert made[1].guarantee == "proved" and made[1].channels[0].source == "released"
    assert s.ledger.spent == 2
    with pytest.raises(SpecificationError, match="must be an earlier release of the same run"):
        s.release(td.Rows("home", channel=channel), epsilon=1, name="alone")


def test_a_measured_release_is_charged_nothing_and_named_beside_every_total(tmp_path: Path) -> None:
    s = session(ledger=tmp_path / "a.ledger")
    fitted = {
        "kind": "least-leaking",
        "secret": "region",
        "distortion": "1.5 km",
        "tolerance": 0.01,
        "seconds": 60,
    }
    with pytest.raises(SpecificationError, match="guarantee = 'measured'"):
        s.release(td.Rows("home", channel=fitted), epsilon=1)
    made = s.release(td.Rows("home", channel=fitted), guarantee="measured", name="places")
    assert made.guarantee == "measured" and made.spent.is_zero and made.channels[0].is_private
    assert s.ledger.spent == 0 and any("without a proved bound" in t for t in s.remaining.outside)
    assert verify(tmp_path / "a.ledger", []).ok
    manifest = json.loads(made.save(tmp_path / "out").read_text())
    [entry] = manifest["releases"]
    assert entry["channels"][0]["evidence"] is None and entry["channels"][0]["realised"] is None
    assert not list((tmp_path / "out").glob("*.npz"))  # the channel is a function of the rows


def test_why_no_channel_fits_private_rows_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(joint: Any, *args: Any, **more: Any) -> Any:
        raise SpecificationError(f"distortion: at least {joint.max()} is needed.")

    monkeypatch.setattr(td.channels, "least_leaking", failing, raising=False)
    fitted = {"kind": "least-leaking", "secret": "region", "distortion": "1 km"}
    with pytest.raises(Refused) as caught:
        session().release(td.Rows("home", channel=fitted), guarantee="measured")
    assert "withheld" in str(caught.value) and not any(c.isdigit() for c in str(caught.value))


# ---------- refused, and undone by nothing ----------


def test_a_plan_says_what_rows_would_cost_and_spends_nothing() -> None:
    s = session()
    plan = s.plan(td.Rows("home", keep="region", channel=PLANAR), epsilon=1)
    assert "epsilon 1 per person = 1 place × 1 row × 1" in repr(plan) and "km away on average" in repr(plan)
    assert plan.cost.value == 1 and plan.channels[0].epsilon(td.Within(1)) <= 1
    free = s.plan(
        td.Rows("home", channel={"kind": "least-leaking", "secret": "region", "distortion": "1 km"})
    )
    assert "no proved bound" in repr(free) and not free.channels and s.ledger.spent == 0


def test_rows_of_one_part_are_not_offered() -> None:
    [part, _] = session().split(by="region").values()
    with pytest.raises(Unsupported, match="rows go out whole"):
        part.release(td.Rows("home", channel=PLANAR), epsilon=1)


def test_what_does_not_fit_the_budget_draws_nothing() -> None:
    s = session(total=1)
    with pytest.raises(BudgetError, match="Nothing was spent"):
        s.release(td.Rows("home", channel=PLANAR), epsilon=2)
    assert s.ledger.spent == 0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: td.Rows(channel=PLANAR), "name at least one attribute"),
        (lambda: td.Rows("home", "home", channel=PLANAR), "stands twice"),
        (lambda: td.Rows("home", keep="home", channel=PLANAR), "cannot leave as it is"),
        (lambda: td.Rows("home", channel={"kind": "planar"}), "no kind of channel 'planar'"),
        (lambda: td.Rows("home", channel={"kind": "exponential", "prior": "uniform"}), "no key 'prior'"),
        (lambda: td.Rows("home", channel=3), "a channel for each attribute"),
        (lambda: td.Rows("home", channel=PLANAR, rows_per_person=0), "at least 1"),
        (lambda: td.Rows("home", channel=PLANAR, permanent={"id": "name"}), "all needed"),
        (lambda: td.Rows("home", channel={"kind": "least-leaking", "secret": "region"}), "distortion: is missing"),
    ],
    ids=["none", "twice", "kept", "kind", "key", "number", "rows", "permanent", "budget"],
)  # fmt: skip
def test_wrong_requests_are_refused_by_name(make: Any, text: str) -> None:
    with pytest.raises(SpecificationError, match=text):
        make()


LEAKING = {"kind": "least-leaking", "secret": "region", "distortion": "1 km"}


@pytest.mark.parametrize(
    ("channel", "text"),
    [
        (LEAKING | {"secret": "regin"}, "no attribute 'regin'"),
        (LEAKING | {"secret": 3}, "the name of an attribute, not a number"),
        (LEAKING | {"secret": "home"}, "is replaced itself"),
        (LEAKING | {"distortion": "1 USD"}, "declared in km, not in USD"),
        (LEAKING | {"distortion": -1}, "a distance is not negative"),
        ({"kind": "file", "path": "none.npz"}, r"channel\.path: none\.npz: cannot be read"),
    ],
    ids=["secret", "number", "itself", "unit", "negative", "file"],
)
def test_options_that_do_not_fit_are_refused_before_anything_is_read(channel: Any, text: str) -> None:
    with pytest.raises(SpecificationError, match=text):
        session().plan(td.Rows("home", channel=channel))


def test_values_of_several_kinds_are_measured_by_whether_they_change(tmp_path: Path) -> None:
    both = td.Policy(DOMAIN, td.AttributeWise(region=td.Full(), home=td.Within(1)))
    made = session(both).release(td.Rows(["home", "region"], channel={"kind": "exponential"}), epsilon=1)
    [entry] = json.loads(made.save(tmp_path).read_text())["releases"]
    told = entry["channels"][0]["evidence"]
    assert 0.5 < told["distortion"] < 1 and told["unit"] is None
    assert "% of values change" in repr(session(both).plan(made.query, epsilon=1))


def test_known_counts_and_several_rows_of_a_person_have_no_price() -> None:
    known = td.Policy(
        DOMAIN, td.AttributeWise(home=td.Within(1)), [td.CountConstraint(where={"region": ["n"]}, answer=1)]
    )
    free = priced(td.Rows("home", channel=PLANAR, rows_per_person=2), known, epsilon(1))
    assert free.per_person is not None  # no edge can break a count of regions
    tied = td.Policy(
        DOMAIN,
        td.AttributeWise(home=td.Within(1)),
        [td.CountConstraint(where={"home": [(0.5, 0.5)]}, answer=1)],
    )
    with pytest.raises(Unsupported, match="several rows per person under known counts"):
        priced(td.Rows("home", channel=PLANAR, rows_per_person=2), tied, epsilon(1))
    [part] = priced(td.Rows("home", channel=PLANAR), tied, epsilon(1)).parts
    assert part.epsilon is not None and part.epsilon < F(1, 2)  # two records move, along arcs


# ---------- one settings file, end to end ----------

SETTINGS = """
[data]
source = "people.parquet"
[domain.region]
categorical = ["n", "s"]
[domain.home]
point = ["lat", "lon"]
box = [[0, 6], [0, 5]]
cell = 1
metric = "planar"
unit = "km"
[policy.secrets]
home = {{ within = 1 }}
[budget]
epsilon = 3
ledger = "people.ledger"
[[release]]
name = "density"
epsilon = 1
query = {{ histogram = ["home"] }}
[[release]]
name = "places"
rows = ["home"]
keep = ["region"]
epsilon = 1
{more}
[release.channel]
kind = "planar-geometric"
remap = {{ prior = "density" }}
"""


def written(folder: Path, more: str = "") -> Path:
    import pyarrow as pa

    pq.write_table(pa.table(rows()), folder / "people.parquet")
    path = folder / "release.toml"
    path.write_text(SETTINGS.format(more=more))
    return path


def test_a_settings_file_releases_rows_beside_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tetraodon.cli import main

    path = written(tmp_path)
    for command in ("plan", "release"):
        with pytest.raises(SystemExit) as done:
            main([command, str(path)])
        assert done.value.code in (0, None), capsys.readouterr().err
    told = capsys.readouterr().out
    assert (
        "epsilon 1 per person = 1 place × 1 row × 1, if nobody has more than one row" in told
        and "canary" not in told
    )
    published = tmp_path / "published"
    assert pq.read_table(published / "places.parquet").column_names == ["lat", "lon", "region"]
    assert td.Channel.load(published / "places.channel.npz").source == "released"
    assert (
        "canary" not in (published / "report.html").read_text()
        and verify(tmp_path / "people.ledger", [published / "manifest.json"]).ok
    )


# ---------- permanent answers ----------


def people(seed: int = 1) -> dict[str, Any]:
    """Three rows for each of 40 persons."""
    told = rows(120, seed)
    return told | {"person": [f"canary-{i // 3}" for i in range(120)]}


def permanent(folder: Path, epoch: str = "2025") -> Any:
    lasting = {"id": "person", "epoch": epoch, "store": str(folder / "people.permanent")}
    return td.Rows("home", channel=PLANAR, permanent=lasting)


def test_kept_attributes_are_those_of_the_row_whatever_the_person_answers(tmp_path: Path) -> None:
    told = people() | {"region": ["n", "s", "s"] * 40}
    lasting = {"id": "person", "epoch": "2025", "store": str(tmp_path / "people.permanent")}
    made = td.Session(td.Table(told, DOMAIN), NEAR, epsilon=1).release(
        td.Rows("home", keep="region", channel=PLANAR, permanent=lasting), epsilon=1
    )
    assert made.to_frame()["region"].value_counts().to_dict() == {"s": 80, "n": 40}
    assert "person" not in made.to_frame() and "canary" not in made.to_frame().to_csv()


def test_an_epoch_is_charged_once_and_answers_stay(tmp_path: Path) -> None:
    s = td.Session(td.Table(people(), DOMAIN), NEAR, epsilon=4, ledger=tmp_path / "a.ledger")
    first = s.release(permanent(tmp_path), epsilon=1, name="day 1")
    second = s.release(permanent(tmp_path), epsilon=1, name="day 2")
    assert s.ledger.spent == 1
    counts = [sorted(zip(*(m.to_frame()[c] for c in ("lat", "lon")), strict=True)) for m in (first, second)]
    assert counts[0] == counts[1] and len(set(counts[0])) <= 40
    assert any("charged in row" in text for text in s.remaining.outside)
    page = render(second.save(tmp_path / "out"))
    assert "Nothing more: the account has charged these permanent answers before" in page
    s.release(permanent(tmp_path, "2026"), epsilon=1, name="next year")
    assert s.ledger.spent == 2
    copy = (tmp_path / "people.permanent").read_bytes()
    s.release(permanent(tmp_path), epsilon=1, name="day 2 again")
    assert s.ledger.spent == 2
    (tmp_path / "people.permanent").write_bytes(
        copy
    )  # what was answered since is lost, and would be drawn anew
    s.release(permanent(tmp_path), epsilon=1, name="restored")
    assert s.ledger.spent == 3
    (tmp_path / "people.permanent").unlink()  # a store made anew is another one
    s.release(permanent(tmp_path), epsilon=1, name="day 3")
    assert s.ledger.spent == 4 and verify(tmp_path / "a.ledger", []).ok


def test_permanent_answers_of_another_edition_have_no_price_under_known_counts(tmp_path: Path) -> None:
    """One of two is ill, as everybody knows, and each year the other one is somebody new, who is asked for the first time: four
    editions tell of A four times more, for nothing."""
    domain = td.Domain(ill=td.Categorical(["no", "yes"]))
    counts = [td.CountConstraint({"ill": ["yes"]}, answer=1)]
    told: Any = {"id": "who", "epoch": "e", "store": str(tmp_path / "answers.permanent")}
    asked = td.Rows("ill", channel={"kind": "randomised-response"}, permanent=told)

    def session(year: int, policy: Any, ledger: str) -> td.Session:
        rows = {"who": ["A", f"B{year}"], "ill": ["no", "yes"]}
        return td.Session(
            td.Table(rows, domain, name="t", edition=str(year)), policy, epsilon=9, ledger=tmp_path / ledger
        )

    known, plain = td.Policy(domain, td.Full(), counts), td.Policy(domain, td.Full())
    session(2020, known, "known.ledger").release(asked, epsilon=1, name="rows")
    with pytest.raises(PolicyError, match="no price under known counts"):
        session(2021, known, "known.ledger").release(asked, epsilon=1, name="rows")
    told["store"] = str(tmp_path / "others.permanent")
    asked = td.Rows("ill", channel={"kind": "randomised-response"}, permanent=told)
    for year in (2020, 2021):
        session(year, plain, "plain.ledger").release(asked, epsilon=1, name="rows")
    with pytest.raises(PolicyError, match="no price under known counts"):
        session(2021, known, "plain.ledger")
