"""Values of the wrong kind in settings and in Python: our error, the key, what was given in kind, never a raw error."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import tetraodon as td
from tetraodon.binding import secrets_from_spec
from tetraodon.cli import main
from tetraodon.domain import attribute_from_spec
from tetraodon.errors import SpecificationError
from tetraodon.estimates import bounds
from tetraodon.mechanisms import mechanism_from_spec
from tetraodon.policy import Policy
from tetraodon.queries import Query, query_from_spec
from tetraodon.reading import kind_of, listed
from tetraodon.workload import resolve

AGE, SEX = "integer = [0, 9]", 'categorical = ["f", "m"]'
SECRETS = "age = { within = 2 }"
BY = 'query = { cdf = "age", by = ["sex"] }'
CELLS = 'query = { histogram = ["age"] }'
EPSILON = 'epsilon = "0.5"'
SOURCE, LEDGER = 'source = "people.parquet"', 'ledger = "people.ledger"'
LONG = "x" * 300

# What stands in the settings, what stands there instead, the key and the words of the error.
SETTINGS: list[tuple[str, str, str, str]] = [
    # attributes
    (SEX, "categorical = 5", "domain.sex.categorical", "a list of codes, or the path of a file, not a number"),
    (SEX, "categorical = true", "domain.sex.categorical", "not a truth value"),
    (SEX, "categorical = 2020-01-01", "domain.sex.categorical", "not a date or a time"),
    (SEX, "categorical = { f = 1 }", "domain.sex.categorical", "not a table"),
    (SEX, "categorical = [[1]]", "domain.sex", "all texts or all integers"),
    (SEX, f'categorical = "{LONG}"', "domain.sex", "cannot be read"),
    (SEX, 'categorical = "a\\u0000b"', "domain.sex", "cannot be read"),
    (SEX, f'{SEX}\nordered = "false"', "domain.sex.ordered", "true or false, not text"),
    (SEX, f"{SEX}\nordered = 1", "domain.sex.ordered", "true or false, not a number"),
    (SEX, f"{SEX}\nother = 5", "domain.sex.other", "a text"),
    (SEX, f"{SEX}\nmissing = [1]", "domain.sex.missing", "not a list"),
    (SEX, f"{SEX}\ncolumn = 1", "domain.sex.column", "as text"),
    (AGE, "integer = 5", "domain.age.integer", "two bounds, [low, high], not a number"),
    (AGE, "integer = { a = 1, b = 2 }", "domain.age.integer", "not a table"),
    (AGE, "integer = [0, 9, 2]", "domain.age.integer", "two bounds"),
    (AGE, "integer = [0, [9]]", "domain.age.high", "expected a number"),
    (AGE, "numeric = [0, 9]\ncells = [3]", "domain.age.cells", "expected a number"),
    (AGE, 'point = ["a", "b"]', "domain.age.box", "is missing; add it"),
    ('unit = "years"', "unit = 5", "domain.age.unit", "text, not a number"),
    (f'[domain.age]\n{AGE}\nunit = "years"', "[domain]\nage = 5", "domain.age", "expected a table, got a number"),
    # secrets
    (SECRETS, "age = { within = 2, metric = 5 }", "policy.secrets.age.metric", "not a number"),
    (SECRETS, "age = { within = 2, metric = { l1 = 5 } }", "policy.secrets.age.metric.l1", "not a number"),
    (SECRETS, "age = { within = 2, metric = { l1 = { age = true } } }", "policy.secrets.age.metric.age", "truth"),
    (SECRETS, "age = { within = 2, metric = { discrete = { age = 1 } } }", "policy.secrets.age.metric", "no weights"),
    (SECRETS, "age = { within = 2, metric = { l1 = {}, l2 = {} } }", "policy.secrets.age.metric", "one of l1, l2"),
    (SECRETS, "age = { within = 2, on = [1] }", "policy.secrets.age.within.on", "text, not a list"),
    (SECRETS, "age = { within = true }", "policy.secrets.age.within", "truth value"),
    (SECRETS, "age = { within = [1] }", "policy.secrets.age.within", "expected a number"),
    (SECRETS, "age = 5", "policy.secrets.age", "given: a number"),
    (SECRETS, "age = { partition = 5 }", "policy.secrets.age.partition", "not a number"),
    (SECRETS, 'age = { partition = "x" }', "policy.secrets.age.partition", "not text"),
    (SECRETS, "age = { partition = [1] }", "policy.secrets.age.partition", "not a list"),
    (SECRETS, "partition = 5", "policy.secrets.partition", "given: a number"),
    (SECRETS, "sex = { partition = { by = 5 } }", "policy.secrets.sex.partition.by", "not a number"),
    (SECRETS, "sex = { partition = { by = [1, 2] } }", "policy.secrets.sex.partition.by", "[value, block] pairs, not a number"),
    (SECRETS, "sex = { partition = { by = [[1, 2, 3]] } }", "policy.secrets.sex.partition.by", "[value, block] pairs"),
    (SECRETS, "sex = { partition = { by = [[[[1]], 2]] } }", "policy.secrets.sex.partition.by", "not a list"),
    (SECRETS, 'sex = { partition = { by = [["f", 1], ["f", 2]] } }', "policy.secrets.sex.partition.by", "two blocks"),
    (SECRETS, "sex = { partition = { by = { cells = 5 } } }", "policy.secrets.sex.partition.by.cells", "not a number"),
    (SECRETS, 'sex = { partition = { by = { f = ["a"], m = { x = 1 } } } }', "policy.secrets.sex.partition.by", "a list"),
    (SECRETS, "sex = { partition = { by = { f = 2020-01-01, m = 1 } } }", "policy.secrets.sex.partition.by", "date"),
    (SECRETS, "sex = { partition = { blocks = [2] } }", "policy.secrets.sex.partition.blocks", "expected a number"),
    (SECRETS, "sex = { partition = { blocks = {} } }", "policy.secrets.sex.blocks", "no number of blocks"),
    (SECRETS, "age = { edges = 5 }", "policy.secrets.age.edges", "pairs of values, not a number"),
    (SECRETS, "age = { edges = [1, 2] }", "policy.secrets.age.edges", "pairs of values, not a number"),
    (SECRETS, 'sex = { edges = ["fm"] }', "policy.secrets.sex.edges", "pairs of values, not text"),
    (SECRETS, "edges = 5", "policy.secrets.edges", "given: a number"),
    (SECRETS, "sex = { edges = [[[[1]], 2]] }", "policy.secrets.sex.edges", "a list"),
    (SECRETS, 'sex = { edges = [["f", 2020-01-01]] }', "policy.secrets.sex.edges", "a date"),
    (SECRETS, 'sex = { edges = [["f", "x"]] }', "policy.secrets.sex.edges", "declared: f, m"),
    (f"[policy.secrets]\n{SECRETS}", "[policy]\nsecrets = 5", "policy.secrets", "expected text or a table, got a number"),
    # queries
    (CELLS, "query = { histogram = 5 }", "releases.cells.query.histogram", "not a number"),
    (CELLS, "query = { histogram = { age = 1 } }", "releases.cells.query.histogram", "not a table"),
    (CELLS, "query = { histogram = [[1]] }", "releases.cells.query.histogram", "attribute names"),
    (CELLS, 'query = { histogram = ["age"], by = 5 }', "releases.cells.query.histogram.by", "not a number"),
    (CELLS, 'query = { histogram = ["age"], by = { sex = 1 } }', "releases.cells.query.histogram.by", "not a table"),
    (CELLS, 'query = { histogram = ["age"], by = [["sex"]] }', "releases.cells.query.histogram.by", "attribute names"),
    (CELLS, 'query = { histogram = ["age"], bins = 5 }', "releases.cells.query.histogram.bins", "not a number"),
    (CELLS, 'query = { histogram = ["age"], bins = { age = [] } }', "releases.cells.histogram.bins.age", "lower ends"),
    (CELLS, 'query = { histogram = ["age"], bins = { age = [[0]] } }', "releases.cells.histogram.bins.age", "one value, not a list"),
    (CELLS, 'query = { histogram = ["age"], bins = { age = true } }', "releases.cells.histogram.bins.age", "truth value"),
    (CELLS, 'query = { histogram = ["sex"], bins = { sex = { a = ["f", "m"], b = [] } } }', "releases.cells.histogram.bins.sex.b", "at least one"),
    (CELLS, 'query = { histogram = ["sex"], bins = { sex = { a = [["f"], "m"] } } }', "releases.cells.histogram.bins.sex.a", "one value, not a list"),
    (CELLS, 'query = { histogram = ["sex"], bins = { sex = { a = 5 } } }', "releases.cells.histogram.bins.sex.a", "a list of values"),
    (CELLS, 'query = { histogram = ["sex"], where = { sex = [["f"]] } }', "releases.cells.histogram.where.sex", "one value, not a list"),
    (CELLS, 'query = { histogram = ["age"], where = { age = [[1]] } }', "releases.cells.histogram.where.age", "one value, not a list"),
    (CELLS, 'query = { histogram = ["age"], where = 5 }', "releases.cells.query.histogram.where", "not a number"),
    (CELLS, 'query = { histogram = ["age"], where = { age = { between = 5 } } }', "releases.cells.query.histogram.where.age.between", "not a number"),
    (CELLS, 'query = { histogram = ["age"], where = { age = { between = [[1], [2]] } } }', "releases.cells.histogram.where.age", "one value"),
    (CELLS, 'query = { histogram = ["age"], where = { age = 2020-01-01 } }', "releases.cells.query.histogram.where.age", "not date"),
    (CELLS, 'query = { ranges = "age", of = 5 }', "releases.cells.query.ranges.of", "not a number"),
    (CELLS, 'query = { ranges = "age", of = [5] }', "releases.cells.query.ranges.of", "not a number"),
    (CELLS, 'query = { ranges = "age", of = [[[1], 2]] }', "releases.cells.ranges.of", "one value, not a list"),
    (CELLS, 'query = { ranges = "age", of = [[1, [2]]] }', "releases.cells.ranges.of", "one value, not a list"),
    (CELLS, 'query = { quantiles = "age", levels = 0.5 }', "releases.cells.query.quantiles.levels", "not a number"),
    (CELLS, 'query = { quantiles = "age", levels = "0.5" }', "releases.cells.query.quantiles.levels", "not text"),
    (CELLS, 'query = { quantiles = "age", levels = [true] }', "releases.cells.query.quantiles.levels", "truth value"),
    (CELLS, 'query = { linear = "sex", matrix = [[1, 2], [3]] }', "releases.cells.query.linear.matrix", "rows of equal length"),
    (CELLS, 'query = { linear = "sex", matrix = [[1, true]] }', "releases.cells.query.linear.matrix", "a truth value"),
    (CELLS, 'query = { linear = "sex", matrix = 5 }', "releases.cells.query.linear.matrix", "a number"),
    (CELLS, 'query = { linear = "sex" }', "releases.cells.query.linear.matrix", "nothing"),
    (CELLS, "query = { cdf = 5 }", "releases.cells.query.cdf", "not a number"),
    (CELLS, "query = { cdf = [] }", "releases.cells.query.cdf", "not a list"),
    (CELLS, 'query = { kmeans = "age" }', "releases.cells.query.k", "required"),
    (CELLS, "query = 5", "releases.cells.query", "expected a table, got a number"),
    # mechanisms, formats, budget
    (CELLS, f"{CELLS}\nmechanism = 5", "releases.cells.mechanism", "expected text or a table, got a number"),
    (CELLS, f"{CELLS}\nmechanism = {{}}", "releases.cells.mechanism", "exactly one"),
    (CELLS, f"{CELLS}\nmechanism = {{ hierarchical = {{}}, ordered = {{}} }}", "releases.cells.mechanism", "exactly one"),
    (CELLS, f"{CELLS}\nmechanism = {{ hierarchical = 5 }}", "releases.cells.mechanism.hierarchical", "not a number"),
    (CELLS, f"{CELLS}\nmechanism = {{ hierarchical = {{ fanout = [2] }} }}", "releases.cells.mechanism.hierarchical.fanout", "whole number"),
    (CELLS, f"{CELLS}\nmechanism = {{ hierarchical = {{ fanout = {10**30} }} }}", "releases.cells.mechanism.hierarchical.fanout", "at most 2^40"),
    (CELLS, f"{CELLS}\npresent = {{ format = 5 }}", "releases.cells.present.format", "not a number"),
    (CELLS, f"{CELLS}\npresent = {{ format = {{ csv = 1 }} }}", "releases.cells.present.format", "not a table"),
    (CELLS, f"{CELLS}\npresent = {{ format = [5] }}", "releases.cells.present.format", "expected texts, got a number"),
    (EPSILON, "epsilon = true", "releases.ages.epsilon", "expected a number, such as 0.5 or"),
    (EPSILON, "epsilon = [1]", "releases.ages.epsilon", "got a list"),
    (EPSILON, "epsilon = nan", "releases.ages.epsilon", "a number that is not finite"),
    (EPSILON, "epsilon = inf", "releases.ages.epsilon", "a number that is not finite"),
    (EPSILON, "epsilon = 2020-01-01", "releases.ages.epsilon", "got a date or a time"),
    ("epsilon = 1\n", "epsilon = true\n", "budget.epsilon", "expected a number"),
    ('name = "ages"', 'name = ""', "releases.1.name", "Release name ''"),
    ('name = "ages"', "name = 5", "releases.1.name", "expected text, got a number"),
    (SOURCE, f"{SOURCE}\nnull = [0]", "data.null", "expected text, got a number"),
    (SOURCE, f"{SOURCE}\nnull = 5", "data.null", "expected a list, got a number"),
    (SOURCE, f'source = "{LONG}"', "data.source", "too long"),
    (SOURCE, f'source = "{"x/" * 3000}"', "data.source", "too long"),
    (SOURCE, 'source = "a\\u0000b"', "data.source", "null characters"),
    (SOURCE, 'source = ""', "data.source", "not empty"),
    (LEDGER, f'ledger = "{LONG}"', "budget.ledger", "too long"),
    (LEDGER, "ledger = 5", "budget.ledger", "expected text, got a number"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "key", "says"), SETTINGS, ids=[new[:60] for _, new, _, _ in SETTINGS])
@pytest.mark.parametrize("command", ["plan", "release"])
def test_settings(
    settings: Callable[..., Path],
    capfd: pytest.CaptureFixture[str],
    command: str,
    old: str,
    new: str,
    key: str,
    says: str,
) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, str(settings((old, new)))])
    error = capfd.readouterr().err
    assert end.value.code == 2, error
    assert error.startswith(f"tetraodon: release.toml: {key}") and says in error, error
    assert "('" not in error and "datetime" not in error and "Decimal" not in error, error


DOMAIN = td.Domain(
    age=td.Integer(0, 9),
    sex=td.Categorical(["f", "m"], other="o", missing="secret"),
    size=td.Categorical(["s", "m", "l"], ordered=True, other="s–m"),
)


def group(bins: dict[str, Any]) -> Any:
    return resolve(td.Histogram("sex", bins={"sex": bins}), DOMAIN)


def session() -> td.Session:
    ages = td.Domain(age=td.Integer(0, 9))
    return td.Session(td.Table({"age": [1, 2, 2]}, ages), Policy(ages, td.Within(1)), 1)


def axis() -> Any:
    found = resolve(td.CDF("age"), DOMAIN).axis
    assert found is not None
    return found


def ends(*values: Any) -> Any:
    return [np.atleast_1d(np.asarray(v)) for v in values]


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "mechanism None": (lambda: mechanism_from_spec(None), "^mechanism: .*not nothing"),
    "mechanism 5": (lambda: mechanism_from_spec(5), "^mechanism: .*not a number"),
    "two mechanisms": (lambda: mechanism_from_spec({"ordered": {}, "identity": {}}), "^mechanism: exactly one"),
    "mechanism by key": (lambda: mechanism_from_spec({5: {}}), "no mechanism"),
    "option by key": (lambda: mechanism_from_spec({"hierarchical": {2: 3}}), "^mechanism.hierarchical: no option 2"),
    "release of text": (lambda: session().release("age", 1), "a query such as"),
    "plan of a table": (lambda: session().plan({"cdf": "age"}, 1), "^query: .* not a table"),
    "sensitivity of text": (lambda: session().policy.sensitivity("age"), "^query: .* not text"),
    "bare query": (lambda: resolve(Query(), DOMAIN), "^query: a query such as"),
    "CDF of a list": (lambda: td.CDF(["age"]), "^cdf: .* not a list"),
    "Sum of None": (lambda: td.Sum(None), "^sum: .* not nothing"),
    "by None": (lambda: td.CDF("age", by=None), "^cdf.by: .* not nothing"),
    "by a set": (lambda: td.CDF("age", by={"sex", "size"}), "^cdf.by: .* no order"),
    "by an array without dimensions": (lambda: td.CDF("age", by=np.array(5)), "^cdf.by: "),
    "where by number": (lambda: td.CDF("age", where={5: 1}), "^cdf.where: "),
    "one flat range": (lambda: td.Ranges("age", (1, 5)), "^ranges.of: .* not a number"),
    "one level": (lambda: td.Quantiles("age", 0.5), "^quantiles.levels: .* not a number"),
    "ragged matrix": (lambda: td.Linear([[1, 2], [3]], "sex"), "^linear.matrix: "),
    "ragged arrays": (lambda: td.Linear([np.zeros((2, 2)), np.zeros((2, 3))], "sex"), "^linear.matrix: "),
    "matrix of fractions": (lambda: td.Linear([[1.5, 2.0]], "sex"), "^linear.matrix: .*a number"),
    "edges None": (lambda: td.Edges(None), "^Edges: .* not nothing"),
    "edges of texts": (lambda: td.Edges(["fm"]), "^Edges: .* not text"),
    "edges of dates": (lambda: td.Edges([("f", datetime.date(2020, 1, 1))]), "^Edges: .* not a date"),
    "within, a list of names": (lambda: td.Within(1, on=["age"]), "^Within.on: .* a list"),
    "metric by name": (lambda: td.Within(1, metric="l1"), "^Within.metric: .* not text"),
    "weights, a list": (lambda: td.L1(["age"]), "^metric: .* not a list"),
    "partition by a set": (lambda: td.Partition(by={"a", "b"}), "^Partition.by: .* no order"),
    "partition by 5": (lambda: td.Partition(by=5), "^Partition.by: .* not a number"),
    "unhashable block": (lambda: td.Partition(by={"f": ["a"]}), "^Partition.by: .* a list"),
    "attribute-wise, a list": (lambda: td.AttributeWise(["age"]), "^secrets: .* not a list"),
    "secrets 5": (lambda: secrets_from_spec(5), "^policy.secrets: .* not a number"),
    "categorical 5": (lambda: td.Categorical(5), "^values: .* not a number"),
    "categorical set": (lambda: td.Categorical({"f", "m"}), "^values: .* no order"),
    "categorical table": (lambda: td.Categorical({"f": 1}), "^values: .* not a table"),
    "two numbers of cells": (lambda: td.Numeric(0, 8, cells=2, n_cells=4), "^cells, n_cells: "),
    "unit 5": (lambda: td.Numeric(0, 8, cells=2, unit=5), "^unit: "),
    "domain, a list": (lambda: td.Domain(["age"]), "^domain: .* not a list"),
    "attribute 5": (lambda: attribute_from_spec("a", cast(Any, 5)), "^domain.a: .* not a number"),
    "query 5": (lambda: query_from_spec(cast(Any, 5)), "^query: .* not a number"),
    "array as a value": (lambda: DOMAIN["sex"].cell(np.array(["f"])), "^value: one value"),
    "date as a value": (lambda: DOMAIN["sex"].cell(datetime.date(2020, 1, 1)), "^value: .* not a date"),
    "group called like other": (lambda: group({"a": ["f"], "o": ["m"]}), "bins.sex: two rows .*'o'"),
    "group called like missing": (lambda: group({"missing": ["f"], "b": ["m"]}), "bins.sex: two rows .*'missing'"),
    "groups of one name": (lambda: group({"1": ["f"], cast(Any, 1): ["m"]}), "bins.sex: two rows .*'1'"),
    "bins called like other": (
        lambda: resolve(td.Histogram("size", bins={"size": 2}), DOMAIN),
        "bins.size: two rows .*'s–m'",
    ),
    "ranges of two lengths": (lambda: bounds(axis(), *ends([1, 2], [3])), "^range: .* shapes 2 and 1"),
    "a range of many ends": (lambda: bounds(axis(), *ends(1, [3, 4])), "^range: .* shapes 1 and 2"),
    "ranges in two dimensions": (lambda: bounds(axis(), *ends([[1, 2]], [[3, 4]])), "^range: .* shapes 1 × 2"),
    "ranges beyond integers": (
        lambda: bounds(axis(), *ends(np.array([0], np.uint64), np.array([2**64 - 1], np.uint64))),
        "^range: ends lie within",
    ),
    "ranges of a release": (lambda: session().release(td.CDF("age"), 1).range([1, 2], [3]), "^range: "),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_calls(call: str) -> None:
    make, says = CALLS[call]
    with pytest.raises(SpecificationError, match=says):
        make()


LINE = td.Domain(x=td.Integer(0, 4))
SMALL = td.Policy(LINE, td.Within(1))
EVEN = td.channels.randomised_response(LINE, 1)
JOINT = [[3, 1, 0, 0, 0], [0, 0, 0, 1, 3]]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: td.channels.randomised_response(3, 1), "randomised_response.domain: a td.Domain, not a number"),
        (lambda: td.channels.exponential(SMALL, 1, 1), "domain: a td.Domain, not Policy"),
        (lambda: td.channels.tight_constraints(None, 1, 1), "domain: a td.Domain, not nothing"),
        (lambda: td.channels.planar_geometric(3, 1, 1), "domain: a td.Domain, not a number"),
        (lambda: td.channels.planar_laplace("x", 1, 1), "domain: a td.Domain, not text"),
        (lambda: td.channels.least_leaking(JOINT, distortion=1, domain=3), "domain: a td.Domain, not a number"),
        (lambda: td.channels.least_leaking(JOINT, distortion=1, domain=LINE, outputs=3), "outputs: a td.Domain"),
        (lambda: td.channels.curve(JOINT, distortions=3, domain=LINE), "curve.distortions: a list"),
        (lambda: td.channels.privic(3, domain=LINE, epsilon=1, epsilon_per=1, rounds=1), "privic.collect: a function"),
        (lambda: EVEN.then(3), "channel.then: a channel, not a number"),
        (lambda: td.audit(3, SMALL, epsilon=1), "audit.query: a query such as"),
        (lambda: td.audit(SMALL, td.CDF("x"), epsilon=1), "audit.query: a query such as"),
        (lambda: td.audit(td.CDF("x"), LINE, epsilon=1), "audit.policy: a td.Policy, not "),
        (lambda: td.Session(td.Table({"x": [1]}, LINE), SMALL, 1).release_all([td.CDF("x")]), "release_all.requests: "),
        (lambda: td.Session(td.Table({"x": [1]}, LINE), SMALL, 1).release_all(3), "release_all.requests: a list"),
        (lambda: td.Session(td.Table({"x": [1]}, LINE), SMALL, 1).release(td.CDF("x"), 1).save("o", present=3), "present: a table"),
        (lambda: td.Session(td.Table({"x": [1]}, LINE), SMALL, 1).release(td.CDF("x"), 1, name="../o"), "Release name '../o'"),
        (lambda: td.Session(td.Table({"x": [1]}, LINE), SMALL, 1).release(td.CDF("x"), 1, name=3), "Release name 3"),
        (lambda: td.leakage.fano_bound("x", 5), "entropy: "),
        (lambda: SMALL.explain(epsilon=1, rho=1), "explain: epsilon or rho, one of them"),
    ],
)  # fmt: skip
def test_arguments_of_another_kind_are_named(call: Callable[[], object], says: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        call()
    assert says in str(caught.value)


def test_what_is_right_is_still_read() -> None:
    values = td.Categorical(np.array(["f", "m"])).values
    assert values == td.Categorical(c for c in "fm").values == td.Categorical({"f": 1, "m": 2}.keys()).values
    assert td.Linear(np.array([[1, -1]]), "sex").matrix == ((1, -1),)
    assert td.Quantiles("age", np.array([0.5])).levels[0] == td.Quantiles("age", ["1/2"]).levels[0]
    secrets = td.Partition(by={("f", 1): "a", ("m", 2): "b"})
    assert secrets_from_spec(secrets.to_spec()) == secrets
    first, past = bounds(axis(), *ends([1, 2], [3, 9]))
    assert (first.tolist(), past.tolist()) == ([1, 2], [4, 10])
    wide = resolve(td.CDF("age", bins={"age": 10**30}), DOMAIN).axis
    assert wide is not None and wide.size == 1
    # Names of groups that no special cell bears, on an attribute that has both special cells.
    assert group({"a": ["f"], "b": ["m"]}).axis is None


def test_kinds_are_named_and_never_shown() -> None:
    secret = "secret-value"
    given = [secret, [secret], {secret: 1}, {secret}, secret.encode(), 1.5, float("nan"), None, True]
    assert [kind_of(v) for v in given] == [
        "text", "a list", "a table", "a set, which has no order", "bytes", "a number", "a number that is not finite",
        "nothing", "a truth value",
    ]  # fmt: skip
    for value in (secret, {secret: 1}, {secret}, secret.encode()):
        with pytest.raises(SpecificationError, match=r"^key: a list, not") as caught:
            listed(value, "key", "a list")
        assert secret not in str(caught.value)
