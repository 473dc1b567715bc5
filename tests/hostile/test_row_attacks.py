"""Attacks on rows that once went through: labels instead of laws, ids and stores, digests, small numbers lost on the way."""

from __future__ import annotations

import io
import json
import re
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tetraodon as td
from tetraodon.channels.then import Then
from tetraodon.errors import DataError, OutputError, PolicyError, Refused, SpecificationError
from tetraodon.loss import Loss
from tetraodon.requests import Request, price_all
from tetraodon.rows.strategy import priced

F = Fraction
EXPONENTIAL = {"kind": "exponential"}


def line(n: int) -> Any:
    return td.Domain(x=td.Integer(0, n - 1))


def asked(channel: Any, policy: Any, epsilon: Any) -> Any:
    return priced(td.Rows("x", channel=channel), policy, Loss("epsilon", F(epsilon)))


# ---------- a label is no law ----------


def test_a_large_given_channel_is_priced_by_its_law() -> None:
    domain = line(2100)
    parity = np.eye(2100)[
        np.arange(2100) % 2
    ]  # two outputs: every pair of values is looked at, in two columns
    with pytest.raises(PolicyError, match="tell values apart for certain"):
        asked(td.Channel.of_matrix(parity, domain), td.Policy(domain, td.Full()), "1/100")


def test_a_label_that_was_edited_buys_nothing(tmp_path: Path) -> None:
    plane = td.Domain(x=td.Point("a", "b", box=((0, 46), (0, 46)), cell=1, metric="planar", unit="km"))
    policy = td.Policy(plane, td.Within(1))
    td.channels.planar_geometric(plane, 3, "km").save(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz") as old, zipfile.ZipFile(tmp_path / "b.npz", "w") as new:
        for name in old.namelist():
            raw = old.read(name)
            if name == "spec.npy":
                told = json.loads(np.load(io.BytesIO(raw)).tobytes())
                told["asked"] = {"epsilon": "1/1000", "per": "km"}
                held = io.BytesIO()
                np.save(held, np.frombuffer(json.dumps(told).encode(), dtype=np.uint8))
                raw = held.getvalue()
            new.writestr(name, raw)
    edited = td.Channel.load(tmp_path / "b.npz")
    assert plane.size > 2048 and edited.asked.epsilon == F(1, 1000)
    for channel in (edited, {"kind": "file", "path": str(tmp_path / "b.npz")}):
        with pytest.raises((SpecificationError, PolicyError), match="lose"):
            asked(channel, policy, "1/100")


@pytest.mark.parametrize("metric", [td.Discrete(), td.L1()], ids=["discrete", "l1"])
def test_a_rate_in_another_metric_is_no_rate_per_length(metric: Any) -> None:
    plane = td.Domain(x=td.Point("a", "b", box=((0, 46), (0, 46)), cell=1, metric="planar", unit="km"))
    channel = td.channels.exponential(plane, 4, epsilon_per=1, metric=metric)
    policy = td.Policy(plane, td.Within(1))
    needed = channel.epsilon(td.Within(1))
    with pytest.raises(SpecificationError, match="lose up to"):
        asked(channel, policy, needed * F(99, 100))
    assert asked(channel, policy, needed * F(101, 100)).spent.amount == needed * F(101, 100)


def test_a_saved_channel_that_loses_a_billionth_more_is_refused(tmp_path: Path) -> None:
    domain = line(2)
    odds = float(np.exp(1.0 + 8e-10))
    td.Channel.of_matrix(
        [[odds / (1 + odds), 1 / (1 + odds)], [1 / (1 + odds), odds / (1 + odds)]], domain
    ).save(tmp_path / "a.npz")
    with pytest.raises(PolicyError, match="loses more than the epsilon"):
        asked({"kind": "file", "path": str(tmp_path / "a.npz")}, td.Policy(domain, td.Full()), 1)


# ---------- small numbers lost on the way ----------


def exact(law: Any, cell: int) -> list[Fraction]:
    return [F(float(p)) for p in law.rows(np.array([cell]))[0]]


def test_two_laws_of_offsets_in_turn_keep_their_small_entries() -> None:
    domain = line(4)
    once = td.channels.planar_laplace(domain, "37.6", 1)
    first = [exact(once.law, c) for c in range(4)]
    twice = [[sum(first[c][m] * first[m][z] for m in range(4)) for z in range(4)] for c in range(4)]
    true = max(
        max(float(abs(np.log(float(a / b)))) for a, b in zip(twice[c], twice[d], strict=True))
        for c in range(4)
        for d in range(c)
    )
    assert float(once.then(once).epsilon(td.Full())) >= true * (1 - 1e-9)


@pytest.mark.parametrize("lost", [0.0, 2.0**-50], ids=["gone", "smaller"])
def test_products_that_vanish_are_not_taken_for_no_loss(lost: float) -> None:
    e = 2.0**-900
    first = td.Channel.of_matrix([[1 - e, e], [1 - e * lost, e * lost]], line(2))
    second = td.Channel.of_matrix([[1, 0], [1 - e, e]], line(2))
    told = first.then(second).epsilon(td.Full())
    assert told == (float("inf") if not lost else pytest.approx(50 * np.log(2), rel=1e-9))
    assert isinstance(first.then(second).law, Then)


# ---------- persons and stores ----------

DOMAIN = td.Domain(x=td.Integer(0, 9), ill=td.Categorical(["no", "yes"]))
SECRET = td.Policy(DOMAIN, td.AttributeWise(x=td.Within(1), ill=td.Full()))
OPEN = td.Policy(DOMAIN, td.AttributeWise(x=td.Within(1)))


def people() -> dict[str, Any]:
    return {
        "x": list(range(10)),
        "ill": ["no", "yes"] * 5,
        "id": [f"a{i}" for i in range(10)],
        "dev": list("bcdefghijk"),
    }


def lasting(folder: Path, **more: str) -> Any:
    told = {"id": "id", "epoch": "1", "store": str(folder / "a.permanent")} | more
    return td.Rows("x", channel=EXPONENTIAL, permanent=told)


def test_a_secret_cannot_tell_persons_apart(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"permanent\.id: 'ill' is the column of 'ill', a secret"):
        priced(lasting(tmp_path, id="ill"), SECRET, Loss("epsilon", F(1)))
    priced(lasting(tmp_path, id="ill"), OPEN, Loss("epsilon", F(1)))  # where it is no secret it may


def test_another_column_of_ids_is_another_epoch(tmp_path: Path) -> None:
    s = td.Session(td.Table(people(), DOMAIN), OPEN, epsilon=2)
    s.release(lasting(tmp_path), epsilon="1/2")
    with pytest.raises(Refused, match="by another column of ids"):
        s.release(lasting(tmp_path, id="dev"), epsilon="1/2", name="again")
    assert s.ledger.spent == F(1, 2)


def test_a_copy_that_is_put_back_each_time_pays_each_time(tmp_path: Path) -> None:
    from tetraodon.channels.permanent import Permanent

    path = tmp_path / "a.permanent"
    Permanent.open(path).close()
    copy = path.read_bytes()
    s = td.Session(td.Table(people(), DOMAIN), OPEN, epsilon=2)
    for at in range(4):
        path.write_bytes(copy)
        s.release(lasting(tmp_path), epsilon="1/2", name=str(at))
    assert s.ledger.spent == 2


def test_what_goes_out_again_says_that_nothing_was_charged(tmp_path: Path) -> None:
    s = td.Session(td.Table(people(), DOMAIN), OPEN, epsilon=2)
    s.release(lasting(tmp_path), epsilon="1/2", name="one")
    again = s.release(lasting(tmp_path), epsilon="1/2", name="two")
    assert again.spent.is_zero and again.guarantee == "proved"
    [entry] = json.loads(again.save(tmp_path / "out").read_text())["releases"]
    assert entry["spent"]["amount"] == "0" and any("charged in row" in t for t in entry["disclosed_exactly"])


@pytest.mark.parametrize("column", ["nobody", "half"])
def test_ids_are_looked_at_before_anything_is_charged(column: str, tmp_path: Path) -> None:
    told = people() | {"half": [None, *"abcdefghi"]}
    s = td.Session(td.Table(told, DOMAIN), OPEN, epsilon=2)
    with pytest.raises(DataError):
        s.release(lasting(tmp_path, id=column), epsilon=1)
    assert s.ledger.spent == 0


def test_a_store_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("canary")
    s = td.Session(td.Table(people(), DOMAIN), OPEN, epsilon=2)
    with pytest.raises(DataError, match="is no file of permanent answers"):
        s.release(lasting(tmp_path, store=str(tmp_path / "rows.csv")), epsilon=1)
    with pytest.raises(OutputError, match="no file"):
        s.release(lasting(tmp_path, store=str(tmp_path)), epsilon=1)
    assert s.ledger.spent == 0 and (tmp_path / "rows.csv").read_text() == "canary"


# ---------- what a manifest says of private channels ----------


def test_private_priors_and_digests_of_private_channels_are_withheld(tmp_path: Path) -> None:
    domain = line(5)
    policy = td.Policy(domain, td.Full())
    rows = {"x": [0, 1, 2, 3, 4, 4]}
    counts = [101, 102, 103, 104, 105]
    given = td.channels.least_distortion(counts, epsilon=1, secrets=td.Full(), domain=domain)
    declared = {"kind": "least-distortion", "prior": counts}
    remapped = {"kind": "exponential", "remap": {"prior": counts}}
    for at, channel in enumerate((declared, remapped, given)):
        s = td.Session(td.Table(rows, domain), policy, epsilon=1, ledger=tmp_path / f"{at}.ledger")
        made = s.release(td.Rows("x", channel=channel), epsilon=1, guarantee="measured")
        written = made.save(tmp_path / str(at)).read_text() + json.dumps(
            [e.body for e in s.ledger.entries], default=str
        )
        # A number of its own: digests in hexadecimal may hold any digits.
        assert not re.search(r"(?<![0-9a-f])103(?![0-9a-f])", written) and given.digest not in written
        [entry] = json.loads((tmp_path / str(at) / "manifest.json").read_text())["releases"]
        assert entry["channels"][0]["evidence"] is None and entry["files"].keys() == {"parquet"}


def test_words_speak_of_the_secrets_of_the_release_itself(tmp_path: Path) -> None:
    domain = line(10)
    near = td.channels.exponential(domain, 1, secrets=td.Within(1))
    s = td.Session(td.Table({"x": [1, 2]}, domain), td.Policy(domain, td.Full()), epsilon=20)
    proved = s.release(td.Rows("x", channel=near), epsilon=9, name="proved").save(tmp_path / "a")
    free = s.release(td.Rows("x", channel=near), guarantee="measured", name="free").save(tmp_path / "b")
    [one], [two] = (json.loads(p.read_text())["releases"] for p in (proved, free))
    told = one["channels"][0]
    assert f"(epsilon {np.ceil(told['realised'] * 1e4) / 1e4:g})" in told["evidence"]["words"][0]
    assert told["realised"] > 2
    assert two["channels"][0]["evidence"]["words"][0].startswith("Nothing is proved")


def test_what_a_policy_leaves_open_is_said_to_leave() -> None:
    domain = line(6)
    blocks = td.Policy(domain, td.Partition(blocks=2))
    found = priced(td.Rows("x", channel={"kind": "randomised-response"}), blocks, Loss("epsilon", F(1)))
    assert any("which part of x" in text for text in found.disclosed())
    planar = priced(td.Rows("x", channel={"kind": "planar-geometric"}), blocks, Loss("epsilon", F(1)))
    assert not planar.disclosed()
    missing = td.Domain(x=td.Integer(0, 5, missing="public"))
    told = priced(
        td.Rows("x", channel={"kind": "planar-geometric"}),
        td.Policy(missing, td.Within(1)),
        Loss("epsilon", F(1)),
    )
    assert told.disclosed() == ["whether the x of every record is missing"]


# ---------- mistakes that are seen before a charge ----------


def test_two_places_with_one_secret_each_have_their_own_channel() -> None:
    domain = td.Domain(who=td.Categorical(["a", "b"]), home=td.Integer(0, 4), work=td.Integer(0, 6))
    rows = {"who": ["a", "b"] * 20, "home": [0, 4] * 20, "work": [2, 5] * 20}
    fitted = {"kind": "least-leaking", "secret": "who", "distortion": 1}
    s = td.Session(td.Table(rows, domain), td.Policy(domain, td.AttributeWise()), epsilon=1)
    made = s.release(td.Rows("home", "work", channel=fitted), guarantee="measured")
    for channel, places in zip(made.channels, ("home", "work"), strict=True):
        joint = np.zeros((2, domain[places].size))
        for who, place in zip(rows["who"], rows[places], strict=True):
            joint["ab".index(who), place] += 1
        assert channel.distortion(joint.sum(axis=0)) <= 1 + 1e-9


def test_a_prior_must_be_a_histogram_of_the_same_place() -> None:
    domain = td.Domain(x=td.Integer(0, 4), y=td.Integer(0, 4))
    policy = td.Policy(domain, td.AttributeWise())
    taking = td.Rows("x", channel=EXPONENTIAL | {"remap": {"prior": {"answer": "a"}}})
    for query in (
        td.CDF("x"),
        td.Histogram("y"),
        td.Histogram("x", bins={"x": 2}),
        td.Histogram("x", by="y"),
    ):
        with pytest.raises(SpecificationError, match="must be a histogram of x"):
            price_all(
                policy,
                [Request(query, Loss("epsilon", F(1)), "a"), Request(taking, Loss("epsilon", F(1)), "b")],
            )


@pytest.mark.parametrize(
    ("channel", "text"),
    [
        ({"kind": 3}, "a text, not a number"),
        (EXPONENTIAL | {"remap": {"prior": {"foo": 1}}}, "'uniform', a list of numbers"),
        (EXPONENTIAL | {"remap": {"prior": ["1e400"], "source": "public"}}, "beyond ±10"),
        ({"kind": "least-leaking", "secret": "ill", "distortion": 1, "tolerance": "abc"}, "tolerance"),
        ({"kind": "least-leaking", "secret": "ill", "distortion": 1, "seconds": -1}, "a number above 0"),
        ({"kind": "least-distortion", "metric": {"haversine": {}}}, "places of one Point"),
    ],
    ids=["kind", "prior", "huge", "tolerance", "seconds", "metric"],
)
def test_options_without_meaning_are_named_before_a_charge(channel: Any, text: str) -> None:
    with pytest.raises(SpecificationError, match=text):
        priced(td.Rows("x", channel=channel), OPEN, Loss("epsilon", F(1)))


def test_a_kind_that_needs_an_epsilon_says_so() -> None:
    with pytest.raises(SpecificationError, match="epsilon: is missing"):
        priced(td.Rows("x", channel=EXPONENTIAL), OPEN, Loss("epsilon", F(0)), "measured")


def test_a_saved_table_whose_columns_are_out_of_order_is_damaged(tmp_path: Path) -> None:
    td.channels.randomised_response(line(3), 1).save(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz") as old, zipfile.ZipFile(tmp_path / "b.npz", "w") as new:
        for name in old.namelist():
            raw = old.read(name)
            if name == "law.columns.npy":
                held = io.BytesIO()
                np.save(held, np.array([1, 1, 2]))
                raw = held.getvalue()
            new.writestr(name, raw)
    with pytest.raises(DataError, match="is damaged"):
        td.Channel.load(tmp_path / "b.npz")


# ---------- what a second look found ----------


def test_a_file_of_a_channel_that_private_rows_shaped_proves_nothing(tmp_path: Path) -> None:
    domain = line(5)
    path = tmp_path / "a.npz"
    td.channels.least_distortion([1, 2, 3, 4, 5], epsilon=1, secrets=td.Full(), domain=domain).save(path)
    declared = {"kind": "file", "path": str(path)}
    with pytest.raises(SpecificationError, match="private prior"):
        asked(declared, td.Policy(domain, td.Full()), 2)
    s = td.Session(td.Table({"x": [0, 4]}, domain), td.Policy(domain, td.Full()), epsilon=1)
    made = s.release(td.Rows("x", channel=declared), guarantee="measured")
    written = made.save(tmp_path / "out").read_text()
    assert str(tmp_path) not in written and "a.npz" in written


def test_a_remapped_channel_loses_what_it_lost_before() -> None:
    e = 1e-200
    first = td.Channel.of_matrix([[1 - e, e], [1, 0]], line(2))
    second = td.Channel.of_matrix([[1, 0], [1 - e, e]], line(2))
    for made in (first.then(second), first.then(second).remap([1, 1], source="public")):
        assert made.epsilon(td.Full()) == float("inf")
    with pytest.raises(PolicyError, match="tell values apart for certain"):
        asked(first.then(second), td.Policy(line(2), td.Full()), 1)


def test_blocks_that_are_told_apart_are_dear_under_a_later_policy_however_small_the_budget(
    tmp_path: Path,
) -> None:
    domain, rows = line(6), {"x": [0, 1, 4, 5]}
    blocks = td.Policy(domain, td.Partition(blocks=2))
    s = td.Session(td.Table(rows, domain), blocks, epsilon=1, ledger=tmp_path / "a.ledger")
    s.release(td.Rows("x", channel={"kind": "randomised-response"}), epsilon=F(1, 10**9))
    with pytest.raises(PolicyError, match="for certain"):
        td.Session(
            td.Table(rows, domain), td.Policy(domain, td.Full()), epsilon=1, ledger=tmp_path / "a.ledger"
        )


@pytest.mark.parametrize("first", ["open", "secret"])
def test_ids_of_a_declared_attribute_are_exact_for_every_policy_on_the_ledger(
    first: str, tmp_path: Path
) -> None:
    rows, book = td.Table(people(), DOMAIN), tmp_path / "a.ledger"
    if first == "open":
        s = td.Session(rows, OPEN, epsilon=2, ledger=book)
        made = s.release(lasting(tmp_path, id="ill"), epsilon=1)
        assert any("the ill of every person" in t for t in made.disclosures())
        with pytest.raises(PolicyError):
            td.Session(rows, SECRET, epsilon=2, ledger=book)
    else:
        td.Session(rows, SECRET, epsilon=2, ledger=book).release(td.Histogram("ill"), epsilon="1/2")
        with pytest.raises(PolicyError):
            td.Session(rows, OPEN, epsilon=2, ledger=book).release(lasting(tmp_path, id="ill"), epsilon=1)


def test_a_copy_from_between_the_charge_and_the_draw_pays_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tetraodon.channels.permanent import Permanent
    from tetraodon.rows import making

    path = tmp_path / "a.permanent"
    Permanent.open(path).close()
    copies: list[bytes] = []
    whole = making.drawn

    def copied(*told: Any) -> Any:
        copies.append(path.read_bytes())
        return whole(*told)

    monkeypatch.setattr(making, "drawn", copied)
    s = td.Session(td.Table(people(), DOMAIN), OPEN, epsilon=2)
    s.release(lasting(tmp_path), epsilon="1/2", name="one")
    path.write_bytes(copies[0])
    s.release(lasting(tmp_path), epsilon="1/2", name="two")
    assert s.ledger.spent == 1
    assert s.release(lasting(tmp_path), epsilon="1/2", name="three").spent.is_zero


def test_what_fails_after_the_charge_says_that_it_was_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tetraodon.rows import making

    def fails(*told: Any) -> Any:
        raise OutputError("the store is gone.")

    monkeypatch.setattr(making, "drawn", fails)
    s = td.Session(td.Table(people(), DOMAIN), OPEN, epsilon=2)
    with pytest.raises(OutputError, match=r"the store is gone.*charged already"):
        s.release(lasting(tmp_path), epsilon="1/2", name="one")
    assert s.ledger.spent == F(1, 2)


def test_a_joint_place_says_what_no_secret_covers() -> None:
    domain = td.Domain(a=td.Integer(0, 1), b=td.Integer(0, 2))
    with pytest.raises(SpecificationError, match="b is no secret"):
        priced(
            td.Rows(["a", "b"], channel={"kind": "randomised-response"}),
            td.Policy(domain, td.AttributeWise(a=td.Full())),
            Loss("epsilon", F(1)),
        )
    law = np.zeros((6, 6))
    law[:3, :3] = law[3:, 3:] = 1 / 3
    pairs = [((a, b), (a, b + 1)) for a in range(2) for b in range(2)]
    blocks = td.Policy(domain, td.Edges(pairs))
    found = priced(
        td.Rows(["a", "b"], channel=td.Channel.of_matrix(law, domain)), blocks, Loss("epsilon", F(1))
    )
    assert found.disclosed() == ["which part of a and b every record lies in, of those that no secret joins"]


def test_known_counts_make_no_promise_per_person() -> None:
    domain = td.Domain(x=td.Integer(0, 3), y=td.Integer(0, 1))
    known = td.Policy(domain, td.AttributeWise(x=td.Full()), constraints=[td.MarginalConstraint("x")])
    plain = td.Policy(domain, td.AttributeWise(x=td.Full()))
    rows = td.Rows("x", channel={"kind": "randomised-response"})
    assert priced(rows, plain, Loss("epsilon", F(1))).per_person is not None
    assert priced(rows, known, Loss("epsilon", F(1))).per_person is None


def test_two_given_channels_may_share_unevenly() -> None:
    domain = td.Domain(x=td.Integer(0, 3), y=td.Integer(0, 3))
    told = [
        td.channels.randomised_response(domain.select(n), e) for n, e in (("x", F(9, 10)), ("y", F(1, 10)))
    ]
    policy = td.Policy(domain, td.Full())
    found = priced(td.Rows("x", "y", channel=told), policy, Loss("epsilon", F(1)))
    assert found.spent.amount == 1
    with pytest.raises(SpecificationError, match="lose up to"):
        priced(td.Rows("x", "y", channel=told), policy, Loss("epsilon", F(999, 1000)))


def test_priors_of_other_persons_stay_where_they_are(tmp_path: Path) -> None:
    domain = line(5)
    declared = {"kind": "least-distortion", "prior": [101, 102, 103, 104, 105], "source": "disjoint"}
    s = td.Session(td.Table({"x": [0, 4]}, domain), td.Policy(domain, td.Full()), epsilon=1)
    written = s.release(td.Rows("x", channel=declared), epsilon=1).save(tmp_path / "out").read_text()
    assert "104" not in written and '"withheld": "disjoint"' in written
