"""Pricing as tests ask for it: under a bare secret graph, at an ε (or at a ρ, where ``rho`` says so)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tetraodon.graphs import Graph
from tetraodon.loss import Loss
from tetraodon.mechanisms import search, select
from tetraodon.mechanisms.strategy import Strategy
from tetraodon.sensitivity import Neighbourhood
from tetraodon.workload import Resolved


def epsilon(amount: Any) -> Loss:
    return Loss("epsilon", Fraction(amount))


def rho(amount: Any) -> Loss:
    return Loss("rho", Fraction(amount))


def price(mechanism: Any, resolved: Resolved, graph: Graph, amount: Any) -> Strategy:
    loss = amount if isinstance(amount, Loss) else epsilon(amount)
    return select.price(mechanism, resolved, Neighbourhood(graph), loss)


def candidates(resolved: Resolved, graph: Graph, amount: Any) -> list[Strategy]:
    loss = amount if isinstance(amount, Loss) else epsilon(amount)
    return select.candidates(resolved, Neighbourhood(graph), loss)


def looking(resolved: Resolved, graph: Graph, amount: Any) -> search.Search:
    return search.Search(resolved, Neighbourhood(graph), epsilon(amount))
