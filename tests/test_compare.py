"""Policies compared and tuned before anything is spent: plans are the truth, and brute force where there is some."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as settings_of
from hypothesis import strategies as st

import tetraodon as td
from tetraodon.compare import in_fewest_cells
from tetraodon.errors import SpecificationError
from tetraodon.frontiers import amount_at, read_target
from tetraodon.loss import Loss
from tetraodon.pricing import candidates, found
from tetraodon.report import render
from tetraodon.tuning import compared, policies_of, tuned
from tetraodon.weaker import given_up, strongest

DOMAIN = td.Domain(age=td.Integer(0, 39, unit="years"), sex=td.Categorical(["f", "m"]))
SECRETS: dict[str, Any] = {
    "full": td.Full(),
    "attributes": td.AttributeWise(),
    "within 10": td.Within(10, on="age"),
    "within 3": td.Within(3, on="age"),
    "next": td.Within(1, on="age"),
    "blocks": td.Partition(blocks={"age": 4}),
}
POLICIES = {name: td.Policy(DOMAIN, secrets) for name, secrets in SECRETS.items()}
COUNT = td.CountConstraint({"sex": ["m"]}, answer=2)
# Searches for stated answers take long: fewer cells, and fewer secrets.
FEW = td.Domain(age=td.Integer(0, 8), sex=td.Categorical(["f", "m"]))
NEAR = {
    name: td.Policy(FEW, secrets)
    for name, secrets in (
        ("full", td.Full()),
        ("within 3", td.Within(3, on="age")),
        ("next", td.Within(1, on="age")),
    )
}
TIED = {
    name: td.Policy(DOMAIN, secrets, constraints=[COUNT])
    for name, secrets in (("full", td.Full()), ("within 3", td.Within(3, on="age")))
}
QUERIES = [
    td.CDF("age"),
    td.CDF("age", by="sex"),
    td.Histogram("age"),
    td.Ranges("age"),
    td.Ranges("age", [(0, 3), (4, 7)]),
    td.Quantiles("age", [0.5]),
    td.Sum("age", by="sex"),
    td.Mean("age"),
    td.Marginals([("age", "sex")]),
]


def planned(policy: td.Policy, query: Any, **loss: Any) -> Any:
    table = td.Table({"age": [1, 2, 2, 7], "sex": ["f", "m", "m", "f"]}, policy.domain)
    total: dict[str, Any] = {"epsilon": 1} if "epsilon" in loss else {"rho": 1, "delta": "0.000001"}
    return td.Session(table, policy, **total).plan(query, **loss)


def told(rows: Any) -> list[tuple[Any, float, float]]:
    return [(r.mechanism.to_spec(), r.half_width, r.expected_error) for r in rows]


# ---------- the frontier is what plans say ----------


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.title)
@pytest.mark.parametrize(
    "amounts", [("1/3", 2), pytest.param(("0.1", 1, "7/5"), marks=pytest.mark.slow)], ids=str
)
def test_every_point_is_what_a_plan_says(query: Any, amounts: Any) -> None:
    made = td.frontier(query, NEAR, amounts)
    for name, policy in NEAR.items():
        for amount in made.losses:
            here = [p for p in made.points if (p.policy, p.epsilon) == (name, amount)]
            assert told(here) == told(planned(policy, query, epsilon=amount))
            assert made.best(name, amount) == here[0] and here[0].rho is None


@pytest.mark.parametrize("query", [td.CDF("age", by="sex"), td.Histogram("age")], ids=str)
def test_also_with_known_counts_and_in_rho(query: Any) -> None:
    for made in (td.frontier(query, TIED), td.frontier(query, TIED, rhos=["0.05", 1])):
        for name, policy in TIED.items():
            for amount in made.losses:
                here = [p for p in made.points if p.policy == name and p.loss.amount == amount]
                assert told(here) == told(planned(policy, query, **{made.unit: amount}))
    assert {p.rho for p in made.points} == {Fraction(1, 20), Fraction(1)}


@settings_of(max_examples=20, deadline=None)
@given(theta=st.integers(1, 39), amount=st.fractions(Fraction(1, 50), 2, max_denominator=200))
def test_a_named_mechanism_has_the_noise_that_brute_force_gives(theta: int, amount: Fraction) -> None:
    """Ordered: every cumulative count carries one draw of scale θ/ε, but the last, which is the public number of records."""
    policy = td.Policy(DOMAIN, td.Within(theta, on="age"))
    [point] = td.frontier(td.CDF("age"), policy, [amount], ["ordered"]).points
    error, width = ordered(theta, amount)
    assert math.isclose(point.expected_error, error, rel_tol=1e-9)
    assert point.half_width == width


def ordered(theta: int, amount: Fraction) -> tuple[float, int]:
    """The variance by adding up the law of the noise, and the ± that no sum of Laplace draws of that variance needs more than."""
    ratio = math.exp(-float(amount) / theta)
    mass, square, z = 1.0, 0.0, 1
    while ratio**z > 1e-18:
        mass, square, z = mass + 2 * ratio**z, square + 2 * z * z * ratio**z, z + 1
    error = square / mass * 39 / 40
    return error, math.ceil(-math.log(0.05) * math.sqrt(error / 2) - 1e-9)


def test_less_secret_is_more_accurate() -> None:
    """The trade-off of the paper: at every ε the ± falls as θ falls."""
    domain = td.Domain(loss=td.Integer(0, 4356, unit="USD"))
    policies = {str(t): td.Policy(domain, td.Within(t)) for t in (1, 50, 1000)}
    policies["full"] = td.Policy(domain, td.Full())
    made = td.frontier(td.CDF("loss"), policies, ["0.1", "0.5", 1])
    for amount in made.losses:
        widths = [made.best(name, amount).half_width for name in policies]
        assert all(a < b for a, b in pairwise(widths))
    least = [float(e or 0) for e in made.least("± 100").values()]
    assert least == sorted(least) and least[0] < least[-1] / 10


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.title)
@pytest.mark.parametrize("target", [20, pytest.param("± 700", marks=pytest.mark.slow)], ids=str)
def test_the_least_loss_is_enough_and_less_is_not(query: Any, target: Any) -> None:
    made = td.frontier(query, NEAR, [1])
    wished = read_target(target, made.answer_unit)
    for name, amount in made.least(target).items():
        assert amount is not None and amount > 0
        assert planned(NEAR[name], query, epsilon=amount)[0].half_width <= wished
        assert planned(NEAR[name], query, epsilon=amount * Fraction(99, 100))[0].half_width > wished
        digits = amount / Fraction(10) ** (math.floor(math.log10(float(amount) * 1.000001)) - 2)
        assert digits.denominator == 1 and 100 <= digits < 1000


def test_the_least_loss_of_one_draw_by_brute_force() -> None:
    policy = td.Policy(DOMAIN, td.Within(7, on="age"))
    [least] = td.frontier(td.CDF("age"), policy, [1], ["ordered"]).least(25).values()

    first = next(i for i in range(900 * 11, 900 * 13) if ordered(7, amount_at(i))[1] <= 25)
    assert least == amount_at(first)


def test_what_is_no_secret_costs_nothing_and_what_is_out_of_reach_is_said() -> None:
    ages = {"ages": td.Policy(DOMAIN, td.AttributeWise(sex=td.Full())), "full": POLICIES["full"]}
    made = td.frontier(td.CDF("age"), ages)
    assert made.best("ages", 1).half_width == 0 and made.least(1)["ages"] == 0
    tiny = td.Policy(td.Domain(age=td.Integer(0, 10**4)), td.Full())
    assert td.frontier(td.Sum("age"), tiny, [1]).least("0.5") == {"policy": None}


@pytest.mark.parametrize("query", QUERIES[:4], ids=lambda q: q.title)
@pytest.mark.parametrize("secrets", [td.Full(), td.Within(1, on="age"), td.Within(10, on="age")], ids=str)
@pytest.mark.parametrize("amount", ["1/50", "7/5", "2"])
def test_what_is_found_at_the_reference_is_as_good_as_a_search_of_its_own(
    query: Any, secrets: Any, amount: str
) -> None:
    policy, loss = td.Policy(DOMAIN, secrets), Loss("epsilon", Fraction(amount))
    ours, own = candidates(query, policy, loss)[0], found(query, policy, loss)[0]
    assert ours.expected_error <= 1.03 * own.expected_error
    assert ours.cost.value == loss.amount


# ---------- targets, and what is refused ----------


@pytest.mark.parametrize(
    ("given", "value"),
    [("± 100", 100), ("±100 USD", 100), ("100", 100), (100, 100), ("1/2", Fraction(1, 2)), (0.1, Fraction(1, 10)),
     ("+/- 1,500", 1500), (Fraction(7, 3), Fraction(7, 3)), (" 2.5 USD ", Fraction(5, 2))],
)  # fmt: skip
def test_targets(given: Any, value: Any) -> None:
    assert read_target(given, "USD") == value


@pytest.mark.parametrize(
    "given",
    ["", "±", "ten", "-5", "0", 0, -1, "± 100 EUR", "1,5", "1/0", [100], None, True, math.inf, "5 %", "--"],
)
def test_targets_that_are_none(given: Any) -> None:
    with pytest.raises(SpecificationError, match=r"^target: "):
        read_target(given, "USD")


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: td.frontier(td.CDF("age"), {}), "at least one policy"),
        (lambda: td.frontier(td.CDF("age"), {"a": td.Full()}), r"frontier.policies.a: a td.Policy, not Full"),
        (lambda: td.frontier("cdf", POLICIES), r"frontier.query: a query such as"),  # type: ignore[arg-type]
        (lambda: td.frontier(td.CDF("agee"), POLICIES), "Did you mean 'age'"),
        (lambda: td.frontier(td.KMeans("age", k=2), POLICIES), r"kmeans has no ±"),
        (lambda: td.frontier(td.CDF("age"), POLICIES, [1], rhos=[1]), "not both"),
        (lambda: td.frontier(td.CDF("age"), POLICIES, []), "frontier.epsilons: at least one"),
        (lambda: td.frontier(td.CDF("age"), POLICIES, [0]), "frontier.epsilons: must be above 0"),
        (lambda: td.frontier(td.CDF("age"), POLICIES, [1], []), "frontier.mechanisms: at least one"),
        (lambda: td.frontier(td.CDF("age"), POLICIES, [1], ["direct"]), "policy 'full': mechanism 'direct'"),
        (lambda: td.frontier(td.CDF("age"), POLICIES, [1], target="± 5 km"), "the answers are in records"),
        (lambda: td.frontier(td.CDF("age"), POLICIES, [1]).least(), "state a target"),
        (lambda: td.frontier(td.CDF("age"), POLICIES, [1]).best("fulll", 1), "Did you mean 'full'"),
        (lambda: td.frontier(td.CDF("age"), POLICIES, [1]).best("full", rho=1), "best: state epsilon"),
        (lambda: td.frontier(td.CDF("age"), POLICIES | {"b": td.Policy(td.Domain(age=td.Integer(0, 9)), td.Full())}),
         "frontier.policies.b: over another domain"),
        (lambda: POLICIES["full"].compare({"a": 3}, td.CDF("age"), 1), "compare.a: a td.Policy, not int"),
        (lambda: POLICIES["full"].compare(SECRETS, td.CDF("age")), "state epsilon"),
        (lambda: POLICIES["full"].compare(SECRETS, td.CDF("age"), 1, 1), "state epsilon"),
        (lambda: POLICIES["full"].compare([td.Full()], td.CDF("age"), 1), "policies or secrets by name"),  # type: ignore[arg-type]
        (lambda: POLICIES["full"].compare({"a": td.Within(1, on="ag")}, td.CDF("age"), 1), r"compare\.a: .*'age'"),
    ],
)  # fmt: skip
def test_what_is_refused(ask: Callable[[], Any], says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        ask()


def test_a_policy_without_a_price_is_named() -> None:
    listed = td.Policy(DOMAIN, td.Edges([((0, "f"), (39, "m"))]))
    with pytest.raises(SpecificationError, match=r"policy 'listed': mechanism 'direct'"):
        td.frontier(td.CDF("age"), {"listed": listed}, [1], ["direct"])


# ---------- policies side by side ----------


@pytest.mark.parametrize(
    ("query", "policies", "loss"),
    [
        pytest.param(td.CDF("age", by="sex"), POLICIES, {"epsilon": "1/2"}, id="cdf"),
        pytest.param(
            td.CDF("age", by="sex"), POLICIES, {"rho": "0.05"}, id="cdf in rho", marks=pytest.mark.slow
        ),
        pytest.param(
            td.Ranges("age", [(0, 3), (4, 8)]), NEAR, {"epsilon": "1/2"}, id="ranges", marks=pytest.mark.slow
        ),
        pytest.param(td.Ranges("age", [(0, 3), (4, 8)]), NEAR, {"rho": "0.05"}, id="ranges in rho"),
    ],
)
def test_a_comparison_says_what_plans_and_sensitivities_say(
    query: Any, policies: dict[str, Any], loss: dict[str, str]
) -> None:
    own = policies["within 3"]
    secrets = {name: policy.secrets for name, policy in policies.items()}
    made = own.compare(secrets | {"own": own}, query, **loss)
    assert made.strongest == "full" and [row.policy for row in made.rows] == [*secrets, "own"]
    wide = made.rows[0].half_width
    for row, policy in zip(made.rows, [*policies.values(), own], strict=True):
        best = planned(policy, query, **loss)[0]
        assert (row.half_width, row.expected_error) == (best.half_width, best.expected_error)
        assert row.mechanism == best.mechanism
        assert row.sensitivity == policy.sensitivity(query, norm="l1" if "epsilon" in loss else "l2").value
        assert row.narrower == pytest.approx(wide / row.half_width)
        assert row.same_for is not None
        [(unit, _)] = loss.items()
        assert planned(policy, query, **{unit: row.same_for})[0].half_width <= wide
    json.dumps(made.to_spec(), allow_nan=False)
    assert list(made.to_frame()["policy"]) == [*secrets, "own"]
    assert "gives up: sex: not protected" in repr(made) and "      buys: " in repr(made)


def test_secrets_stand_for_the_same_policy_with_these_secrets() -> None:
    made = TIED["full"].compare(
        {"tied": td.Within(3, on="age"), "free": POLICIES["within 3"]}, td.CDF("age", by="sex"), 1
    )
    tied, free = made.rows
    assert (tied.half_width, tied.sensitivity) == (
        planned(TIED["within 3"], td.CDF("age", by="sex"), epsilon=1)[0].half_width,
        TIED["within 3"].sensitivity(td.CDF("age", by="sex")).value,
    )
    assert free.sensitivity == POLICIES["within 3"].sensitivity(td.CDF("age", by="sex")).value


@pytest.mark.parametrize("secrets", [*SECRETS.values(), td.Edges([(0, 9), (4, 30)], on="age")], ids=str)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_fewer_cells_have_the_same_sensitivity(secrets: Any, norm: str) -> None:
    domain = td.Domain(age=td.Integer(0, 39, step=3, missing="secret"), sex=td.Categorical(["f", "m"]))
    policy = td.Policy(
        domain, td.Edges([(0, 9), (3, 30)], on="age") if isinstance(secrets, td.Edges) else secrets
    )
    for query in (
        td.Ranges("age", [(0, 2), (3, 11), (9, 38)], by="sex"),
        td.Ranges("age", [(6, 8)], where={"sex": ["f"]}),
        td.Ranges("age", [(3, 5), (3, 5)]),
    ):
        fewer = in_fewest_cells(query, policy)
        assert fewer != query
        assert policy.sensitivity(fewer, norm=norm).value == policy.sensitivity(query, norm=norm).value


# ---------- words ----------


def test_what_each_policy_gives_up_beside_any_two_values() -> None:
    full = POLICIES["full"]
    assert given_up(full, full) == ()
    assert given_up(POLICIES["within 3"], full) == (
        "sex: not protected; its values may be disclosed exactly, person by person.",
        "age: two values more than 3 years apart cost more, d years up to ⌈d/3⌉·ε; 0 and 39 up to 13·ε.",
    )
    assert given_up(POLICIES["within 3"], POLICIES["within 10"], "rho") == (
        "age: two values more than 3 years apart cost more, d years up to ⌈d/3⌉²·ρ; 0 and 39 up to 169·ρ instead of 16·ρ.",
    )
    assert given_up(POLICIES["attributes"], full) == (
        "age, sex: a difference in several of them at once costs the sum over them, not one ε.",
    )
    assert given_up(POLICIES["blocks"], full) == (
        "age: the block in which a record's value lies is disclosed exactly, whatever is paid.",
    )
    both = td.AttributeWise(age=td.Within(3), sex=td.Full())
    assert given_up(TIED["full"].under(both), TIED["full"])[0] == (
        "age: about values that are not joined themselves no number is promised, since public counts tie records together."
    )
    assert given_up(full, POLICIES["within 3"]) == ()
    assert strongest(POLICIES) == "full" and strongest(dict(reversed(POLICIES.items()))) == "full"


@settings_of(max_examples=30, deadline=None)
@given(theta=st.integers(1, 8), step=st.integers(1, 4), high=st.integers(10, 60))
def test_the_cost_by_distance_is_no_less_than_hops(theta: int, step: int, high: int) -> None:
    domain = td.Domain(a=td.Integer(0, high, step=step))
    policy = td.Policy(domain, td.Within(theta * step))
    lines = given_up(policy, td.Policy(domain, td.Full()))
    graph, axis = policy.graph, domain["a"]
    most = graph.distance(0, axis.n_values - 1)
    if most == 1:
        assert lines == ()
        return
    assert f"⌈d/{theta * step}⌉·ε" in lines[0] and lines[0].endswith(f"up to {most}·ε.")
    cells = [int(c) for c in axis.cells(list(range(high + 1)))]
    for x in range(high + 1):
        for y in range(x + 1, high + 1):
            hops = graph.distance(cells[x], cells[y])
            assert hops is not None and hops <= -(-(y - x) // (theta * step))


def test_no_cost_by_distance_is_told_where_steps_do_not_add_up() -> None:
    domain = td.Domain(a=td.Integer(0, 40, step=4))
    [line] = given_up(td.Policy(domain, td.Within(6)), td.Policy(domain, td.Full()))
    assert "⌈" not in line and line.startswith("a: two values more than 6 apart cost more; ")


# ---------- the command line: no data, no ledger ----------

Settings = Callable[..., Path]
Run = Callable[..., tuple[int, str, str]]


TABLE = ("[budget]", '[compare]\n"any age" = { age = "full" }\nnext = { age = { within = 1 } }\n\n[budget]')


def test_plan_compares(settings: Settings, run: Run) -> None:
    path = settings()
    (path.parent / "people.parquet").unlink()
    assert "gives up" not in run("plan", path)[1]
    code, out, err = run("plan", path, "--compare", "full", "--compare", "{ age = { within = 1 } }")
    assert code == 0, err
    assert (
        "ages, epsilon 0.5, beside 'full':" in out
        and "this policy" in out
        and "{ age = { within = 1 } }" in out
    )
    assert out.count("gives up: sex: not protected") == 2  # told once for all releases
    shown = json.loads(run("plan", path, "--compare", "full", "--json")[1])
    row = shown["compared"][0]["policies"][0]
    assert row["policy"] == "this policy"
    assert row["half_width"] == shown["releases"][0]["mechanisms"][0]["half_width"]
    assert [p.name for p in path.parent.iterdir()] == ["release.toml"]


def test_the_table_of_policies_is_compared_and_tuned(settings: Settings, run: Run) -> None:
    path = settings(TABLE)
    (path.parent / "people.parquet").unlink()
    code, out, _ = run("plan", path)
    assert code == 0 and "beside 'any age'" in out and "  next " in out
    code, out, _ = run("tune", path, "--target", "± 20")
    assert code == 0 and "any age" in out and "Nothing was read or spent." in out
    shown = json.loads(run("tune", path, "--target", "± 20 records", "--compare", "full", "--json")[1])
    ages, cells = shown["releases"]
    assert [row["policy"] for row in ages["policies"]] == ["this policy", "any age", "next", "full"]
    least = [Fraction(row["least"]) for row in ages["policies"]]
    assert least[2] < least[0] < least[1] <= least[3]
    assert (ages["target"], ages["unit"], cells["name"]) == ("20", "records", "cells")
    best = {row["mechanism"]: row["least"] for row in ages["mechanisms"]}
    assert Fraction(min(best.values(), key=Fraction)) <= least[0]
    assert [p.name for p in path.parent.iterdir()] == ["release.toml"]
    only = json.loads(run("tune", path, "--target", "20", "--only", "cells", "--json")[1])
    assert [r["name"] for r in only["releases"]] == ["cells"]


def test_what_tune_says_is_reached_when_planned(settings: Settings, run: Run) -> None:
    path = settings()
    shown = json.loads(run("tune", path, "--target", "10", "--json")[1])
    least = shown["releases"][0]["policies"][0]["least"]
    again = settings(('epsilon = "0.5"', f'epsilon = "{least}"'))
    rows = json.loads(run("plan", again, "--json")[1])["releases"][0]["mechanisms"]
    assert rows[0]["half_width"] <= 10
    below = settings(('epsilon = "0.5"', f'epsilon = "{float(least) * 0.99}"'))
    assert json.loads(run("plan", below, "--json")[1])["releases"][0]["mechanisms"][0]["half_width"] > 10


def test_a_stated_mechanism_is_tuned_as_stated(settings: Settings) -> None:
    from tetraodon.spec import load

    document = load(settings(("query = { cdf", 'mechanism = "ordered"\nquery = { cdf')))
    [ages, _] = tuned(document, policies_of(document), "10")["releases"]
    assert ages["policies"][0]["mechanism"] == "ordered"
    assert ages["policies"][0]["least"] == next(
        m["least"] for m in ages["mechanisms"] if m["mechanism"] == "ordered"
    )
    assert compared(document, policies_of(document)) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plan", "--compare", "fulll"), "--compare: full, attribute-wise, nothing, or secrets"),
        (("plan", "--compare", "{ age = "), "this is not TOML"),
        (("plan", "--compare", "{ agee = 'full' }"), "Did you mean 'age'"),
        (("plan", "--compare", "{ age = { within = 'x' } }"), "--compare"),
        (("tune", "--target", "ten"), "--target: a number above 0"),
        (("tune", "--target", "± 10 USD"), "the answers are in records"),
        (("tune", "--target", "10", "--only", "age"), "Did you mean 'ages'"),
    ],
)
def test_what_the_command_line_refuses(settings: Settings, run: Run, arguments: Any, says: str) -> None:
    command, *rest = arguments
    code, _, err = run(command, settings(), *rest)
    assert code == 2 and says in err


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('[compare]\n"this policy" = "full"', "compare.this policy: a name of its own"),
        ('[compare]\nfull = "fulll"', "release.toml: compare.full"),
        ("[compare]\nnear = { agee = { within = 1 } }", "Did you mean 'age'"),
        ("[compare]\nnear = { age = { within = 1, off = 2 } }", "compare.near"),
    ],
)
def test_what_the_table_refuses(settings: Settings, run: Run, table: str, says: str) -> None:
    code, _, err = run("plan", settings(("[budget]", f"{table}\n\n[budget]")))
    assert code == 2 and says in err


# ---------- the manifest and the report ----------


def test_a_release_tells_what_other_policies_would_have_bought(settings: Settings, run: Run) -> None:
    path = settings(TABLE, ("integer = [0, 9]", "integer = [0, 39]"))
    assert run("release", path)[0] == 0
    file = path.parent / "published" / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    ages, cells = manifest["releases"]
    assert cells["frontier"] is None  # every secret has the same ± there
    shown = ages["frontier"]
    names = [p["name"] for p in shown["policies"]]
    assert names == ["this policy", "any age", "next", "within 20 years", "within 4 years"]
    at = shown["grid"].index("0.5")
    assert shown["policies"][0]["half_width"][at] == ages["half_width"]
    for told_of in shown["policies"]:
        widths = told_of["half_width"]
        assert widths == sorted(widths, reverse=True)
    others = {p["name"]: p["half_width"][at] for p in shown["policies"]}
    least = {
        r["policy"]: r["half_width"]
        for r in json.loads(run("plan", path, "--json")[1])["compared"][0]["policies"]
    }
    assert {n: others[n] for n in least} == least

    page = (path.parent / "published" / "report.html").read_text(encoding="utf-8")
    [script] = [part.split("</script>")[0] for part in page.split("<script>")[1:]]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page
    assert "What other secrets would buy" in page and "What each gives up, beside any age" in page
    assert not any(word in script for word in ("http", "fetch", "import", "eval", "innerHTML"))
    assert render(file) == page

    without = manifest | {"releases": [entry | {"frontier": None} for entry in manifest["releases"]]}
    file.write_text(json.dumps(without), encoding="utf-8")
    plain = render(file)
    assert "<script" not in plain and "script-src" not in plain and "What other secrets" not in plain


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: f | {"loss": "rho"}, "frontier.loss"),
        (lambda f: f | {"grid": f["grid"][::-1]}, "frontier.grid"),
        (lambda f: f | {"grid": f["grid"][:1]}, "frontier.grid"),
        (lambda f: f | {"strongest": "another"}, "frontier.strongest"),
        (lambda f: f | {"policies": [f["policies"][0] | {"half_width": [1]}]}, "half_width"),
        (lambda f: f | {"policies": [3]}, "frontier.policies"),
        (lambda f: [f], "frontier: a table"),
    ],
)
def test_a_manifest_that_was_tampered_with_is_refused(
    settings: Settings, run: Run, change: Callable[[Any], Any], says: str
) -> None:
    path = settings()
    assert run("release", path, "--only", "ages")[0] == 0
    file = path.parent / "published" / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest["releases"][0]["frontier"] = change(manifest["releases"][0]["frontier"])
    file.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(SpecificationError, match=says):
        render(file)


def test_names_from_settings_are_text_in_the_page(settings: Settings, run: Run) -> None:
    evil = "</table><script>alert(1)</script>"
    path = settings(("[budget]", f'[compare]\n"{evil}" = {{ age = "full" }}\n\n[budget]'))
    assert run("release", path)[0] == 0
    page = (path.parent / "published" / "report.html").read_text(encoding="utf-8")
    assert evil not in page and "&lt;/table&gt;&lt;script&gt;" in page and page.count("<script") == 1
