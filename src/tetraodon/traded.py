"""What a release's manifest says of other policies: the ± of each along a grid of losses, and what each gives up.

Made from public inputs before anything is charged, so that a report can be read for "which loss would ± 100 have needed, and
under which secrets". Every ± is that of the mechanism that a plan chooses at the release's own loss, with its noise scaled:
each is reached at its loss, and a plan for that loss may do a little better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from .compare import OWN
from .errors import TetraodonError
from .exact import show
from .frontiers import Offer
from .loss import Loss
from .mechanisms.strategy import Strategy
from .plans import Priced, finite, name_of, unit_of
from .policy import Policy
from .requests import PricedRequest
from .weaker import given_up, neighbours_of, strongest
from .workload import Rows, SomeRanges

WORDS = ("cdf", "ranges", "quantiles", "sum", "mean")
# 24 preferred numbers a decade: each about a tenth above the one before.
DECADE = tuple(
    Fraction(tenths, 10)
    for tenths in (
        10,
        11,
        12,
        13,
        15,
        16,
        18,
        20,
        22,
        24,
        27,
        30,
        33,
        36,
        39,
        43,
        47,
        51,
        56,
        62,
        68,
        75,
        82,
        91,
    )
)
BELOW, ABOVE = Fraction(1, 20), 20
FACTORS = (Fraction(10), Fraction(1, 10), Fraction(2), Fraction(1, 2))
# Work that one run spends on policies that nobody named: a search along a long axis is 2 (about a quarter of a second), with
# stated ranges or quantiles 8, along an axis of up to SHORT cells half of that.
MOST_WORK, SHORT = 10, 256


def traded(
    policy: Policy, compared: Mapping[str, Policy], priced: Sequence[PricedRequest]
) -> dict[str, dict[str, Any]]:
    """For every release along one axis that has something to trade, what its manifest says; by the release's name.

    Besides the policies that are named these are looked at, as far as the work allows: any two values of the protected
    attributes, and ten times, a tenth, twice and half of a distance.

    Args:
        compared: other policies by name.
    """
    asked = [p for p in priced if _is_along_an_axis(p)]
    found = {p.request.name: {OWN: policy, **compared} for p in asked}
    others = {p.request.name: _others(policy, p) for p in asked}
    left = MOST_WORK
    for place in range(max(map(len, others.values()), default=0)):
        for p in asked:
            rest = list(others[p.request.name].items())[place : place + 1]
            for name, other in rest:
                is_new = other.hash not in {each.hash for each in found[p.request.name].values()}
                if is_new and name not in found[p.request.name] and _work(p) <= left:
                    left -= _work(p)
                    found[p.request.name][name] = other
    told = {p.request.name: _traded(p, found[p.request.name]) for p in asked}
    return {name: spec for name, spec in told.items() if spec is not None}


def _is_along_an_axis(p: PricedRequest) -> bool:
    strategy = p.strategy
    return (
        isinstance(strategy, Strategy)
        and strategy.query.word in WORDS
        and strategy.resolved.axis is not None
        and not strategy.spent.is_zero
    )


def _others(policy: Policy, p: PricedRequest) -> dict[str, Policy]:
    assert isinstance(p.strategy, Strategy) and p.strategy.resolved.axis is not None
    return neighbours_of(policy, p.strategy.resolved.axis.name, FACTORS)


def _work(p: PricedRequest) -> int:
    assert isinstance(p.strategy, Strategy)
    resolved = p.strategy.resolved
    if isinstance(resolved.workload, Rows):
        return 0
    dear = isinstance(resolved.workload, SomeRanges) or resolved.query.word == "quantiles"
    return (8 if dear else 2) // (2 if resolved.n_positions <= SHORT else 1)


def _traded(p: PricedRequest, policies: Mapping[str, Policy]) -> dict[str, Any] | None:
    """None where no policy has another ± than the release."""
    request, loss = p.request, p.request.loss
    assert isinstance(p.strategy, Strategy)
    chosen: dict[str, Priced] = {}
    for name, policy in policies.items():
        if name == OWN:
            chosen[name] = Priced(p.strategy, policy.people.grain)
            continue
        only = None if request.mechanism is None else (request.mechanism,)
        try:
            chosen[name] = Offer(request.query, policy, only).at(loss)[0]
        except TetraodonError:
            continue  # no price under these secrets
    own = chosen[OWN].half_width
    if all(row.half_width == own for row in chosen.values()):
        return None
    first = strongest({name: policies[name] for name in chosen})
    grid = losses_around(loss.amount)
    return {
        "loss": loss.unit,
        "unit": unit_of(p.strategy),
        "strongest": first,
        "grid": [show(amount) for amount in grid],
        "policies": [
            {
                "name": name,
                "mechanism": name_of(row.mechanism),
                "half_width": [_wide(row, Loss(loss.unit, amount)) for amount in grid],
                "gives_up": list(given_up(policies[name], policies[first], loss.unit)),
            }
            for name, row in chosen.items()
        ],
    }


def _wide(row: Priced, loss: Loss) -> float | None:
    strategy = row.strategy
    moved = strategy if strategy.spent.is_zero or strategy.loss == loss else replace(strategy, loss=loss)
    return finite(Priced(moved, row.grain).half_width)


def losses_around(amount: Fraction) -> tuple[Fraction, ...]:
    """Preferred numbers from a twentieth to twenty times a loss, that loss among them.

    >>> told = losses_around(Fraction(1, 2))
    >>> str(told[0]), str(told[-1]), len(told), Fraction(1, 2) in told
    ('27/1000', '10', 64, True)
    """
    low, high, found = amount * BELOW, amount * ABOVE, {amount}
    power = Fraction(1)
    while power > low:
        power /= 10
    while power <= high:
        found |= {power * digit for digit in DECADE if low <= power * digit <= high}
        power *= 10
    return tuple(sorted(found))
