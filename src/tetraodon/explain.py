"""A policy in plain words. The order matters: what is not protected comes first."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from .attributes import Attribute, Numeric
from .axes import Axis
from .domain import Domain
from .exact import exact, positive, show
from .graphs import AttributeSecrets, AttributeWise, Edges, Full, Graph, Nothing, Partition, Secrets, Within


def unprotected_line(graph: Graph) -> str:
    """The first line: attributes whose values no secret protects."""
    names = graph.unprotected
    if len(names) == len(graph.domain):
        return "NOT protected: every attribute. This policy keeps nothing secret."
    if not names:
        return "NOT protected: nothing that is declared; every attribute has secrets."
    whose = "Its" if len(names) == 1 else "Their"
    return f"NOT protected: {', '.join(names)}. {whose} values may be disclosed exactly, person by person."


def explanation(domain: Domain, secrets: Secrets, graph: Graph, epsilon: Any) -> list[str]:
    """Lines for ``Policy.explain``, most important first."""
    lines = [unprotected_line(graph)]
    lines += [f"Protected: {line}" for line in protected_lines(domain, secrets, graph)]
    lines += odds_lines(graph, epsilon)
    lines += [f"Disclosed exactly: {line}" for line in disclosed_lines(domain, secrets, graph)]
    lines.append(
        "Not a secret: facts about groups of people (averages, trends, what is typical of a place or a trade), "
        "even when they let somebody guess a person's value."
    )
    lines.append(
        "One record is one person here. Who is in the table counts as known; somebody with several records is "
        "protected record by record."
    )
    return lines


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
    named = {secrets.on or domain.names[0]: secrets} if not isinstance(secrets, Nothing) else {}
    return [
        _attribute_line(n, domain[n], named.get(n, Nothing()), graph)
        for n in domain.names
        if _speaks(graph, n)
    ]


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
        line = f"{name}: two values at most {_distance(secrets, attribute)} apart{_cells(attribute, axis)}."
    elif isinstance(secrets, Partition):
        line = f"{name}: two values of the same block."
    elif isinstance(secrets, Edges):
        line = f"{name}: the {axis.n_edges} listed pairs of values."
    else:
        line = f"{name}: only whether it is missing."
    if attribute.missing == "secret":
        line += (
            f" Whether {name} is missing is secret too, which joins every value to the missing cell and so puts any two "
            "values at most two hops apart."
        )
    return line


def _distance(secrets: Within, attribute: Attribute) -> str:
    text = secrets.theta if isinstance(secrets.theta, str) else show(exact(secrets.theta, "Within"))
    unit = attribute.unit if attribute.unit and " " not in text else None
    return f"{text} {unit}" if unit else text


def _cells(attribute: Attribute, axis: Axis) -> str:
    wide = isinstance(attribute, Numeric) or getattr(attribute, "step", 1) != 1
    return (
        f" (cells up to {axis.window} apart are joined, since some of their values are that close)"
        if wide
        else ""
    )


def _is_split(axis: Axis) -> bool:
    """Whether the cells fall into several components, a public missing cell aside."""
    alone = sum(1 for told in axis.stars if told is False)
    component = axis.components[: axis.size - alone]
    return bool((component != component[:1]).any())


def odds_lines(graph: Graph, epsilon: Any) -> list[str]:
    """At what odds: one hop, and the farthest pair of each attribute."""
    if not graph.has_edges:
        return []
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
    if graph.kind != "flat":
        for name, axis in zip(graph.domain.names, graph.axes, strict=True):
            hops = axis.distance(0, axis.base - 1) if axis.base > 1 else None
            if hops is not None and hops > 1:
                ends = f"{axis_label(graph, name, 0)} and {axis_label(graph, name, axis.base - 1)}"
                lines.append(
                    f"Odds: {name}: {ends} are {hops} hops apart, so that pair costs up to {hops} epsilon."
                )
    return lines


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


def disclosed_lines(domain: Domain, secrets: Secrets, graph: Graph) -> list[str]:
    """Facts that the policy gives away."""
    lines = ["the number of records."]
    for name, attribute in domain.items():
        if attribute.missing == "public":
            lines.append(f"whether {name} is missing, for every record.")
        elif attribute.missing == "refuse":
            lines.append(f"that no record's {name} is missing or invalid (the table is refused otherwise).")
    if graph.kind == "flat" and graph.has_edges and graph.n_components > 1:
        group = "block" if isinstance(secrets, Partition) else "group of joined value combinations"
        lines.append(f"the {group} in which each record lies, and how many lie in each.")
    elif graph.kind != "flat":
        split = [
            n
            for n, a in zip(domain.names, graph.axes, strict=True)
            if a.has_edges and (a.starts is not None or a.pairs is not None) and _is_split(a)
        ]
        if split:
            lines.append(
                f"the block in which each record's {', '.join(split)} lies, and how many lie in each."
            )
    for name in graph.unprotected:
        lines.append(
            f"anything about {name}: how many records have each value can be published without cost."
        )
    return lines
