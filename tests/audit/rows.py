"""Every kind of channel, as rows go through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np
from audit import laws
from audit.judge import Ran, edges
from audit.mutants import twin_channels as broken
from audit.subjects import Subject, instead
from oracle import brute, constrained

import tetraodon as td
from tetraodon.auditing import rowing
from tetraodon.loss import Loss
from tetraodon.rows.strategy import RowStrategy, priced

EPSILON = Loss("epsilon", Fraction(1))
ROWS = "largest log-ratio over the edges"
LINE = td.Domain(v=td.Integer(0, 4))
GRID = td.Domain(x=td.Integer(0, 2), y=td.Integer(0, 2))
VOTE = td.Domain(c=td.Categorical(["p", "q", "r"], other="else", missing="secret"))
NEAR = td.Policy(LINE, td.Within(1))
AROUND = td.Policy(GRID, td.AttributeWise(x=td.Within(1), y=td.Within(1)))
VOTES = td.Policy(VOTE, td.Full())
FORMULAS = ("planar-geometric", "planar-laplace", "exponential", "randomised-response", "tight-constraints")
BLOCKS = td.Partition(blocks=2)
MEAN = {"prior": [5, 1, 1, 2, 6], "source": "public"}


def of(strategy: RowStrategy, claim: Loss | None = None) -> Ran:
    """Rows through a strategy's channels: exact laws of the tables that are drawn from, and draws through a made-up table."""
    told = strategy.spent if claim is None else claim
    domain = strategy.policy.domain

    def loss(a: Any, b: Any) -> Fraction | float:
        ratio: Fraction | None = Fraction(1)
        for x, y in zip(a, b, strict=True):
            for part in strategy.parts:
                one, two = (laws.row(part.channel, laws.cell_of(domain, c, part.domain)) for c in (x, y))
                ratio = laws.times(ratio, laws.worst(one, two), strategy.query.rows_per_person)
        return laws.as_loss(ratio, told.amount)

    def drawn(a: Any, b: Any, draws: int) -> tuple[Any, Any]:
        one, two = (rowing.outputs(strategy, [(c, 1) for c in t], domain, draws) for t in (a, b))
        return one, two

    return Ran(told, loss, drawn)


def _priced(query: Any, policy: Any) -> RowStrategy:
    return priced(query, policy, EPSILON)


def _pairs(policy: Any) -> Callable[[], Sequence[tuple[Any, Any]]]:
    return lambda: [((a,), (b,)) for a, b in edges(policy)]


def _twins(query: Any, policy: Any, weaker: Any, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """What can go wrong with any channel."""

    def with_channels(change: Callable[[Any], Any]) -> Any:
        def run() -> Ran:
            strategy = _priced(query, policy)
            parts = tuple(replace(p, channel=change(p)) for p in strategy.parts)
            return of(replace(strategy, parts=parts))

        return instead(run)

    def rebuilt(times: int, secrets: Any) -> Callable[[Any], Any]:
        return lambda p: p.declared.build(p.domain, p.epsilon * times, secrets or p.secrets, {})

    told = {
        "one in three rows as they are": with_channels(lambda p: broken.sometimes_as_it_is(p.channel)),
        "a zero that the solver left": with_channels(lambda p: broken.with_a_zero(p.channel)),
        "three times the ε": with_channels(rebuilt(3, None)),
    }
    if weaker is not None:
        told["edges across blocks left out"] = with_channels(rebuilt(1, weaker))
    return told | (more or {})


def subjects() -> list[Subject]:
    """All of them."""
    found = []
    for kind in FORMULAS:
        query = td.Rows("v", channel={"kind": kind})
        alone = BLOCKS if kind not in ("planar-geometric", "planar-laplace") else None
        found.append(_subject(f"{kind}, a line", (kind,), query, NEAR, alone))
        on_grid = td.Rows(["x", "y"], channel={"kind": kind})
        found.append(_subject(f"{kind}, a grid", (kind,), on_grid, AROUND, None))
    votes = td.Rows("c", channel={"kind": "randomised-response"})
    found.append(_subject("randomised-response, categories", ("randomised-response",), votes, VOTES, None))
    least = td.Rows("v", channel={"kind": "least-distortion", **MEAN})
    private = {"private prior called public": instead(lambda: broken.private_prior(LINE, EPSILON))}
    found.append(_subject("least-distortion", ("least-distortion",), least, NEAR, BLOCKS, private))
    leaking = td.Rows("v", channel={"kind": "least-leaking", "distortion": 1, **MEAN})
    found.append(_subject("least-leaking", ("least-leaking",), leaking, NEAR, None, private))
    remap = td.Rows("v", channel={"kind": "exponential", "remap": {"prior": "uniform"}})
    looks = {"a remap that looks at the value": instead(lambda: broken.looking(_priced(remap, NEAR), of))}
    found.append(_subject("exponential, remapped", ("remap",), remap, NEAR, BLOCKS, looks))
    return [*found, _given(), _several_rows(), _places(), *_known(), _permanent(), *_floor()]


def _subject(
    name: str,
    covers: tuple[str, ...],
    query: Any,
    policy: Any,
    weaker: Any,
    more: dict[str, Any] | None = None,
) -> Subject:
    run = lambda: of(_priced(query, policy))  # noqa: E731
    twins = _twins(query, policy, weaker, more)
    if "remap" in covers:  # its table is not held, only its first law's
        twins.pop("a zero that the solver left")
    return Subject(name, covers, ROWS, policy, run, twins, _pairs(policy), exact="all edges, exact tables")


def _given() -> Subject:
    """A channel that the user brings: its own law counts, whatever its label says."""
    good = td.channels.tight_constraints(LINE, epsilon=1, secrets=td.Within(1))

    def believed(channel: Any) -> Any:
        return instead(lambda: of(broken.believed(td.Rows("v", channel=channel), NEAR, EPSILON)))

    strong = td.channels.tight_constraints(LINE, epsilon=2, secrets=td.Within(1))
    twins = {
        "its label believed": believed(replace(strong, asked=good.asked)),
        "one in three rows as they are": believed(broken.sometimes_as_it_is(good)),
        "a zero that the solver left": believed(broken.with_a_zero(good)),
        "an entry that tells by a thousandth": believed(broken.a_thousandth(good)),
    }
    run = lambda: of(_priced(td.Rows("v", channel=good), NEAR))  # noqa: E731
    return Subject(
        "a channel given", ("file",), ROWS, NEAR, run, twins, _pairs(NEAR), exact="all edges, exact tables"
    )


def _several_rows() -> Subject:
    """A person of two rows, both of which change."""
    query = td.Rows("v", channel={"kind": "tight-constraints"}, rows_per_person=2)
    single = td.Rows("v", channel={"kind": "tight-constraints"})

    def ignored() -> Ran:
        strategy = _priced(single, NEAR)
        return of(replace(strategy, query=query))

    twins = _twins(query, NEAR, BLOCKS, {"rows_per_person ignored": instead(ignored)})
    run = lambda: of(_priced(query, NEAR))  # noqa: E731
    return Subject(
        "two rows a person",
        ("rows_per_person",),
        ROWS,
        NEAR,
        run,
        twins,
        _pairs(NEAR),
        exact="all edges, exact tables",
    )


def _places() -> Subject:
    """Two places of one record, which an edge changes together."""
    policy = td.Policy(GRID, td.Full())
    query = td.Rows("x", "y", channel={"kind": "randomised-response"})

    def each_in_full() -> Ran:
        strategy = _priced(query, policy)
        parts = tuple(
            replace(p, channel=p.declared.build(p.domain, EPSILON.amount, p.secrets, {}))  # type: ignore[union-attr]
            for p in strategy.parts
        )
        return of(replace(strategy, parts=parts))

    twins = _twins(query, policy, None, {"every place has the whole ε": instead(each_in_full)})
    run = lambda: of(_priced(query, policy))  # noqa: E731
    return Subject(
        "two places of a record",
        ("joint places",),
        ROWS,
        policy,
        run,
        twins,
        _pairs(policy),
        exact="all edges, exact tables",
    )


def _known() -> list[Subject]:
    """Partners that have to move along, with outputs of their own."""
    line = td.Domain(v=td.Integer(0, 3))
    policy = td.Policy(line, td.Within(1), constraints=[td.CountConstraint(where={"v": (0, 1)})])
    plain = td.Policy(line, td.Within(1))
    query = td.Rows("v", channel={"kind": "tight-constraints"})

    def pairs() -> list[tuple[Any, Any]]:
        facts = constrained.predicates(line, [("count", {"v": (0, 1)})])
        found = constrained.neighbours(brute.adjacency(line, td.Within(1)), facts, 3)
        told = {
            tuple(zip(a, b, strict=True))
            for a, b in zip(found.before.tolist(), found.after.tolist(), strict=True)
        }
        moved = {tuple(sorted((x, y) for x, y in t if x != y)) for t in told}
        return [(tuple(x for x, _ in m), tuple(y for _, y in m)) for m in sorted(moved)]

    def edge_formula() -> Ran:
        return of(replace(_priced(query, plain), policy=policy))

    twins = _twins(query, policy, None, {"edge formula": instead(edge_formula)})
    run = lambda: of(_priced(query, policy))  # noqa: E731
    return [
        Subject(
            "rows under known counts",
            ("known counts",),
            "Rule R, arc by arc",
            policy,
            run,
            twins,
            pairs,
            exact="all neighbours, exact tables",
        )
    ]


def _permanent() -> Subject:
    """A person of two rows with one answer for an epoch; all rows may change along an edge."""
    channel = td.channels.tight_constraints(LINE, epsilon=1, secrets=td.Within(1))
    steps = {(a, b) for a, b in edges(NEAR)} | {(b, a) for a, b in edges(NEAR)} | {(a, a) for a in range(5)}

    def pairs() -> list[tuple[Any, Any]]:
        return [
            ((a, b), (c, d)) for a, c in sorted(steps) for b, d in sorted(steps) if (a, b) < (c, d) and a <= b
        ]

    run = lambda: broken.remembered(channel, "id", EPSILON)  # noqa: E731
    strong = td.channels.tight_constraints(LINE, epsilon=3, secrets=td.Within(1))
    twins = {
        "remembered by value": instead(lambda: broken.remembered(channel, "value", EPSILON)),
        "an answer for each row": instead(lambda: broken.remembered(channel, "row", EPSILON)),
        "a fresh store for the same epoch": instead(lambda: broken.remembered(channel, "id", EPSILON, 2)),
        "three times the ε": instead(lambda: broken.remembered(strong, "id", EPSILON)),
    }
    return Subject(
        "permanent answers", ("permanent",), "one answer for all rows of an id", NEAR, run, twins, pairs, 40_000,
        exact="all edges of both rows, exact tables",
    )  # fmt: skip


def _floor() -> list[Subject]:
    """What a learned channel sees of rows: the outputs of its floor."""
    if find_spec("optax") is None:  # the extra for learned channels
        return []
    domain = td.Domain(v=td.Integer(0, 4), s=td.Categorical(["a", "b"]))
    policy = td.Policy(domain, td.Within(1, on="v"))
    query = td.Rows(
        "v", channel={"kind": "learned", "secret": "s", "distortion": 1, "floor": "planar-geometric"}
    )
    base = _priced(query, policy)
    part = base.parts[0]

    def changed(channel: Any) -> Any:
        return instead(lambda: of(replace(base, parts=(replace(part, channel=channel),))))

    strong = part.declared.first(part.domain, 3 * part.epsilon, part.secrets)  # type: ignore[union-attr, operator]
    twins = {
        "three times the ε": changed(strong),
        "training sees some true rows": changed(broken.sometimes_as_it_is(part.channel)),
        "no floor": changed(td.Channel.of_matrix(np.eye(5), part.domain)),
        "a second step that looks at the value": instead(lambda: broken.looking(base, of)),
    }
    return [
        Subject(
            "learned behind a floor",
            ("learned",),
            ROWS + " of the floor",
            policy,
            lambda: of(base),
            twins,
            _pairs(policy),
            exact="all edges, exact tables",
        )
    ]
