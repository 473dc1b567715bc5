"""Products over several attributes as strategies: price, error, noise, release and account beside matrices written out in full."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from oracle import brute

import tetraodon as td
from tetraodon.answers import answers
from tetraodon.costs import terms_from_spec, terms_spec
from tetraodon.errors import LedgerError, SpecificationError, Unsupported
from tetraodon.loss import Loss
from tetraodon.mechanisms import Kronecker, kron_strategy, kronecker, mechanism_from_spec
from tetraodon.mechanisms.kron_strategy import KroneckerStrategy, joined
from tetraodon.mechanisms.search import Search
from tetraodon.mechanisms.select import candidates, notes, price
from tetraodon.publish import publish
from tetraodon.release import Release
from tetraodon.sensitivity import kinds, stacked
from tetraodon.sensitivity.joint import Joint
from tetraodon.workload import resolve

PURE, GAUSSIAN = Loss("epsilon", Fraction(1, 3)), Loss("rho", Fraction(1, 50))
DOMAIN = td.Domain(a=td.Integer(0, 4), b=td.Categorical(["x", "y", "z"]), c=td.Integer(0, 3))
LINES = td.AttributeWise(a=td.Within(1), c=td.Within(2))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few factors to choose from: what is priced here does not depend on how good they are."""
    monkeypatch.setattr(kronecker, "WORK", 1e5)
    monkeypatch.setattr(kronecker, "EDGES", (4.0, 2.0, 1.0, 0.5, 0.25))


def made(query: Any, secrets: Any, loss: Loss, domain: td.Domain = DOMAIN) -> KroneckerStrategy:
    policy = td.Policy(domain, secrets)
    return joined(Search(resolve(query, domain), policy.neighbourhood, loss))


def columns(strategy: KroneckerStrategy, domain: td.Domain) -> list[Any]:
    """What a record in each cell of the whole domain adds to the rows, as whole Python numbers."""
    query, resolved = strategy.query, strategy.resolved
    names = [g.name for g in resolved.groups] + ([resolved.axis.name] if resolved.axis is not None else [])
    bins, where = dict(query.bins), query.to_spec().get("where", {})
    places = {n: brute.positions(domain[n], bins.get(n), where.get(n)) for n in domain.names}
    found = []
    for record in brute.tuples(domain):
        at = [places[n][c] for n, c in zip(domain.names, record, strict=True)]
        here = dict(zip(domain.names, at, strict=True))
        told = [f.astype(object)[:, [here[n] or 0]] for n, f in zip(names, strategy.factors, strict=True)]
        column = reduce(np.kron, told)[:, 0]
        found.append(column if all(p is not None for p in at) else column * 0)
    return found


def largest(listed: list[Any], pairs: Any, power: int) -> int:
    return max((sum(abs(int(v)) ** power for v in listed[a] - listed[b]) for a, b in pairs), default=0)


QUERIES = [
    td.Histogram("a", "c"),
    td.Histogram("a", "b", "c"),
    td.Histogram("a", "c", where={"c": [0, 2, 3]}),
    td.Histogram("a", "c", where={"b": "x"}),
    td.CDF("a", by="b"),
    td.CDF("a", by=["b", "c"], bins={"a": 2}),
    td.Ranges("c", by="a"),
    td.Ranges("a", by="c", where={"b": ["x", "y"]}),
]
SECRETS = [LINES, td.AttributeWise(), td.Within(1, on="a"), td.AttributeWise(b=td.Full(), c=td.Within(1))]


@pytest.mark.parametrize("loss", [PURE, GAUSSIAN])
@pytest.mark.parametrize("secrets", SECRETS)
@pytest.mark.parametrize("query", QUERIES)
def test_the_price_is_the_largest_move_of_a_record(query: Any, secrets: Any, loss: Loss) -> None:
    strategy, power = made(query, secrets, loss), 1 if loss.unit == "epsilon" else 2
    edges = brute.edges(brute.adjacency(DOMAIN, secrets))
    listed = columns(strategy, DOMAIN)
    move = largest(listed, edges, power)
    assert strategy.move.value == move
    [(scale, number)] = strategy.draws
    assert number == len(listed[0])
    assert Fraction(move) / (scale if power == 1 else 2 * scale) == loss.amount == strategy.spent.amount
    hood = td.Policy(DOMAIN, secrets).neighbourhood
    assert stacked(strategy.terms, hood, power).value == loss.amount
    assert strategy.exact_terms == ()
    witness = strategy.cost.witness
    assert witness is not None and witness[0] != witness[1]
    every = brute.tuples(DOMAIN)
    by_name: dict[str, list[tuple[int, int]]] = {}
    for a, b in edges:
        [name] = brute.differing(DOMAIN, every[a], every[b])
        by_name.setdefault(name, []).append((a, b))
    found = {n: largest(listed, pairs, power) for n, pairs in by_name.items()}
    assert strategy.move.by_secret == {n: v for n, v in found.items() if v}


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize(
    "secrets", [td.Full(), td.Within(2, metric=td.L1({"a": 1, "c": "1/2"})), td.AttributeWise()]
)
def test_what_was_kept_is_priced_under_any_graph(secrets: Any, power: int) -> None:
    strategy = made(td.CDF("a", by="c", where={"b": ["x", "z"]}), LINES, PURE if power == 1 else GAUSSIAN)
    kept = terms_spec(strategy.terms)
    assert kept is not None
    [term] = terms_from_spec(kept, DOMAIN)
    listed = columns(strategy, DOMAIN)
    move = largest(listed, brute.edges(brute.adjacency(DOMAIN, secrets)), power)
    found = stacked([term], td.Policy(DOMAIN, secrets).neighbourhood, power)
    assert found.value == move * term.factor
    # Beside another release the joint loss is at most the sum, and each alone at least what it is.
    twice = stacked([term, term], td.Policy(DOMAIN, secrets).neighbourhood, power)
    assert twice.value == 2 * found.value


def test_damaged_rows_are_refused() -> None:
    strategy = made(td.CDF("a", by="c"), LINES, GAUSSIAN)
    [kept] = terms_spec(strategy.terms) or []
    [rows] = kept["rows"]
    for broken in (
        {**rows, "joint": rows["joint"][::-1]},
        {**rows, "joint": rows["joint"][:1]},
        {**rows, "joint": []},
        {**rows, "joint": [[-1, -5], *rows["joint"][1:]]},
    ):
        with pytest.raises(LedgerError):
            terms_from_spec([{**kept, "rows": [broken]}], DOMAIN)
    with pytest.raises(LedgerError):
        terms_from_spec([{**kept, "rows": [rows, rows]}], DOMAIN)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_moves_between_any_two_cells(seed: int, power: int) -> None:
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 4, 3)
    layer = Joint(tuple(rng.integers(-9, 9, (int(rng.integers(1, 4)), n)) for n in shape), 3, power)
    whole = reduce(np.kron, [f.astype(object) for f in layer.factors])
    whole = np.concatenate([whole, np.zeros((len(whole), 1), dtype=object)], axis=1)
    a, b = (i.ravel() for i in np.indices((layer.size + 1, layer.size + 1)))
    slow = [sum(abs(v) ** power for v in whole[:, i] - whole[:, j]) for i, j in zip(a, b, strict=True)]
    assert layer.difference(a, b).tolist() == slow
    assert (
        layer.difference(a.reshape(-1, layer.size + 1), b.reshape(-1, layer.size + 1)).shape[0]
        == layer.size + 1
    )
    assert layer.ceiling >= 3 * max(slow)
    table = rng.integers(0, 5, layer.size)
    assert layer.applied(table).ravel().tolist() == (whole[:, :-1] @ table.astype(object)).tolist()


def asked(strategy: KroneckerStrategy) -> np.ndarray:
    """Every answer as a row over the cells, groups first."""
    resolved = strategy.resolved
    size = resolved.n_positions
    if resolved.query.word == "histogram":
        along = np.eye(size)
    elif resolved.query.word == "cdf":
        along = np.tril(np.ones((size, size)))
    else:
        along = np.array(
            [[lo <= p < hi for p in range(size)] for lo, hi in itertools.combinations(range(size + 1), 2)],
            float,
        )
    return np.kron(np.eye(resolved.n_groups), along)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("loss", [PURE, GAUSSIAN])
def test_the_error_is_that_of_least_squares_with_the_public_total(query: Any, loss: Loss) -> None:
    strategy = made(query, LINES, loss)
    rows = reduce(np.kron, strategy.factors).astype(float)
    noise = strategy.noise_variance(strategy.draws[0][0])
    basis = np.eye(rows.shape[1])
    if not strategy.resolved.is_filtered:
        basis = np.linalg.svd(np.ones((1, rows.shape[1])))[2][1:].T
    spread = basis @ np.linalg.inv(basis.T @ rows.T @ rows @ basis) @ basis.T * noise
    own = ((asked(strategy) @ spread) * asked(strategy)).sum(axis=1)
    assert strategy.expected_error == pytest.approx(own.mean(), rel=1e-7)
    groups, size = strategy.resolved.n_groups, strategy.resolved.n_positions
    if query.word != "ranges":
        assert strategy.answer_variance().ravel() == pytest.approx(own, rel=1e-6, abs=1e-9 * own.max())
    lows, highs = np.array([0, size - 1]), np.array([size - 1, size])
    told = strategy.range_variance(lows, highs)
    for g, (i, (lo, hi)) in itertools.product(range(groups), enumerate(zip(lows, highs, strict=True))):
        row = np.zeros((groups, size))
        row[g, lo:hi] = 1
        assert told[g, i] == pytest.approx(row.ravel() @ spread @ row.ravel(), rel=1e-6, abs=1e-9 * own.max())


class Drawn:
    """Noise of a generator with a known start, in the form of a reserve."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def gaussian(self, square: Fraction, count: int) -> np.ndarray:
        return np.rint(self.generator.normal(0, float(square) ** 0.5, count)).astype(np.int64)

    def laplace(self, scale: Fraction, count: int) -> np.ndarray:
        return np.rint(self.generator.laplace(0, float(scale), count)).astype(np.int64)


@pytest.mark.parametrize(
    "query", [td.Histogram("a", "c"), td.CDF("a", by="c"), td.CDF("a", by="c", where={"b": "x"})]
)
@pytest.mark.parametrize("loss", [PURE, GAUSSIAN])
def test_errors_and_intervals_hold_in_draws(query: Any, loss: Loss) -> None:
    strategy, draws = made(query, LINES, loss), Drawn(7)
    groups, size = strategy.resolved.n_groups, strategy.resolved.n_positions
    true = np.random.default_rng(3).integers(0, 4000, (groups, size))
    total = int(true.sum()) + (900 if strategy.resolved.is_filtered else 0)
    wanted = (asked(strategy) @ true.ravel()).reshape(groups, -1)
    linear, held, rounds = 0.0, 0.0, 300
    for _ in range(rounds):
        noisy = strategy.observe(true, total, draws)
        cells = strategy.estimate(noisy)
        if not strategy.resolved.is_filtered:
            assert cells.sum() == pytest.approx(total)
        linear += (
            float((((asked(strategy) @ cells.ravel()).reshape(groups, -1) - wanted) ** 2).mean()) / rounds
        )
        told = answers(strategy, noisy)
        held += float(((told.lower <= wanted) & (wanted <= told.upper)).mean()) / rounds
    assert linear == pytest.approx(strategy.expected_error, rel=0.12)
    assert 0.94 < held < 1


def small_table() -> td.Table:
    rng = np.random.default_rng(5)
    return td.Table(
        {
            "a": rng.integers(0, 5, 400).tolist(),
            "b": list("xyzx" * 100),
            "c": rng.integers(0, 4, 400).tolist(),
        },
        DOMAIN,
    )


def released(session: td.Session) -> Release:
    return session.release(td.CDF("a", by="c"), rho="1/8", mechanism="kronecker")


def test_a_release_and_its_account(tmp_path: Any) -> None:
    ledger = tmp_path / "l.ledger"
    session = td.Session(small_table(), td.Policy(DOMAIN, LINES), rho=4, delta="1e-6", ledger=ledger)
    one = released(session)
    assert isinstance(one.strategy, KroneckerStrategy)
    assert session.ledger.spent == Fraction(1, 8)
    frame = one.to_frame()
    assert list(frame.columns) == ["a", "c", "value", "lower", "upper"] and len(frame) == 20
    assert (frame["lower"] <= frame["value"]).all() and (frame["value"] <= frame["upper"]).all()
    assert (np.diff(one.answers.values, axis=1) >= 0).all()
    assert one.range(1, 3).value.shape == (4,) and one.range(1, 3).lower.shape == (4,)
    assert one.disclosures() == []
    assert one.save(tmp_path / "out").exists()
    # A second policy over the same ledger prices the rows as they are.
    wider = td.AttributeWise()
    other = td.Session(small_table(), td.Policy(DOMAIN, wider), rho=4, delta="1e-6", ledger=ledger)
    listed = columns(one.strategy, DOMAIN)
    move = largest(listed, brute.edges(brute.adjacency(DOMAIN, wider)), 2)
    factor = Fraction(1, 8) / one.strategy.move.value
    assert other.ledger.spent == move * factor > Fraction(1, 8)
    full = td.Session(small_table(), td.Policy(DOMAIN, td.Full()), rho=4, delta="1e-6", ledger=ledger)
    move = largest(listed, brute.edges(brute.adjacency(DOMAIN, td.Full())), 2)
    assert full.ledger.spent == move * factor


def test_a_report_tells_rows_of_all_cells_from_rows_of_groups(tmp_path: Any) -> None:
    domain = td.Domain(b=td.Categorical(["x", "y", "z"]), d=td.Categorical(["p", "q"]))
    table = td.Table({"b": list("xyzx"), "d": list("pqqp")}, domain)
    policy = td.Policy(domain, td.AttributeWise(b=td.Edges([("x", "y")]), d=td.Full()))
    session = td.Session(table, policy, rho=1, delta="1e-6")
    one = session.release(td.Histogram("b", "d"), rho="1/8", mechanism="kronecker")
    publish(tmp_path, [(one, ("csv",))], session.context, report=True)
    told = (tmp_path / "report.html").read_text()
    assert "over all attributes at once" in told and "in each of" not in told


@pytest.mark.parametrize("few", [10**6, 0])
@pytest.mark.parametrize("power", [1, 2])
def test_under_known_counts_two_records_that_change_places_are_covered(
    power: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "FEW_KINDS", few)
    domain = td.Domain(a=td.Integer(0, 2), c=td.Integer(0, 1))
    strategy = made(
        td.Histogram("a", "c"), td.AttributeWise(a=td.Within(1)), PURE if power == 1 else GAUSSIAN, domain
    )
    policy = td.Policy(domain, td.AttributeWise(), [td.CountConstraint(where={"a": 0})])
    bound = stacked(strategy.terms, policy.neighbourhood, power).value
    listed = columns(strategy, domain)
    every, edges = brute.tuples(domain), brute.edges(brute.adjacency(domain, td.AttributeWise()))
    both_ways = [*edges, *((b, a) for a, b in edges)]
    worst = 0
    for (a, b), (x, y) in itertools.product(both_ways, repeat=2):
        leaves, enters = (int(every[i][0] == 0) - int(every[j][0] == 0) for i, j in ((b, a), (y, x)))
        if leaves == -enters != 0:  # neither could change alone
            change = listed[b] - listed[a] + listed[y] - listed[x]
            worst = max(worst, sum(abs(int(v)) ** power for v in change))
    [term] = strategy.terms
    assert bound >= worst * term.factor > 0


def test_auto_takes_products_where_they_gain() -> None:
    domain = td.Domain(a=td.Integer(0, 15), c=td.Integer(0, 11))
    hood = td.Policy(domain, td.AttributeWise(a=td.Within(1), c=td.Within(1))).neighbourhood
    asked_of = resolve(td.CDF("a", by="c"), domain)
    best, second = candidates(asked_of, hood, GAUSSIAN)[:2]
    assert best.mechanism == Kronecker() and best.expected_error < 0.9 * second.expected_error
    # All values of a group secret from each other: nothing is near, and rows of groups are as good.
    full = td.Policy(domain, td.Full()).neighbourhood
    assert Kronecker() not in [s.mechanism for s in candidates(asked_of, full, GAUSSIAN)]
    # Laplace noise takes seconds: by name, and the plan says so.
    assert Kronecker() not in [s.mechanism for s in candidates(asked_of, hood, PURE)]
    assert any('"kronecker"' in text for text in notes(asked_of, hood, PURE))
    assert not any('"kronecker"' in text for text in notes(asked_of, hood, GAUSSIAN))


def test_mechanism_by_name() -> None:
    assert mechanism_from_spec("kronecker") == mechanism_from_spec({"kronecker": {}}) == Kronecker()
    found = price(
        Kronecker(), resolve(td.CDF("a", by="c"), DOMAIN), td.Policy(DOMAIN, LINES).neighbourhood, PURE
    )
    assert isinstance(found, KroneckerStrategy) and found.mechanism == Kronecker()


@pytest.mark.parametrize(
    ("query", "secrets", "message"),
    [
        (td.CDF("a"), LINES, "two or more attributes"),
        (td.Sum("a", by="c"), LINES, "for Histogram, CDF and all Ranges"),
        (td.Quantiles("a", ["1/2"], by="c"), LINES, "for Histogram, CDF and all Ranges"),
        (td.Ranges("a", [(0, 2)], by="c"), LINES, "for Histogram, CDF and all Ranges"),
        (td.CDF("a", by="c"), td.Full(), "one attribute at a time"),
    ],
)
def test_refusals_in_words(query: Any, secrets: Any, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        made(query, secrets, GAUSSIAN)


def test_refused_under_known_counts_and_where_nothing_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    known = td.Policy(DOMAIN, LINES, [td.CountConstraint(where={"a": 0})])
    with pytest.raises(SpecificationError, match="not under known counts"):
        joined(Search(resolve(td.CDF("a", by="c"), DOMAIN), known.neighbourhood, GAUSSIAN))
    with pytest.raises(SpecificationError, match="no secret changes this answer"):
        made(td.CDF("a", by="b"), td.Within(1, on="c"), GAUSSIAN)
    monkeypatch.setattr(kron_strategy, "MAX_CELLS", 10)
    with pytest.raises(Unsupported, match="not 20"):
        made(td.CDF("a", by="c"), LINES, GAUSSIAN)
    long = td.Domain(a=td.Integer(0, 599), c=td.Integer(0, 3))
    with pytest.raises(Unsupported, match="512 positions of an attribute, not 600"):
        made(td.CDF("a", by="c"), td.AttributeWise(), GAUSSIAN, long)


def test_too_many_records_are_refused_before_they_are_charged() -> None:
    strategy = made(td.CDF("a", by="c"), LINES, GAUSSIAN)
    strategy.admit(10**9)
    with pytest.raises(Unsupported, match="so many records"):
        strategy.admit(2**60)
