"""What a weaker policy no longer protects, in words, beside a stronger one over the same domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from .attributes import Attribute, Integer, Point
from .axes import Axis
from .errors import SpecificationError, Unsupported
from .exact import show
from .explain import about
from .graphs import AttributeWise, Full, Graph, Partition, Secrets, Within
from .lattice import Blocks
from .lengths import measured
from .loss import Unit
from .metrics import Discrete

if TYPE_CHECKING:
    from .policy import Policy

FAR = 10**9


def strongest(policies: Mapping[str, Policy]) -> str:
    """The name of the policy that the others are told beside: it leaves the fewest attributes open, then joins the most values.

    Not every two policies can be ranked by what they protect; of two that this does not tell apart, the first one.

    >>> from tetraodon import Domain, Full, Integer, Policy, Within
    >>> domain = Domain(age=Integer(0, 99))
    >>> strongest({"near": Policy(domain, Within(5)), "any": Policy(domain, Full())})
    'any'
    """
    return min(policies, key=lambda name: _openness(policies[name]))


def _openness(policy: Policy) -> tuple[int, bool, float, int, bool]:
    graph = policy.graph
    hops = sum(_hops(graph, name) or 0 for name in _protected(graph))
    try:
        parts = float(graph.n_components)
    except OverflowError:
        parts = float("inf")
    return (
        len(graph.unprotected),
        policy.presence != "secret",
        parts,
        hops if graph.kind != "flat" else FAR,
        graph.kind != "strong",
    )


def _protected(graph: Graph) -> tuple[str, ...]:
    return tuple(n for n in graph.domain.names if n not in graph.unprotected)


def _hops(graph: Graph, name: str) -> int | None:
    """Hops between the first and the last value of an attribute; None where nothing leads there, or it is not known."""
    if graph.kind == "flat":
        return None
    axis = graph.axis(name)
    try:
        return axis.distance(0, axis.base - 1) if axis.base > 1 else 0
    except Unsupported:
        return None


def given_up(policy: Policy, stronger: Policy, unit: Unit = "epsilon") -> tuple[str, ...]:
    """What a policy does not promise that a stronger one does, a sentence each; none where nothing is known to be lost.

    Args:
        unit: of the loss that pairs further apart cost more of: "epsilon" adds up hop by hop, "rho" with the square of hops.

    >>> from tetraodon import Domain, Full, Integer, Policy, Within
    >>> domain = Domain(loss=Integer(0, 4356, unit="USD"))
    >>> given_up(Policy(domain, Within(100)), Policy(domain, Full()))
    ('loss: two values more than 100 USD apart cost more, d USD up to ⌈d/100⌉·ε; 0 and 4356 up to 44·ε.',)
    """
    if policy is stronger:
        return ()
    graph, whole = policy.graph, stronger.graph
    lost = [
        f"{name}: not protected; its values may be disclosed exactly, person by person."
        for name in graph.unprotected
        if name not in whole.unprotected
    ]
    if stronger.presence == "secret" and policy.presence != "secret":
        lost.append("who is in the table, and how many they are, counts as known.")
    both = [name for name in _protected(graph) if name not in whole.unprotected]
    if graph.kind == "flat":
        if whole.kind != "flat" or graph.n_components > whole.n_components:
            lost.append(_of_pairs(graph, policy.secrets))
        return tuple(lost)
    for name in both:
        told = _of_attribute(policy, stronger, name, unit)
        lost += [told] if told else []
    if whole.kind == "strong" and graph.kind == "cartesian" and len(both) > 1:
        lost.append(
            f"{', '.join(both)}: a difference in several of them at once costs {_several(unit)}, not one {_sign(unit)}."
        )
    if graph.kind == "ball" and whole.kind == "strong" and len(both) > 1:
        lost.append(f"{', '.join(both)}: a difference in several of them counts towards one common distance.")
    return tuple(lost)


def _of_pairs(graph: Graph, secrets: Secrets) -> str:
    if graph.n_components > 1:
        group = "block" if isinstance(secrets, Partition) else "group of joined combinations of values"
        return f"the {group} in which a record lies is disclosed exactly, and how many lie in each."
    return "combinations of values that are not joined cost more, step by step."


def _of_attribute(policy: Policy, stronger: Policy, name: str, unit: Unit) -> str:
    """What is lost about one attribute that both protect; empty where nothing is."""
    graph, attribute = policy.graph, policy.domain[name]
    axis = graph.axis(name)
    before = stronger.graph.axis(name) if stronger.graph.kind != "flat" else None
    if _is_cut(axis) and (before is None or not _is_cut(before) or axis.n_components > before.n_components):
        return f"{name}: the block in which a record's value lies is disclosed exactly, whatever is paid."
    hops, hops_before = _hops(graph, name), _hops(stronger.graph, name) or 1
    if hops is None or hops <= hops_before:
        return ""
    if not policy.neighbourhood.is_plain:
        return f"{name}: about values that are not joined themselves no number is promised, since public counts tie records together."
    ends = f"{attribute.label(0)} and {attribute.label(axis.base - 1)}"
    most = f"{ends} up to {_times(hops, unit)}"
    if hops_before > 1:
        most += f" instead of {_times(hops_before, unit)}"
    return f"{name}: {_rule(policy.secrets, name, attribute, unit)}; {most}."


def _rule(secrets: Secrets, name: str, attribute: Attribute, unit: Unit) -> str:
    """From which distance on values cost more, and how much."""
    graph = dict(secrets.graphs).get(name) if isinstance(secrets, AttributeWise) else secrets
    if not isinstance(graph, Within) or isinstance(graph.metric, Discrete):
        return "values that are not joined cost more, step by step"
    weights = dict(getattr(graph.metric, "weights", ()))
    theta = measured(graph.theta, attribute.unit, "Within") / Fraction(weights.get(name, 1))
    far = f"{show(theta)} {attribute.unit or ''}".strip() if theta.denominator == 1 else about(theta)
    what = "places" if isinstance(attribute, Point) else "values"
    told = f"two {what} more than {far} apart cost more"
    # Steps of exactly θ lead from any value to any other only on a grid that θ is a multiple of.
    step = Fraction(attribute.step) if isinstance(attribute, Integer) else None
    if step is None or (theta / step).denominator != 1 or len(weights) > 1:
        return told
    each = f"⌈d/{show(theta)}⌉"
    return f"{told}, d {attribute.unit or 'apart'} up to {each}{'²' if unit == 'rho' else ''}·{_sign(unit)}"


def _is_cut(axis: Axis) -> bool:
    """Whether the values of an attribute fall into blocks that no path joins."""
    return (
        axis.starts is not None or axis.pairs is not None or isinstance(axis, Blocks)
    ) and axis.n_components > sum(1 for told in axis.stars if told is False) + 1


def _sign(unit: Unit) -> str:
    return "ε" if unit == "epsilon" else "ρ"


def _several(unit: Unit) -> str:
    return "the sum over them" if unit == "epsilon" else "the square of their number of steps"


def _times(hops: int, unit: Unit) -> str:
    return f"{hops:,}·ε" if unit == "epsilon" else f"{hops**2:,}·ρ"


def neighbours_of(policy: Policy, name: str, factors: Iterable[Fraction]) -> dict[str, Policy]:
    """A policy with other distances on one attribute, and with all its protected attributes in full, by their names in words.

    Args:
        factors: what the distance is multiplied by; only ``Within`` in a plain number has one.
    """
    told: dict[str, Policy] = {}
    full = _in_full(policy)
    if full is not None:
        told["any two values"] = policy.under(full)
    graph = (
        dict(policy.secrets.graphs).get(name) if isinstance(policy.secrets, AttributeWise) else policy.secrets
    )
    if (
        not isinstance(graph, Within)
        or isinstance(graph.metric, Discrete)
        or not _measures(graph, name, policy)
    ):
        return told
    attribute = policy.domain[name]
    for theta in _distances(graph, attribute, factors):
        found = Within(theta, on=name if len(policy.domain) > 1 else None, metric=graph.metric)
        secrets: Secrets = found
        if isinstance(policy.secrets, AttributeWise):
            inner = Within(theta, metric=graph.metric)
            secrets = AttributeWise(dict(policy.secrets.graphs) | {name: inner})
        try:
            made = policy.under(secrets)
        except SpecificationError:
            continue
        told[f"within {int(theta):,} {attribute.unit or ''}".strip()] = made
    return told


def _measures(graph: Within, name: str, policy: Policy) -> bool:
    """Whether a distance is one of this attribute alone, as a whole number of its own unit or steps."""
    weights = [n for n, _ in getattr(graph.metric, "weights", ())]
    alone = graph.on == name or weights == [name] or len(policy.domain) == 1
    return (alone or isinstance(policy.secrets, AttributeWise)) and len(weights) <= 1


def _distances(graph: Within, attribute: Attribute, factors: Iterable[Fraction]) -> Sequence[Fraction]:
    """The multiples of a distance that are whole numbers of steps and leave something apart, the widest first."""
    if not isinstance(attribute, Integer):
        return ()
    theta, step = measured(graph.theta, attribute.unit, "Within"), Fraction(attribute.step)
    spread = step * (attribute.n_values - 1)
    asked = (theta * f for f in factors)
    kept = {t for t in asked if (t / step).denominator == 1 and 0 < t < spread and t != theta}
    return sorted(kept, reverse=True)


def _in_full(policy: Policy) -> Secrets | None:
    """All attributes that a policy protects in full, one at a time if it has them so; None where they are, or cannot be."""
    graph, secrets = policy.graph, policy.secrets
    names = _protected(graph)
    if graph.kind == "flat" or not names or isinstance(secrets, Full):
        return None
    if isinstance(secrets, AttributeWise) and all(isinstance(g, Full) for _, g in secrets.graphs):
        return None
    return AttributeWise({name: Full() for name in names})
