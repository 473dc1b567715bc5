"""Channels learned from released rows: what is refused, and the floor under them, with training replaced by rules that are known."""

from __future__ import annotations

import itertools
import json
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tetraodon as td
from tetraodon.errors import PolicyError, Refused, SpecificationError, Unsupported
from tetraodon.ledger import verify
from tetraodon.loss import Loss
from tetraodon.report import render
from tetraodon.rows import declared
from tetraodon.rows import learned as learning
from tetraodon.rows.query import rows_from_spec
from tetraodon.rows.strategy import priced

F = Fraction
PLANE = td.Point("lat", "lon", box=((0, 6), (0, 5)), cell=1, metric="planar", unit="km")
DOMAIN = td.Domain(region=td.Categorical(["n", "s"]), colour=td.Categorical(["red", "blue"]), home=PLANE)
NEAR = td.Policy(DOMAIN, td.AttributeWise(home=td.Within(1)))
LEARNED = {"kind": "learned", "secret": "region", "distortion": "1 km"}
FLOOR = LEARNED | {"floor": "planar-geometric"}


def rows(n: int = 200, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "region": rng.choice(["n", "s"], n).tolist(), "colour": rng.choice(["red", "blue"], n).tolist(),
        "lat": (6 * rng.random(n)).tolist(), "lon": (5 * rng.random(n)).tolist(), "person": [f"canary{i}" for i in range(n)],
    }  # fmt: skip


def session(policy: Any = NEAR, total: Any = 4, told: Any = None, **more: Any) -> Any:
    return td.Session(
        td.Table(rows() if told is None else told, policy.domain), policy, epsilon=total, **more
    )


@pytest.fixture(autouse=True)
def extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra were there: nothing here trains."""
    monkeypatch.setattr(learning, "find_spec", lambda name: object())


def by_rule(monkeypatch: pytest.MonkeyPatch, rule: Any) -> list[Any]:
    """Training replaced by a rule from joint counts to a matrix; returns what it is given."""
    seen: list[Any] = []

    def made(joint: Any, domain: Any, told: Any, metric: Any, source: str) -> Any:
        seen.append((np.array(joint), source))
        return td.Channel.of_matrix(rule(np.asarray(joint)), domain, name="learned", source=source)

    monkeypatch.setattr(declared, "learned", made)
    return seen


def as_it_is(joint: Any) -> Any:
    return np.eye(joint.shape[1])


# ---------- refused ----------


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"secret": None}, r"channel\.secret: is missing"),
        ({"distortion": None}, r"channel\.distortion: is missing"),
        ({"outputs": 0}, r"channel\.outputs: a whole number from 1 to 1,024"),
        ({"outputs": 2000}, r"channel\.outputs: a whole number from 1 to 1,024"),
        ({"steps": "1.5"}, r"channel\.steps: a whole number"),
        ({"seed": -1}, r"channel\.seed: a whole number from 0"),
        ({"held_out": 1}, r"channel\.held_out: a share of the rows from 0 to 0\.9"),
        ({"prior": "uniform"}, "no key 'prior'"),
        ({"floor": "exponential"}, "no kind of channel 'exponential'"),
        ({"floor": {"per": "1 km"}}, r"channel\.floor\.epsilon: a number above 0"),
        ({"floor": {"epsilon": 1, "pr": "1 km"}}, "no key 'pr'"),
        ({"metric": {"l3": {}}}, "metric: one of"),
    ],
    ids=[
        "secret", "distortion", "no-outputs", "outputs", "steps", "seed", "held", "prior", "floor", "per", "key", "metric",
    ],
)  # fmt: skip
def test_options_are_refused_by_name(more: dict[str, Any], text: str) -> None:
    told = {k: v for k, v in (LEARNED | more).items() if v is not None}
    with pytest.raises(SpecificationError, match=text):
        td.Rows("home", channel=told)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"secret": "regin"}, "no attribute 'regin'"),
        ({"secret": "home"}, r"'home' is replaced itself; name another attribute\."),
        ({"distortion": "1 USD"}, "declared in km, not in USD"),
        ({"distortion": 0}, "above 0; with 0 values would leave as they are"),
        ({"metric": {"discrete": {}}}, "where a channel is learned"),
        ({"metric": {"l2": {"home": 2}}}, "without weights"),
    ],
    ids=["secret", "itself", "unit", "zero", "discrete", "weights"],
)
def test_what_does_not_fit_is_refused_before_anything_is_read(more: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecificationError, match=text):
        session().plan(td.Rows("home", channel=LEARNED | more))


def test_values_without_a_place_and_too_many_cells_are_refused() -> None:
    both = td.Policy(DOMAIN, td.AttributeWise(colour=td.Full()))
    with pytest.raises(SpecificationError, match="'colour' have no place"):
        priced(
            td.Rows("colour", channel=LEARNED | {"distortion": 1}), both, Loss("epsilon", F(0)), "measured"
        )
    wide = td.Domain(
        region=td.Categorical([str(i) for i in range(200)]),
        home=td.Point("lat", "lon", box=((0, 400), (0, 400)), cell=1, metric="planar", unit="km"),
    )
    policy = td.Policy(wide, td.AttributeWise(home=td.Within(1)))
    for more, text in (
        ({}, r"more than 2\^24 probabilities"),
        ({"outputs": 2}, r"more than 10\^7 joint cells"),
    ):
        with pytest.raises(Unsupported, match=text):
            priced(td.Rows("home", channel=LEARNED | more), policy, Loss("epsilon", F(0)), "measured")


@pytest.mark.parametrize("missing", ["jax", "optax"])
@pytest.mark.parametrize("channel", [LEARNED, FLOOR], ids=["plain", "floor"])
def test_without_the_extra_it_is_named_and_nothing_is_spent(
    missing: str, channel: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, missing, None)
    s = session(ledger=tmp_path / "a.ledger")
    more = {"guarantee": "measured"} if channel is LEARNED else {"epsilon": 1}
    with pytest.raises(Unsupported, match=r"pip install 'tetraodon\[learn\]'\. Nothing was spent"):
        s.release(td.Rows("home", channel=channel), **more)
    assert s.ledger.spent == 0 and not s.remaining.outside and len(s.ledger.entries) == 1


def test_it_is_never_called_proved_unless_there_is_a_floor() -> None:
    for more in ({"epsilon": 1}, {"epsilon": 1, "guarantee": "measured"}):
        with pytest.raises(
            SpecificationError, match=r"learned from these very rows.*guarantee = 'measured' without epsilon"
        ):
            session().release(td.Rows("home", channel=LEARNED), **more)
    with pytest.raises(SpecificationError, match="is there to prove an epsilon"):
        session().release(td.Rows("home", channel=FLOOR), guarantee="measured")


def test_a_floor_is_refused_where_training_reads_a_secret() -> None:
    both = td.Policy(DOMAIN, td.AttributeWise(region=td.Full(), home=td.Within(1)))
    with pytest.raises(
        PolicyError, match="'region' is protected by this policy, and training reads it as it is"
    ):
        session(both).plan(td.Rows("home", channel=FLOOR), epsilon=1)
    session(both).plan(td.Rows("home", channel=FLOOR | {"secret": "colour"}), epsilon=1)
    # A known count of both ties them: where a home moves, somebody's region may have to move as well.
    fact = td.CountConstraint(where={"region": ["n"], "home": [(0.5, 0.5)]}, answer=3)
    tied = td.Policy(DOMAIN, td.AttributeWise(home=td.Within(1)), [fact])
    with pytest.raises(PolicyError, match="'region' is protected by this policy"):
        priced(td.Rows("home", channel=FLOOR), tied, Loss("epsilon", F(1)))


def test_permanent_answers_need_a_channel_that_is_not_made_anew(tmp_path: Path) -> None:
    lasting = {"id": "person", "epoch": "2025", "store": str(tmp_path / "x")}
    with pytest.raises(Unsupported, match="made anew each time"):
        session().plan(td.Rows("home", channel=FLOOR, permanent=lasting), epsilon=1)


# ---------- what it costs ----------


def test_a_floor_is_priced_as_the_channel_that_it_is() -> None:
    alone = priced(td.Rows("home", channel={"kind": "planar-geometric"}), NEAR, Loss("epsilon", F(1)))
    found = priced(td.Rows("home", channel=FLOOR), NEAR, Loss("epsilon", F(1)))
    assert found.cost == alone.cost and found.by_secret == alone.by_secret and found.guarantee == "proved"
    ends = np.array([0, 3]), np.array([1, 29])
    [one], [other] = found.terms, alone.terms
    assert one.move(*ends, DOMAIN).tolist() == other.move(*ends, DOMAIN).tolist()
    [part] = priced(td.Rows("home", channel=FLOOR, rows_per_person=2), NEAR, Loss("epsilon", F(1))).parts
    assert part.channel is not None and F("0.49") < part.channel.epsilon(td.Within(1)) <= F(1, 2)


def test_a_floor_may_state_an_epsilon_of_its_own() -> None:
    def told(floor: Any, amount: Any) -> Any:
        return priced(td.Rows("home", channel=LEARNED | {"floor": floor}), NEAR, Loss("epsilon", F(amount)))

    [part] = told({"epsilon": "1/2", "per": "1 km"}, 1).parts
    assert part.channel is not None and part.channel.epsilon_per("km") <= F(1, 2)
    [part] = told({"epsilon": "1/2"}, 1).parts
    assert part.channel is not None and part.channel.epsilon(td.Within(1)) <= F(1, 2)
    with pytest.raises(
        SpecificationError,
        match=r"floor: loses up to 0\.7\d+ along an edge of this policy, where epsilon leaves 0\.5 ",
    ):
        told(
            {"epsilon": "1/2", "per": "1 km"}, "1/2"
        )  # cells that are joined have middles up to 1.4 km apart


def test_a_plan_names_both_steps_and_reads_nothing() -> None:
    s = session()
    plan = s.plan(td.Rows("home", keep="colour", channel=FLOOR), epsilon=1)
    told = repr(plan)
    assert "planar geometric, then learned from its outputs (post-processing), made when" in told
    assert "epsilon 1 per person" in told and plan.cost.value == 1 and s.ledger.spent == 0
    assert any(
        "the region of the records beside what the floor let out" in line
        for line in plan.to_spec()["disclosed_exactly"]
    )
    spec = plan.strategy.query.to_spec()
    assert rows_from_spec(json.loads(json.dumps(spec)), "x").to_spec() == spec


# ---------- what is trained on, and what leaves ----------


def test_training_sees_what_the_floor_let_out_and_rows_stay_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = by_rule(monkeypatch, as_it_is)
    told = rows(3000) | {"lat": [0.5] * 3000, "lon": [0.5] * 3000}
    s = session(told=told, ledger=tmp_path / "a.ledger")
    made = s.release(td.Rows("home", keep=["region", "colour"], channel=FLOOR), epsilon="1/2")
    [(joint, source)] = seen
    assert joint.shape == (2, 30) and joint.sum() == 3000 and source == "released"
    assert (joint.sum(axis=0) > 0).sum() > 10  # everybody is at one place, and that is not what was seen
    frame = made.to_frame()
    out = Counter(zip(frame["region"], frame["lat"], frame["lon"], strict=True))
    names = {0: "n", 1: "s"}
    wanted = {
        (names[i], z // 5 + 0.5, z % 5 + 0.5): int(joint[i, z])
        for i in range(2)
        for z in range(30)
        if joint[i, z]
    }
    assert dict(out) == wanted
    pairs = Counter(zip(frame["region"], frame["colour"], strict=True))
    assert pairs == Counter(zip(told["region"], told["colour"], strict=True))
    assert made.guarantee == "proved" and s.ledger.spent == F(1, 2) and verify(tmp_path / "a.ledger", []).ok


def test_an_attribute_that_only_training_reads_does_not_leave(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def middle(joint: Any) -> Any:
        found = np.zeros((30, 30))
        found[:, 12] = 1.0
        return found

    by_rule(monkeypatch, middle)
    s = session()
    made = s.release(td.Rows("home", channel=FLOOR), epsilon=1, name="places")
    frame = made.to_frame()
    assert list(frame.columns) == ["lat", "lon"] and set(frame["lat"]) == {2.5} and set(frame["lon"]) == {2.5}
    assert s.remaining.outside == (
        "the region of the records beside what the floor let out of them, as far as a channel learned from both shows it",
    )
    [channel] = made.channels
    assert channel.source == "released" and not channel.is_private and channel.epsilon(td.Within(1)) <= 1
    path = made.save(tmp_path)
    [entry] = json.loads(path.read_text())["releases"]
    [told] = entry["channels"]
    assert entry["guarantee"] == "proved" and entry["spent"]["amount"] == "1" and told["source"] == "released"
    assert (
        "then learned from its outputs (post-processing)" in entry["mechanism_name"]
        and told["asked"]["epsilon"] == "1"
    )
    assert any(
        w.startswith("Proved: the second step was learned from what the first one let out, and from region")
        for w in told["evidence"]["words"]
    )
    assert any("what is published 0 bits" in w for w in told["evidence"]["words"])
    saved = td.Channel.load(tmp_path / told["file"])
    assert saved.digest == channel.digest and saved.epsilon(td.Within(1)) == channel.epsilon(td.Within(1))
    page = render(path)
    assert "whatever is learned from these is post-processing" in page and "canary" not in page


def test_a_later_policy_that_protects_what_was_trained_on_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    by_rule(monkeypatch, as_it_is)
    session(ledger=tmp_path / "a.ledger").release(td.Rows("home", channel=FLOOR), epsilon=1)
    later = td.Policy(DOMAIN, td.AttributeWise(region=td.Full(), home=td.Within(1)))
    with pytest.raises(PolicyError, match="exactly in part, which edges of this policy change"):
        session(later, ledger=tmp_path / "a.ledger")


def test_training_that_fails_after_the_charge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any) -> Any:
        raise Refused("learn.outputs: so few output points cannot keep the distortion.")

    monkeypatch.setattr(declared, "learned", failing)
    s = session()
    with pytest.raises(Refused, match="The whole run was charged already and none of it is published"):
        s.release(td.Rows("home", channel=FLOOR), epsilon=1)
    assert s.ledger.spent == 1


def test_why_nothing_was_learned_from_private_rows_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(joint: Any, *args: Any) -> Any:
        raise Refused(f"learn.distortion: at least {joint.max()} is needed.")

    monkeypatch.setattr(declared, "learned", failing)
    with pytest.raises(Refused) as caught:
        session().release(td.Rows("home", channel=LEARNED), guarantee="measured")
    assert "no learned channel was found" in str(caught.value) and not any(
        c.isdigit() for c in str(caught.value)
    )


# ---------- the other order proves nothing ----------


def mean(cells: tuple[int, ...]) -> int:
    """A training that is as simple as can be: every row goes to the cell nearest to the mean (ties up), the best constant for
    squared distances."""
    return int(np.floor(np.mean(cells) + 0.5))


def laws(rows_: tuple[int, ...], post: Any, floor: bool) -> dict[tuple[int, ...], float]:
    """The law of everything that comes out, by enumeration.

    Args:
        post: P(output | cell), ε-private along the edges.
        floor: whether rows go through it first and training sees the outcome, or training comes first.
    """
    found: dict[tuple[int, ...], float] = {}
    size = len(post)
    for out in itertools.product(range(size), repeat=len(rows_)):
        if floor:
            p = float(np.prod([post[w, y] for w, y in zip(rows_, out, strict=True)]))
            key = (mean(out),) * len(rows_)
        else:
            p = float(np.prod([post[mean(rows_), z] for z in out]))
            key = out
        found[key] = found.get(key, 0.0) + p
    return found


def loss(one: dict[Any, float], other: dict[Any, float]) -> float:
    told = {k for k in {*one, *other} if one.get(k, 0) > 0 or other.get(k, 0) > 0}
    with np.errstate(divide="ignore"):
        return float(max(abs(np.log(one.get(k, 0.0)) - np.log(other.get(k, 0.0))) for k in told))


def test_a_private_channel_after_one_that_was_learned_from_private_rows_proves_nothing() -> None:
    """Two tables that differ in one record along one edge; each row's last channel is ε-private along the edges.

    Where edges join cells within blocks, training on (0, 2) sends all to the first block and on (1, 2) to the second: the
    outputs differ *for certain*. Where any two cells are joined, n rows lose n ε instead of ε. With the floor first, no pair of
    neighbours loses more than ε.
    """
    domain, e = td.Domain(x=td.Integer(0, 3)), 0.5
    blocks, full = td.Partition(blocks=2), td.Full()
    within = td.channels.exponential(domain, F(1, 2), secrets=blocks)
    assert within.epsilon(blocks) <= e
    pair = laws((0, 2), within.matrix, False), laws((1, 2), within.matrix, False)
    assert not {k for k, p in pair[0].items() if p > 0} & {k for k, p in pair[1].items() if p > 0}
    assert loss(*pair) == np.inf
    any_two = td.channels.randomised_response(domain, F(1, 2))
    assert any_two.epsilon(full) <= e
    n = 4
    pair = laws((0, 0, 0, 1), any_two.matrix, False), laws((0, 0, 0, 3), any_two.matrix, False)
    assert loss(*pair) == pytest.approx(n * e, rel=1e-9)
    for post, edges in (
        (within.matrix, [(0, 1), (2, 3)]),
        (any_two.matrix, list(itertools.combinations(range(4), 2))),
    ):
        worst = 0.0
        for rest in itertools.product(range(4), repeat=2):
            for a, b in edges:
                worst = max(worst, loss(laws((a, *rest), post, True), laws((b, *rest), post, True)))
        assert 0.1 < worst <= e * (1 + 1e-9)
