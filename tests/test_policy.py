"""Policies and questions: to a specification and back, in plain words, and what they refuse."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from oracle import brute
from strategies import asked_policies, domains, examples, policies, questions, secrets

import tetraodon as td
from tetraodon.binding import secrets_from_spec
from tetraodon.errors import SpecificationError, Unsupported
from tetraodon.queries import query_from_spec

F = Fraction


def through_json(spec: Any) -> Any:
    return json.loads(json.dumps(spec, allow_nan=False))


# ---------- specifications ----------


@examples(300)
@given(policies())
def test_policies_come_back_from_their_specification(policy: Any) -> None:
    spec = through_json(policy.to_spec())
    back = td.Policy.from_spec(spec)
    assert back == policy
    assert back.to_spec() == spec == policy.to_spec()
    assert back.hash == policy.hash and back.domain_hash == policy.domain_hash
    adjacent = brute.adjacency(policy.domain, policy.secrets)
    assert brute.adjacency(back.domain, back.secrets) == adjacent


@examples(300)
@given(asked_policies())
def test_questions_come_back_from_their_specification(drawn: Any) -> None:
    policy, asked = drawn
    query = asked.query()
    back = query_from_spec(through_json(query.to_spec()))
    assert back == query and hash(back) == hash(query)
    assert through_json(back.to_spec()) == through_json(query.to_spec())
    assert policy.sensitivity(back) == policy.sensitivity(query)


@examples(60)
@given(domains().flatmap(lambda d: secrets(d).map(lambda s: (d, s))))
def test_secrets_are_values(drawn: Any) -> None:
    domain, told = drawn
    back = secrets_from_spec(through_json(told.to_spec()))
    assert back == told and hash(back) == hash(told)
    assert td.Policy(domain, back) == td.Policy(domain, told)


WORDS = (
    "within",
    "edges",
    "partition",
    "on",
    "metric",
    "full",
    "nothing",
    "between",
    "count",
    "a.b",
    'q"t',
    "é",
)


@pytest.mark.parametrize("name", WORDS)
def test_attributes_may_bear_the_words_of_specifications(name: str) -> None:
    domain = td.Domain({name: td.Integer(0, 5), "y": td.Integer(0, 1)})
    graphs = (td.Full(), td.Nothing(), td.Within(2), td.Partition(2), td.Partition(by=[0, 0, 1, 1, 2, 2]))
    for graph in (*graphs, td.Edges([(0, 1)])):
        for told in (td.AttributeWise({name: graph}), td.AttributeWise({name: graph, "y": td.Full()})):
            policy = td.Policy(domain, told)
            assert td.Policy.from_spec(through_json(policy.to_spec())) == policy
    query = td.Histogram(name, by="y", where={name: (1, 3)}, bins={name: 2})
    assert query_from_spec(through_json(query.to_spec())) == query


@pytest.mark.parametrize("half", [0.5, "0.5", F(1, 2), Decimal("0.5"), np.float64(0.5), np.float32(0.5)])
@pytest.mark.parametrize("one", [1, 1.0, F(1), Decimal("1"), Decimal("1.0"), np.int16(1), np.float64(1)])
def test_the_same_number_written_differently_is_the_same_policy_and_question(half: Any, one: Any) -> None:
    domain = td.Domain(x=td.Numeric(0, 4, width=half), k=td.Categorical([0, 1]))
    pairs = td.Edges([(half, one)], on="x")
    assert pairs == td.Edges([(0.5, 1)], on="x")
    assert td.Policy(domain, pairs).hash == td.Policy(domain, td.Edges([(0.5, 1)], on="x")).hash
    by = {half * 0 + v: v for v in range(4)} if not isinstance(half, str) else {v: v for v in range(4)}
    whole = td.Domain(x=td.Integer(0, 3))
    assert td.Policy(whole, td.Partition(by=by)) == td.Policy(
        whole, td.Partition(by={v: v for v in range(4)})
    )
    assert td.Within(one) == td.Within(1) and td.Within(half) == td.Within(F(1, 2))
    query = td.Histogram("x", where={"k": [one], "x": (half, one)}, bins={"x": [0, half]})
    assert query == td.Histogram("x", where={"k": [1], "x": (F(1, 2), 1)}, bins={"x": [0, F(1, 2)]})
    back = query_from_spec(through_json(query.to_spec()))
    assert back == query
    policy = td.Policy(domain, td.Full())
    assert policy.sensitivity(back).value == policy.sensitivity(query).value == 1


def test_distances_with_units_are_read_in_the_attributes_unit() -> None:
    domain = td.Domain(x=td.Integer(0, 999, unit="USD"))
    told = td.Within("  100   USD ")
    assert told == td.Within("100 USD") and told.to_spec() == {"within": "100 USD"}
    assert td.Policy(domain, told).sensitivity(td.CDF("x")).value == 100
    assert td.Within("100") == td.Within(100)


def test_bins_written_as_tuples_are_lists() -> None:
    assert td.Histogram("x", bins={"x": (0, 5)}) == td.Histogram("x", bins={"x": [0, 5]})
    assert td.Histogram("c", bins={"c": {"g": ("p", "q")}}) == td.Histogram(
        "c", bins={"c": {"g": ["p", "q"]}}
    )
    assert td.Histogram("x", where={"x": (0, 5)}) != td.Histogram("x", where={"x": [0, 5]})


def test_hashes_tell_policies_apart() -> None:
    domain = td.Domain(x=td.Integer(0, 9), y=td.Integer(0, 9))
    told = [
        td.Full(),
        td.Nothing(),
        td.AttributeWise(),
        td.AttributeWise(x=td.Full()),
        td.AttributeWise(x=td.Full(), y=td.Full()),
        td.Within(1, on="x"),
        td.Within(1, on="y"),
        td.Within(2, on="x"),
        td.Within(2, on="x", metric=td.L1(x=2)),
        td.Within(2, on="x", metric=td.L2(x=2)),
        td.Partition({"x": 2}),
        td.Partition(by=[v // 5 for v in range(10)], on="x"),
        td.Edges([(0, 1)], on="x"),
        td.Edges([((0, 0), (0, 1))]),
    ]
    assert len({td.Policy(domain, s).hash for s in told}) == len(told)
    other = td.Domain(x=td.Integer(0, 9), y=td.Integer(0, 9, missing="public"))
    assert td.Policy(domain, td.Full()).hash != td.Policy(other, td.Full()).hash
    # The canonical form itself: a changed serialisation would orphan every ledger.
    assert td.Policy(td.Domain(x=td.Integer(0, 9)), td.Within(1)).to_spec() == {
        "domain": {"x": {"integer": [0, 9]}},
        "order": ["x"],
        "secrets": {"within": "1"},
        "presence": "public",
    }
    text = '{"domain":{"x":{"integer":[0,9]}},"order":["x"],"presence":"public","secrets":{"within":"1"}}'
    assert td.Policy(td.Domain(x=td.Integer(0, 9)), td.Within(1)).hash == sha256(text.encode()).hexdigest()


# ---------- plain words ----------

LOSSES = td.Policy(
    td.Domain(
        capital_loss=td.Integer(0, 4356, unit="USD"),
        age=td.Integer(17, 90, missing="secret"),
        sex=td.Categorical(["Female", "Male"], other="Unknown"),
    ),
    td.AttributeWise(age=td.Full(), capital_loss=td.Within(100)),
)
LOSSES_TEXT = """\
NOT protected: sex. Its values may be disclosed exactly, person by person.
Protected: one attribute of a record at a time; a difference in several attributes costs the sum.
Protected: capital_loss: two values at most 100 USD apart.
Protected: age: any two values. Whether age is missing is secret too, which joins every value to the missing cell and so \
puts any two values at most two hops apart.
Odds: with epsilon = 0.5, nobody's odds between two joined values change by a factor of more than 1.65, whatever else \
they know about other people.
Odds: capital_loss: 0 and 4356 are 44 hops apart, so that pair costs up to 44 epsilon.
Disclosed exactly: the number of records.
Disclosed exactly: that no record's capital_loss is missing or invalid (the table is refused otherwise).
Disclosed exactly: that no record's sex is missing or invalid (the table is refused otherwise).
Disclosed exactly: anything about sex: how many records have each value can be published without cost.
Not a secret: facts about groups of people (averages, trends, what is typical of a place or a trade), even when they let \
somebody guess a person's value.
One record is one person here. Who is in the table counts as known; somebody with several records is protected record by \
record."""
PLACES = td.Policy(
    td.Domain(
        lat=td.Numeric(30, 50, cells=400),
        lon=td.Numeric(-125, -110, cells=300, missing="public"),
        day=td.Integer(1, 7),
    ),
    td.Partition({"lat": 20, "lon": 10}),
)
PLACES_TEXT = """\
NOT protected: nothing that is declared; every attribute has secrets.
Protected: any two combinations of values within one block; the block is not secret.
Protected: lat: two values of the same block.
Protected: lon: two values of the same block.
Protected: day: any two values.
Odds: a loss of epsilon lets nobody's odds between two joined values change by more than e^epsilon.
Odds: no epsilon hides in which block a record's lat, lon lies: two values in different blocks are not secret from each \
other.
Disclosed exactly: the number of records.
Disclosed exactly: that no record's lat is missing or invalid (the table is refused otherwise).
Disclosed exactly: whether lon is missing, for every record.
Disclosed exactly: that no record's day is missing or invalid (the table is refused otherwise).
Disclosed exactly: the block in which each record's lat, lon lies, and how many lie in each.
Not a secret: facts about groups of people (averages, trends, what is typical of a place or a trade), even when they let \
somebody guess a person's value.
One record is one person here. Who is in the table counts as known; somebody with several records is protected record by \
record."""


@pytest.mark.parametrize(
    ("policy", "epsilon", "text"),
    [(LOSSES, "1/2", LOSSES_TEXT), (PLACES, None, PLACES_TEXT)],
    ids=["losses", "places"],
)
def test_golden_explanations(policy: Any, epsilon: Any, text: str) -> None:
    assert policy.explain(epsilon) == text


@examples(300)
@given(policies())
def test_explanations_name_what_is_open_first_and_every_disclosed_fact(policy: Any) -> None:
    domain, adjacent = policy.domain, brute.adjacency(policy.domain, policy.secrets)
    first, *lines = policy.explain().split("\n")
    disclosed = [line for line in lines if line.startswith("Disclosed exactly: ")]
    bare = []
    for name in domain:
        small, shadow = brute.projected(domain, adjacent, [name])
        if not brute.edges(shadow):
            bare.append(name)
        if domain[name].missing == "public":
            assert f"Disclosed exactly: whether {name} is missing, for every record." in disclosed
        elif domain[name].missing == "refuse":
            assert any(
                line.startswith(f"Disclosed exactly: that no record's {name} is missing")
                for line in disclosed
            )
        if policy.graph.kind == "flat" or name in bare:
            continue
        answered = [r for r in range(len(small)) if not is_public_missing(domain[name], small[r][0])]
        far = brute.distances(shadow)
        split = any(far[a][b] == brute.INFINITE for a in answered for b in answered)
        told = [
            line
            for line in disclosed
            if line.startswith("Disclosed exactly: the block in which each record's ")
        ]
        named = (
            told[0].removeprefix("Disclosed exactly: the block in which each record's ").split(" lies")[0]
            if told
            else ""
        )
        assert (name in named.split(", ")) == split
    if len(bare) == len(domain):
        assert first == "NOT protected: every attribute. This policy keeps nothing secret."
    elif bare:
        assert first == (
            f"NOT protected: {', '.join(bare)}. {'Its' if len(bare) == 1 else 'Their'} values may be disclosed exactly, person by person."
        )
    else:
        assert first == "NOT protected: nothing that is declared; every attribute has secrets."
    for name in domain:
        assert (name in bare) == any(
            line.startswith(f"Disclosed exactly: anything about {name}:") for line in disclosed
        )
    if policy.graph.kind == "flat" and brute.edges(adjacent):
        apart = any(d == brute.INFINITE for row in brute.distances(adjacent) for d in row)
        assert apart == any(
            "in which each record lies, and how many lie in each" in line for line in disclosed
        )
    assert any(line.startswith("Odds: ") for line in lines) == bool(brute.edges(adjacent))
    assert "Disclosed exactly: the number of records." in disclosed


def is_public_missing(attribute: Any, cell: int) -> bool:
    return bool(attribute.missing == "public" and brute.cells(attribute)[cell].kind == "missing")


@examples(150)
@given(policies())
def test_hops_in_explanations_are_distances(policy: Any) -> None:
    if policy.graph.kind == "flat":
        return
    domain, adjacent = policy.domain, brute.adjacency(policy.domain, policy.secrets)
    for line in policy.explain().split("\n"):
        if "hops apart, so that pair" not in line:
            continue
        name, rest = line.removeprefix("Odds: ").split(": ", 1)
        ends, hops = rest.split(" hops apart")[0].rsplit(" are ", 1)
        one, two = ends.split(" and ")
        _, shadow = brute.projected(domain, adjacent, [name])
        label = [domain[name].label(c) for c in range(domain[name].size)]
        assert brute.distances(shadow)[label.index(one)][label.index(two)] == int(hops) > 1


def test_flat_policies_say_which_group_is_disclosed() -> None:
    domain = td.Domain(a=td.Integer(0, 1), b=td.Integer(0, 1))
    blocks = td.Policy(domain, td.Partition(by=["s", "s", "t", "t"])).explain()
    assert "Protected: any two combinations of values within one block; the block is not secret." in blocks
    assert "Disclosed exactly: the block in which each record lies, and how many lie in each." in blocks
    pairs = td.Policy(domain, td.Edges([((0, 0), (1, 1))])).explain()
    assert "Protected: exactly the pairs of value combinations that the policy lists." in pairs
    assert (
        "the group of joined value combinations in which each record lies, and how many lie in each." in pairs
    )


@pytest.mark.parametrize("epsilon", [0, -1, "nan", True, float("inf")])
def test_explanations_refuse_an_epsilon_that_is_none(epsilon: Any) -> None:
    with pytest.raises(SpecificationError, match=r"^epsilon: "):
        LOSSES.explain(epsilon)


def test_explanations_of_large_domains_list_nothing() -> None:
    big = td.Domain(x=td.Integer(1, 10**12), y=td.Integer(1, 10**5, missing="secret"))
    for told in (td.Full(), td.AttributeWise(), td.Within(1000, on="x")):
        assert td.Policy(big, told).explain("1").startswith("NOT protected: ")


# ---------- refusals ----------

DOMAIN = td.Domain(x=td.Integer(0, 9), c=td.Categorical(["p", "q"]))


@pytest.mark.parametrize(
    ("build", "kind", "says"),
    [
        (lambda: td.Policy({}, td.Full()), SpecificationError, "policy.domain: a td.Domain, not dict"),
        (
            lambda: td.Policy(DOMAIN, td.Full(), [1]),
            SpecificationError,
            "policy.constraint.1: a table such as",
        ),
        (
            lambda: td.Policy(
                DOMAIN, td.Full(), [td.MarginalConstraint(next(iter(DOMAIN)))], presence="secret"
            ),
            Unsupported,
            "policy.constraints: known counts together with presence = 'secret'",
        ),
        (
            lambda: td.Policy(DOMAIN, td.Full(), presence="open"),
            SpecificationError,
            'policy.presence: "public"',
        ),
        (lambda: LOSSES.compare({}, td.CDF("loss"), 1), SpecificationError, "compare: at least one policy"),
        (
            lambda: LOSSES.sensitivity(td.CDF("age"), reading="x"),
            SpecificationError,
            'reading: "both", "edges"',
        ),
        (lambda: td.Policy.from_spec([]), SpecificationError, "policy: a table of domain, secrets"),
        (lambda: td.Policy.from_spec({"domain": {}}), SpecificationError, "policy.secrets: required"),
        (lambda: td.Policy.from_spec({"secrets": "full"}), SpecificationError, "policy.domain: required"),
        (
            lambda: td.Policy.from_spec(td.Policy(DOMAIN, td.Full()).to_spec() | {"constraint": []}),
            SpecificationError,
            "policy: no key 'constraint'; declared: .*Did you mean 'constraints'",
        ),
        (
            lambda: td.Policy.from_spec(td.Policy(DOMAIN, td.Full()).to_spec() | {"constraints": [{}]}),
            SpecificationError,
            "policy.constraint.1: one of marginal, where in",
        ),
        (
            lambda: secrets_from_spec("ful"),
            SpecificationError,
            "policy.secrets: 'full', 'nothing', or one of",
        ),
        (
            lambda: secrets_from_spec(5),
            SpecificationError,
            "policy.secrets: 'full', 'attribute-wise', 'nothing'",
        ),
        (
            lambda: secrets_from_spec({"age": "ful"}),
            SpecificationError,
            "policy.secrets.age: 'full', 'nothing'",
        ),
        (lambda: secrets_from_spec({"age": 5}), SpecificationError, "policy.secrets.age: 'full', 'nothing'"),
        (
            lambda: secrets_from_spec({"within": 5, "metrik": {}}),
            SpecificationError,
            "policy.secrets: no key 'metrik'; declared: within, on, metric. Did you mean 'metric'",
        ),
        (
            lambda: secrets_from_spec({"within": 5, "metric": {"l3": {}}}),
            SpecificationError,
            "policy.secrets.metric: one of l1, l2, discrete",
        ),
        (
            lambda: secrets_from_spec({"partition": {"blocks": 2, "bye": 1}}),
            SpecificationError,
            "policy.secrets.partition: no key 'bye'",
        ),
    ],
)
def test_policies_refuse_with_key_and_fix(build: Any, kind: Any, says: str) -> None:
    with pytest.raises(kind, match=f"^{says}"):
        build()


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: td.Histogram(), "histogram: name at least one attribute"),
        (lambda: td.Histogram("x", "x"), "histogram: attribute names, each once"),
        (lambda: td.Histogram("x", by="x"), "histogram: an attribute stands twice"),
        (lambda: td.CDF("x", by=["c", "c"]), "cdf.by: attribute names, each once"),
        (lambda: td.CDF("x", by=[1]), "cdf.by: attribute names, each once"),
        (lambda: td.CDF("x", where=["c"]), "cdf.where: a mapping from attribute names"),
        (
            lambda: td.CDF("x", where={"c": None}),
            "cdf.where.c: numbers, texts and lists of them, not NoneType",
        ),
        (lambda: td.CDF("x", where={"c": {"p"}}), "cdf.where.c: numbers, texts and lists of them, not set"),
        (lambda: td.CDF("x", where={"x": (0, float("nan"))}), "cdf.where.x: must be finite"),
        (lambda: td.CDF("x", bins={"c": 2}), "cdf.bins: no attribute in this query 'c'; declared: x"),
        (lambda: td.Ranges("x", "some"), 'ranges: "all", or a list of'),
        (lambda: td.Ranges("x", []), r"ranges: a non-empty list of \(low, high\) pairs"),
        (lambda: td.Ranges("x", [(1, 2, 3)]), r"ranges: a non-empty list of \(low, high\) pairs"),
        (lambda: td.Quantiles("x", [1.5]), "quantiles.levels: numbers from 0 to 1"),
        (lambda: td.Quantiles("x", []), "quantiles.levels: numbers from 0 to 1"),
        (lambda: td.Quantiles("x", ["half"]), "quantiles.levels: not a number"),
        (lambda: td.Sum("x", bins={"x": 2}), "sum.bins: the attribute that is summed is not binned"),
        (lambda: td.Mean("x", bins={"x": 2}), "mean.bins: the attribute that is averaged is not binned"),
        (lambda: td.Linear([[0.5]], "x"), "linear.matrix: integers in two dimensions"),
        (lambda: td.Linear([1, 2], "x"), "linear.matrix: integers in two dimensions"),
        (lambda: td.Linear([[True]], "x"), "linear.matrix: integers in two dimensions"),
        (lambda: td.Linear([[2**40]], "x"), "linear.matrix: entries within ±2\\^31"),
        (lambda: td.Linear([], "x"), "linear.matrix: integers in two dimensions"),
        (lambda: query_from_spec("cdf"), "query: a table such as"),
        (lambda: query_from_spec({}), "query: exactly one of histogram, cdf, ranges"),
        (lambda: query_from_spec({"cdf": "x", "sum": "x"}), "query: exactly one of histogram"),
        (lambda: query_from_spec({"cdf": ["x"]}), "query.cdf: the name of one attribute"),
        (lambda: query_from_spec({"cdf": "x", "bye": 1}), "query: no key 'bye'; declared: by, where, bins"),
        (lambda: query_from_spec({"cdf": "x", "of": "all"}), "query: no key 'of'"),
        (
            lambda: query_from_spec({"sum": "x", "bins": {"x": 2}}),
            "query.sum.bins: the attribute that is summed",
        ),
        (lambda: query_from_spec({"marginals": "x"}), "query.marginals: a whole number k"),
        (
            lambda: query_from_spec({"marginals": 2, "by": ["x"]}),
            "query: no key 'by'; declared: of, where, bins",
        ),
        (lambda: query_from_spec({"kmeans": "x"}), "query.k: required"),
        (
            lambda: query_from_spec({"cdf": "x", "quantiles": [1.5]}),
            "query.cdf.quantiles: numbers from 0 to 1",
        ),
    ],
)
def test_questions_refuse_where_they_are_written(build: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=f"^{says}"):
        build()


WIDE = td.Domain(
    x=td.Integer(0, 9, step=2),
    y=td.Numeric(0, 1, cells=4),
    c=td.Categorical(["p", "q", "r"]),
    o=td.Categorical(["lo", "mid", "hi"], ordered=True, other="else", missing="secret"),
)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (td.CDF("z"), "cdf: no attribute 'z'; declared: x, y, c, o"),
        (td.CDF("x", by="cc"), "cdf: no attribute 'cc'; declared: x, y, c, o. Did you mean 'c'"),
        (td.CDF("x", where={"z": 1}), "cdf: no attribute 'z'"),
        (td.CDF("c"), "cdf: c is not ordered; declare ordered=True or ask for a Histogram"),
        (td.Ranges("c"), "ranges: c is not ordered"),
        (td.Quantiles("c"), "quantiles: c is not ordered"),
        (td.CDF("o", bins={"o": {"a": ["lo", "mid"], "b": ["hi"]}}), "cdf: o is not ordered"),
        (td.Sum("c"), "sum: c is categorical; only numbers can be added up"),
        (td.Mean("o"), "mean: o is categorical; only numbers can be added up"),
        (td.Linear([[1, 2]], "c"), "linear.matrix: 3 cells are declared"),
        (td.Linear([[1, 2, 3]], "o"), r"linear.matrix: 5 cells are declared \(special ones included\)"),
        (td.Histogram("x", bins={"x": 3}), "histogram.bins.x: a multiple of the declared cell"),
        (td.Histogram("x", bins={"x": 0}), "histogram.bins.x: a multiple of the declared cell"),
        (td.Histogram("x", bins={"x": True}), "histogram.bins.x: a truth value is not a number"),
        (
            td.Histogram("x", bins={"x": [2, 4]}),
            "histogram.bins.x: increasing lower ends, the first one the declared",
        ),
        (td.Histogram("x", bins={"x": [0, 4, 2]}), "histogram.bins.x: increasing lower ends"),
        (td.Histogram("x", bins={"x": [0, 3]}), "histogram.bins.x: must be a boundary of the declared cells"),
        (
            td.Histogram("x", bins={"x": {"a": [0]}}),
            "histogram.bins.x: a mapping is for categorical attributes",
        ),
        (td.Histogram("c", bins={"c": 2}), "histogram.bins.c: the attribute is not ordered; give a mapping"),
        (td.Histogram("c", bins={"c": {"a": ["p"]}}), "histogram.bins.c: no group for 'q'"),
        (td.Histogram("c", bins={"c": {"a": ["p", "p"]}}), "histogram.bins.c.a: 'p' is named twice"),
        (td.Histogram("c", bins={"c": {"a": "p"}}), "histogram.bins.c.a: a list of values"),
        (td.Histogram("c", bins={"c": {"a": ["s"]}}), "histogram.bins.c.a: no value 's'"),
        (
            td.Histogram("o", bins={"o": {"a": ["lo", "else"]}}),
            "histogram.bins.o.a: 'else' is named twice or is a",
        ),
        (td.Histogram("o", bins={"o": ["lo", "else"]}), "histogram.bins.o: 'else' has no place in the order"),
        (td.CDF("x", where={"x": (1, 5)}), "cdf.where.x: must be a boundary of the declared cells"),
        (td.CDF("x", where={"x": (6, 5)}), "cdf.where.x: the range is empty"),
        (td.CDF("x", where={"x": (0, 5, 7)}), r"cdf.where.x: a pair \(low, high\), or a list of values"),
        (td.CDF("x", where={"x": {"from": 0}}), r"cdf.where.x: a pair \(low, high\), or a list of values"),
        (td.CDF("x", where={"x": [10]}), "cdf.where.x: a whole number from 0 to 9"),
        (td.CDF("x", where={"c": ("p", "q")}), "cdf.where.c: the attribute is not ordered; list the values"),
        (td.CDF("x", where={"o": ("lo", "missing")}), "cdf.where.o: 'missing' has no place in the order"),
        (td.CDF("x", where={"c": []}), "cdf.where.c: leaves no cell"),
        (td.CDF("x", where={"y": (0, "0.3")}), "cdf.where.y: must be a boundary of the declared cells"),
        (td.Ranges("o", [("lo", "else")]), "ranges.of: 'else' has no place in the order"),
        (td.Ranges("x", [(0, 5)], bins={"x": 4}), "ranges.of: a range cuts a bin"),
        (td.Ranges("y", [(0, 2)]), "ranges.of: must be a boundary of the declared cells"),
        (
            td.Quantiles("o", where={"o": ["else", "missing"]}),
            "quantiles: the filter leaves no ordinary value",
        ),
    ],
)
def test_questions_that_do_not_fit_the_domain_are_refused(query: Any, says: str) -> None:
    policy = td.Policy(WIDE, td.AttributeWise())
    with pytest.raises(SpecificationError, match=f"^{says}"):
        policy.sensitivity(query)


@examples(100)
@given(domains().flatmap(questions))
def test_titles_and_used_attributes_come_from_the_question_alone(asked: Any) -> None:
    query = asked.query()
    assert set(query.used) == {*asked.attributes, *asked.by, *asked.where}
    assert query.title.startswith(f"{query.word}-{asked.attributes[0]}")


def test_a_budget_in_rho_promises_no_odds() -> None:
    policy = td.Policy(td.Domain(x=td.Integer(0, 9)), td.Within(2))
    told = policy.explain(rho="1/2")
    assert "rho = 0.5" in told and "n² rho" in told and "e^" not in told and "factor" not in told
    known = td.Policy(policy.domain, policy.secrets, [td.CountConstraint({"x": (0, 4)})]).explain(rho=1)
    assert "agree on the public counts" in known and "n² rho" not in known
    assert "Odds" not in td.Policy(policy.domain, td.Nothing()).explain(rho=1)
