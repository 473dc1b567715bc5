"""A policy in plain words. The order matters: what is not protected comes first."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .attributes import Attribute, Numeric, Point
from .axes import Axis
from .domain import Domain
from .errors import SpecificationError, Unsupported
from .exact import exact, positive, show
from .explain_people import exempt_lines, exempt_text, known_lines, people_lines
from .graphs import AttributeSecrets, AttributeWise, Edges, Full, Graph, Nothing, Partition, Secrets, Within
from .lattice import Blocks, Lattice
from .lengths import measured
from .metrics import L1, Discrete, Haversine
from .sensitivity.neighbours import Neighbourhood

if TYPE_CHECKING:
    from .policy import Policy


def unprotected_line(graph: Graph, hood: Neighbourhood) -> str:
    """The first line: attributes whose values no secret protects.

    Args:
        graph: the declared secrets.
    """
    names = graph.unprotected
    if not names:
        return "NOT protected: nothing that is declared; every attribute has secrets."
    told = "every attribute" if len(names) == len(graph.domain) else ", ".join(names)
    if hood.vanishing or hood.graph is not graph:
        what = "they" if len(names) > 1 else "it"
        return f"NOT protected: {told}. Of somebody who is known to be there, with their rows, {what} may be told apart."
    if len(names) == len(graph.domain):
        return "NOT protected: every attribute. This policy keeps nothing secret."
    whose = "Its" if len(names) == 1 else "Their"
    return f"NOT protected: {told}. {whose} values may be disclosed exactly, person by person."


def headline(policy: Policy) -> str:
    """The first line: what, and who, is not protected."""
    line = unprotected_line(policy.graph, policy.neighbourhood)
    weight = policy.people.weight
    if weight is not None and weight.weights == "public":
        line += " Nor are the weights of records."
    return line if not policy.exempt else f"{line} Nor is anybody {exempt_text(policy.exempt)}."


def explanation(policy: Policy, epsilon: Any, rho: Any = None) -> list[str]:
    """Lines for ``Policy.explain``, most important first."""
    if epsilon is not None and rho is not None:
        raise SpecificationError("explain: epsilon or rho, one of them.")
    graph, hood = policy.graph, policy.neighbourhood
    lines = [headline(policy)]
    lines += exempt_lines(policy.exempt, bool(policy.known))
    lines += [f"Protected: {line}" for line in protected_lines(policy.domain, policy.secrets, graph)]
    person = people_lines(policy.people, policy.presence)
    lines += [line for line in person if not line.startswith("One record")]
    lines += odds_lines(graph, hood, epsilon) if rho is None else concentrated_lines(hood, rho)
    lines += [f"Disclosed exactly: {line}" for line in disclosed_lines(policy)]
    lines.append(
        "Not a secret: facts about groups of people (averages, trends, what is typical of a place or a trade), "
        "even when they let somebody guess a person's value."
    )
    return lines + [line for line in person if line.startswith("One record")]


def protected_lines(domain: Domain, secrets: Secrets, graph: Graph) -> list[str]:
    """What is secret, attribute by attribute."""
    told: dict[str, AttributeSecrets]
    if isinstance(secrets, AttributeWise):
        told = dict(secrets.graphs) or {n: Full() for n in domain.names}
        if len(domain) > 1 and len(told) > 1:
            head = ["one attribute of a record at a time; a difference in several attributes costs the sum."]
        else:
            head = []
        return head + [
            _attribute_line(n, domain[n], told.get(n, Nothing()), graph)
            for n in domain.names
            if _speaks(graph, n)
        ]
    if graph.kind == "flat":
        head = ["exactly the pairs of value combinations that the policy lists."]
        if isinstance(secrets, Partition):
            head = ["any two combinations of values within one block; the block is not secret."]
        return head + [f"{n}: whether it is missing." for n in domain.names if domain[n].missing == "secret"]
    if isinstance(secrets, Full):
        return ["any two combinations of values of a record: nobody can tell which one is true."]
    if isinstance(secrets, Partition):
        head = ["any two combinations of values within one block; the block is not secret."]
        return head + [
            _attribute_line(n, domain[n], secrets if _is_cut(secrets, domain, n) else Full(), graph)
            for n in domain.names
            if _speaks(graph, n)
        ]
    if isinstance(secrets, Within) and graph.kind == "ball":
        return _together_lines(domain, secrets, graph)
    named = (
        {secrets.on or _measured(secrets) or domain.names[0]: secrets}
        if not isinstance(secrets, Nothing)
        else {}
    )
    return [
        _attribute_line(n, domain[n], named.get(n, Nothing()), graph)
        for n in domain.names
        if _speaks(graph, n)
    ]


def _measured(secrets: Secrets) -> str | None:
    """The attribute that the metric of a threshold names."""
    weights = getattr(getattr(secrets, "metric", None), "weights", ())
    return weights[0][0] if weights else None


def _together_lines(domain: Domain, secrets: Within, graph: Graph) -> list[str]:
    """A distance over several attributes: the rule, then how far each of them can differ alone."""
    assert secrets.metric is not None and not isinstance(secrets.metric, Discrete | Haversine)
    weights = dict(secrets.metric.weights)
    parts = [(n if w == 1 else f"{show(w)} × {n}") for n, w in weights.items()]
    units = {domain[n].unit for n in weights}
    theta = _distance(secrets, domain[next(iter(weights))]) if len(units) == 1 else _threshold(secrets)
    if isinstance(secrets.metric, L1):
        rule = f"the differences in {', '.join(parts)}, added up, are at most {theta}"
    else:
        rule = f"the squared differences in {', '.join(parts)}, added up, are at most the square of {theta}"
    lines = [f"several attributes at once: any two combinations of values for which {rule}."]
    for name, attribute in domain.items():
        if not _speaks(graph, name):
            continue
        axis, line = graph.axis(name), f"{name}: only whether it is missing."
        if name in weights:
            alone = measured(secrets.theta, attribute.unit, "Within") / weights[name]
            far = f"{show(alone)} {attribute.unit or ''}".strip()
            line = (
                f"{name}: two values at most {far} apart, if nothing else differs{_cells(attribute, axis)}."
            )
        lines.append(line + _missing_line(name, attribute))
    return lines


def _is_cut(secrets: Partition, domain: Domain, name: str) -> bool:
    """Whether a partition divides the values of an attribute."""
    if isinstance(secrets.blocks, tuple):
        return name in dict(secrets.blocks)
    return name == (secrets.on or domain.names[0])


def _speaks(graph: Graph, name: str) -> bool:
    return graph.axis(name).has_edges


def _attribute_line(name: str, attribute: Attribute, secrets: AttributeSecrets, graph: Graph) -> str:
    axis = graph.axis(name)
    if isinstance(secrets, Full):
        line = f"{name}: any two values."
    elif isinstance(secrets, Within):
        what = "places" if isinstance(attribute, Point) else "values"
        apart = f"{_distance(secrets, attribute)} apart{_how(secrets, attribute)}"
        line = f"{name}: two {what} at most {apart}{_cells(attribute, axis)}."
    elif isinstance(secrets, Partition):
        where = " of the map" if isinstance(attribute, Point) else ""
        line = f"{name}: two {'places' if where else 'values'} of the same block{where}."
    elif isinstance(secrets, Edges):
        line = f"{name}: the {axis.n_edges} listed pairs of values."
    else:
        line = f"{name}: only whether it is missing."
    return line + _missing_line(name, attribute)


def _missing_line(name: str, attribute: Attribute) -> str:
    if attribute.missing != "secret":
        return ""
    return (
        f" Whether {name} is missing is secret too, which joins every value to the missing cell and so puts any two "
        "values at most two hops apart."
    )


def _threshold(secrets: Within) -> str:
    return secrets.theta if isinstance(secrets.theta, str) else show(exact(secrets.theta, "Within"))


def _how(secrets: Within, attribute: Attribute) -> str:
    """How a place's distance is measured, and a weight that is not 1."""
    metric, told = secrets.metric, []
    weights = getattr(metric, "weights", ())
    if isinstance(attribute, Point) and not isinstance(metric, Discrete):
        ground = "local lengths" if attribute.metric == "local" else "the plane"
        told = [
            "along great circles"
            if isinstance(metric, Haversine)
            else f"{'along the two coordinates' if isinstance(metric, L1) else 'as the crow flies'}, in {ground}"
        ]
    if weights and weights[0][1] != 1:
        told.append(f"each unit counted {show(weights[0][1])} times")
    return "".join(f", {t}" for t in told)


def _distance(secrets: Within, attribute: Attribute) -> str:
    text = _threshold(secrets)
    unit = attribute.unit if attribute.unit and " " not in text else None
    return f"{text} {unit}" if unit else text


def _cells(attribute: Attribute, axis: Axis) -> str:
    if isinstance(attribute, Point) and isinstance(axis, Lattice):
        height, width = (f"{about(v)} {attribute.unit or ''}".strip() for v in attribute.lengths)
        return (
            f" (cells up to {axis.depth} rows or {axis.breadth} columns apart are joined, since some of their places are "
            f"that close; a cell is about {height} × {width})"
        )
    wide = isinstance(attribute, Numeric) or getattr(attribute, "step", 1) != 1
    return (
        f" (cells up to {axis.window} apart are joined, since some of their values are that close)"
        if wide
        else ""
    )


def about(length: Fraction) -> str:
    """A length in four digits or as a whole number.

    >>> about(Fraction("5559.754")), about(Fraction("0.33333")), about(Fraction("123456.7"))
    ('5,560', '0.3333', '123,457')
    """
    return f"{float(length):,.4g}" if length < 10_000 else f"{float(length):,.0f}"


def _is_split(axis: Axis) -> bool:
    """Whether the cells fall into several components, a public missing cell aside."""
    alone = sum(1 for told in axis.stars if told is False)
    component = axis.components[: axis.size - alone]
    return bool((component != component[:1]).any())


def concentrated_lines(hood: Neighbourhood, rho: Any) -> list[str]:
    """``odds_lines`` for a budget in ρ, which bounds no odds by itself."""
    if not hood.graph.has_edges:
        return []
    whose = "two tables that differ in one record, moved between joined values"
    far = " Values n hops apart cost n² rho."
    if not hood.is_plain:
        whose = (
            "two tables that agree on the public counts and differ as little as these allow, with at least one record moved "
            "between joined values"
        )
        far = " About values that are not joined themselves no number is promised."
    return [
        f"Odds: with rho = {show(positive(rho, 'rho'))}, what is published from {whose} differs by a Rényi divergence of at "
        f"most rho·alpha at every order alpha > 1 (zero-concentrated privacy; with a delta it reads as an epsilon).{far}"
    ]


def odds_lines(graph: Graph, hood: Neighbourhood, epsilon: Any) -> list[str]:
    """At what odds: one hop, the farthest pair of each attribute, and pairs without any path.

    Args:
        graph: the declared secrets, which more may be joined than (``hood``).

    Where public counts tie records together no number is told for pairs that are farther apart: a path of joined values
    need not be a path of possible tables.
    """
    if not graph.has_edges:
        return []
    if not hood.is_plain:
        amount = (
            "a loss of epsilon"
            if epsilon is None
            else f"a loss of epsilon = {show(positive(epsilon, 'epsilon'))}"
        )
        return [
            f"Odds: {amount} holds between any two tables that agree on the public counts and differ as little as these "
            "allow, with at least one record moved between joined values. Because the counts are public, several records "
            "may have to move together, and answers can cost more than they would without them.",
            "Odds: about values that are not joined themselves no number is promised here.",
        ]
    if epsilon is None:
        lines = [
            "Odds: a loss of epsilon lets nobody's odds between two joined values change by more than e^epsilon."
        ]
    else:
        eps = positive(epsilon, "epsilon")
        lines = [
            f"Odds: with epsilon = {show(eps)}, nobody's odds between two joined values change by a factor of more than "
            f"{factor(eps)}, whatever else they know about other people."
        ]
    if graph.kind != "flat" and hood.graph is graph:
        for name, axis in zip(graph.domain.names, graph.axes, strict=True):
            hops = axis.distance(0, axis.base - 1) if axis.base > 1 else None
            if hops is not None and hops > 1:
                ends = f"{axis_label(graph, name, 0)} and {axis_label(graph, name, axis.base - 1)}"
                lines.append(
                    f"Odds: {name}: {ends} are {hops} hops apart, so that pair costs up to {hops} epsilon."
                )
    return lines + _farthest_together(graph) + (_unprotected_pairs(graph) if hood.graph is graph else [])


def _farthest_together(graph: Graph) -> list[str]:
    """Opposite corners, where edges move several attributes at once."""
    if graph.ball is None:
        return []
    moved = [
        n
        for n, s in zip(graph.domain.names, graph.ball.sides, strict=True)
        if s is not None and s.axis.window
    ]
    corners = [
        [axis.base - 1 if n in moved else 0 for n, axis in zip(graph.domain.names, graph.axes, strict=True)]
    ]
    corners.insert(0, [0] * len(graph.axes))
    try:
        hops = graph.ball.distance(*corners)
    except Unsupported:
        return []
    if len(moved) < 2 or hops is None or hops < 2:
        return []
    ends = " and ".join(
        ", ".join(
            graph.domain[n].label(c) for n, c in zip(graph.domain.names, corner, strict=True) if n in moved
        )
        for corner in corners
    )
    return [
        f"Odds: {', '.join(moved)} together: {ends} are {hops} hops apart, so that pair costs up to {hops} epsilon."
    ]


def _unprotected_pairs(graph: Graph) -> list[str]:
    """Values that no path joins (attacks C30)."""
    if graph.kind == "flat":
        if graph.n_components == 1:
            return []
        return [
            "Odds: no epsilon hides in which group of joined value combinations a record lies: two combinations in "
            "different groups are not secret from each other."
        ]
    split = _split(graph)
    if not split:
        return []
    return [
        f"Odds: no epsilon hides in which block a record's {', '.join(split)} lies: two values in different blocks are not "
        "secret from each other."
    ]


def _split(graph: Graph) -> list[str]:
    """Protected attributes whose values fall into several components."""
    return [
        n
        for n, a in zip(graph.domain.names, graph.axes, strict=True)
        if a.has_edges
        and (a.starts is not None or a.pairs is not None or isinstance(a, Blocks))
        and _is_split(a)
    ]


def factor(epsilon: Fraction) -> str:
    """e^ε as a person reads it.

    >>> factor(Fraction(1))
    '2.72'
    """
    if epsilon > 2000:
        return "10^868"  # a lower bound of it; the promise is empty long before
    if epsilon > 20:
        return f"10^{float(epsilon) / math.log(10):.0f}"
    return f"{math.exp(epsilon):.3g}"


def axis_label(graph: Graph, name: str, cell: int) -> str:
    """The published name of a cell of one attribute."""
    return graph.domain[name].label(cell)


def disclosed_lines(policy: Policy) -> list[str]:
    """Facts that the policy gives away."""
    domain, secrets, hood = policy.domain, policy.secrets, policy.neighbourhood
    graph = hood.graph
    lines = known_lines(policy.people, policy.presence)
    for known in hood.classes.known if hood.classes is not None else ():
        lines.append(
            f"{known.title}: stated as public already, and that this table agrees with it (it is refused otherwise)."
        )
    for name, attribute in domain.items():
        if attribute.missing == "public" and hood.graph is policy.graph:
            lines.append(f"whether {name} is missing, for every record.")
        elif attribute.missing == "refuse":
            lines.append(f"that no record's {name} is missing or invalid (the table is refused otherwise).")
    if hood.vanishing:
        return lines  # whoever comes or goes would change any count
    if graph.kind == "flat" and graph.has_edges and graph.n_components > 1:
        group = "block" if isinstance(secrets, Partition) else "group of joined value combinations"
        lines.append(f"the {group} in which each record lies, and how many lie in each.")
    elif graph.kind != "flat":
        split = _split(graph)
        if split:
            lines.append(
                f"the block in which each record's {', '.join(split)} lies, and how many lie in each."
            )
    for name in graph.unprotected if hood.is_plain else ():
        lines.append(
            f"anything about {name}: how many records have each value can be published without cost."
        )
    return lines
