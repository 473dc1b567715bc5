"""Every way of answering with noise on rows of counts, by its noise and by what the policy says."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from audit.mutants import twin_noise as broken
from audit.mutants import twin_rows as made
from audit.subjects import Subject, asked, instead, mispriced, patched, price, priced_under

import tetraodon as td
from tetraodon.loss import Loss
from tetraodon.marginals.mechanism import Tables
from tetraodon.mechanisms import (
    Direct,
    Hierarchical,
    Identity,
    Kronecker,
    Optimised,
    Ordered,
    OrderedHierarchical,
)
from tetraodon.people import people_of

EPSILON, RHO = Loss("epsilon", Fraction(1)), Loss("rho", Fraction(1))
NOISES = {"Laplace": EPSILON, "Gaussian": RHO}
EDGES = "largest move over the edges, exact"
RULE_R = "Rule R (known counts)"

LINE = td.Domain(v=td.Integer(0, 7))
NEAR, NEARER = (td.Policy(LINE, td.Within(t)) for t in (3, 2))
TWO = td.Domain(a=td.Integer(0, 2), b=td.Categorical(["x", "y", "z"]))
BOTH = td.Policy(TWO, td.AttributeWise(a=td.Within(2), b=td.Full()))
LESS = td.Policy(TWO, td.AttributeWise(a=td.Within(1), b=td.Nothing()))
REAL = [[3, 1, 4, 1, 5, 9, 2, 6], [-2, -7, -1, -8, -2, -8, -1, -8]]
FIRST = td.Policy(LINE, td.Edges([(0, 1)]))


def _linear(
    name: str,
    covers: str,
    query: Any,
    mechanism: Any,
    policy: Any,
    weaker: Any,
    more: dict[str, Any] | None = None,
) -> list[Subject]:
    """One subject for each noise, with the twins that every such mechanism has."""
    found = []
    for noise, loss in NOISES.items():
        twins = {what: patched(patch) for what, patch in broken.EVERY.items()}
        twins["edges left out"] = priced_under(query, weaker, policy, mechanism, loss)
        if noise == "Gaussian":
            twins["σ for σ²"] = patched(broken.laplace_for_gaussian)
        twins |= {what: twin(loss) for what, twin in (more or {}).items()}
        run = asked(query, policy, mechanism, loss)
        is_slow = covers in ("kronecker", "optimised") and noise == "Laplace"
        found.append(Subject(f"{name}, {noise}", (covers,), EDGES, policy, run, twins, is_slow=is_slow))
    return found


def _patch(patch: Callable[[], Any]) -> Callable[[Loss], Any]:
    return lambda _: patched(patch)


def subjects() -> list[Subject]:
    """All of them."""
    words = {"one word for all numbers": _patch(broken.one_word_for_all)}
    bit = {"last bit in clear": _patch(broken.last_bit_in_clear)}
    cdf = td.CDF("v")
    return [
        *_linear("Identity", "identity", td.Histogram("v"), Identity(), NEAR, td.Policy(LINE, td.Nothing()), bit),
        *_linear("Ordered", "ordered", cdf, Ordered(), NEAR, NEARER, words | bit),
        *_linear("Hierarchical", "hierarchical", cdf, Hierarchical(3), NEAR, FIRST, words),
        *_linear(
            "Ordered hierarchical", "ordered-hierarchical", cdf, OrderedHierarchical(3, block=3), NEAR, FIRST,
            words,
        ),
        *_linear(
            "Direct", "direct", td.Linear(REAL, "v"), Direct(), NEAR, FIRST,
            words | {"values not clipped to the declared bounds": lambda loss: instead(lambda: made.unclipped(loss))},
        ),
        *_linear(
            "Optimised", "optimised", cdf, Optimised(), NEAR, NEARER,
            words | {"answers rounded, not the matrix": lambda loss: instead(lambda: made.rounded_answers(loss))},
        ),
        *_published(),
        *_linear("Kronecker", "kronecker", td.Histogram("a", "b"), Kronecker(), BOTH, LESS, words),
        *_linear("Marginals", "tables", td.Marginals([("a", "b"), ("a",)]), Tables("lower"), BOTH, LESS, words),
        *_known(),
        *_people(),
        *_disclosed(),
    ]  # fmt: skip


def _published() -> list[Subject]:
    """The paper's budget, which is stated for ε alone, beside the mechanism that it is a twin of."""
    mechanism, query = OrderedHierarchical(2, block=2), td.CDF("v")
    twins = {"published budget": instead(lambda: made.published_budget(8, 2, 2, EPSILON))}
    twins |= {what: patched(patch) for what, patch in broken.EVERY.items()}
    run = asked(query, NEARER, mechanism, EPSILON)
    return [
        Subject("Ordered hierarchical, blocks of 2", ("ordered-hierarchical",), EDGES, NEARER, run, twins)
    ]


# ---------- known counts ----------


def _known() -> list[Subject]:
    half = td.Policy(LINE, td.Within(1), constraints=[td.CountConstraint(where={"v": (0, 3)})])
    nested = td.Policy(
        td.Domain(v=td.Integer(0, 5)), td.Full(),
        constraints=[td.CountConstraint(where={"v": (0, 3)}), td.CountConstraint(where={"v": (0, 1)})],
    )  # fmt: skip
    cells = td.Domain(a=td.Categorical(["0", "1"]), b=td.Categorical(["0", "1"]), c=td.Integer(0, 1))
    margins = td.Policy(
        cells, td.AttributeWise(), constraints=[td.MarginalConstraint("a"), td.MarginalConstraint("b")]
    )
    formulas = {"edge formula": broken.edge_formula, "no way round": broken.smallest_diameters}
    found = []
    for noise, loss in NOISES.items():
        for name, policy, query, mechanism, more in (
            ("a range", half, td.CDF("v"), Ordered(), {"edge formula × 2": broken.times_two}),
            ("nested ranges", nested, td.Histogram("v"), Identity(), {}),
            ("two marginals", margins, td.Histogram("a", "b", "c"), Identity(), {}),
        ):
            told = {what: patched(p) for what, p in broken.EXACTLY.items()}
            told |= {
                what: mispriced(p, query, policy, mechanism, loss) for what, p in (formulas | more).items()
            }
            if name == "two marginals":  # its bound is another one, which is not attained
                for what in ("no way round", "sensitivity off by one", "half the scale"):
                    told.pop(what)
                told["an eighth of the scale"] = patched(broken.eighth_of_the_scale)
            run = asked(query, policy, mechanism, loss)
            found.append(
                Subject(
                    f"Known counts: {name}, {noise}",
                    (mechanism_key(mechanism),),
                    RULE_R,
                    policy,
                    run,
                    told,
                    is_loose=name == "two marginals",
                )
            )
    return found


def mechanism_key(mechanism: Any) -> str:
    """Its name in a settings file."""
    return str(next(iter(mechanism.to_spec())))


# ---------- people ----------


def _people() -> list[Subject]:
    line = td.Domain(v=td.Integer(0, 4))
    plain = td.Policy(line, td.Within(1))
    ways = {
        "three rows a person": {"id": "p", "max_rows_per_id": 3, "keep_by": "k", "row_counts": "public"},
        "rows of secret number": {"id": "p", "max_rows_per_id": 2, "row_counts": "secret"},
        "weights": {"weight": "w", "weight_bounds": (1, 3), "weights": "public"},
        "secret weights": {"weight": "w", "weight_bounds": (0, 2)},
    }
    found = []
    for noise, loss in NOISES.items():
        for name, told in ways.items():
            policy = plain.with_people(people_of(**told))  # type: ignore[arg-type]
            found.append(_of_people(f"People: {name}, {noise}", policy, loss, noise))
        hidden = td.Policy(line, td.Within(1), presence="secret")
        found.append(_of_people(f"Presence secret, {noise}", hidden, loss, noise))
        found.append(_missing(noise, loss))
    return found


def _of_people(name: str, policy: Any, loss: Loss, noise: str) -> Subject:
    query = td.CDF("v")
    twins = {what: patched(p) for what, p in broken.EXACTLY.items()}
    if "secret number" in name:
        twins.pop("sensitivity off by one")  # the bound is not attained there
    if policy.people.times > 1:
        rest = (query, policy, Ordered(), loss)
        twins["one row a person"] = mispriced(lambda: broken.counted_once(1), *rest)
        if noise == "Gaussian":
            twins["m for m²"] = mispriced(lambda: broken.counted_once(2), *rest)
    if policy.neighbourhood.vanishing:
        twins["total published"] = instead(
            lambda: made.with_total(price(query, policy, Ordered(), loss), policy)
        )
        weaker = td.Policy(policy.domain, td.Within(1))
        twins["nobody comes or goes"] = priced_under(query, weaker, policy, Ordered(), loss)
    return Subject(
        name,
        ("ordered",),
        "largest move of a person's slots",
        policy,
        asked(query, policy, Ordered(), loss),
        twins,
        is_loose="secret number" in name,
    )


def _missing(noise: str, loss: Loss) -> Subject:
    domain = td.Domain(v=td.Integer(0, 5, missing="secret"))
    policy = td.Policy(domain, td.Within(1))
    open_ = td.Policy(td.Domain(v=td.Integer(0, 5, missing="public")), td.Within(1))
    query = td.CDF("v")
    twins = {what: patched(p) for what, p in broken.EXACTLY.items()}
    twins["missing values left out"] = priced_under(query, open_, policy, Ordered(), loss)
    return Subject(
        f"Missing values secret, {noise}",
        ("ordered",),
        EDGES,
        policy,
        asked(query, policy, Ordered(), loss),
        twins,
    )


# ---------- disclosed blocks ----------


def _disclosed() -> list[Subject]:
    grid = td.Domain(x=td.Integer(0, 3), y=td.Integer(0, 3))
    coarse = td.Policy(grid, td.Partition(blocks={"x": 2, "y": 2}))
    fine = td.Policy(grid, td.Partition(blocks={"x": 4, "y": 2}))
    return _linear("Totals of disclosed blocks", "identity", td.Histogram("x", "y"), Identity(), coarse, fine)
