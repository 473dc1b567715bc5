"""Tetraodon: policy in, release out, evidence attached.

Public names are loaded when they are first used, so that ``import tetraodon`` is light.

>>> import tetraodon as td
>>> domain = td.Domain(age=td.Integer(17, 90), sex=td.Categorical(["Female", "Male"]))
>>> policy = td.Policy(domain, secrets=td.AttributeWise(age=td.Within(5)))
>>> policy.sensitivity(td.CDF("age", by="sex")).value
Fraction(5, 1)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Integer": "attributes",
    "Numeric": "attributes",
    "Categorical": "attributes",
    "Point": "attributes",
    "Domain": "domain",
    "L1": "metrics",
    "L2": "metrics",
    "Discrete": "metrics",
    "Haversine": "metrics",
    "Full": "graphs",
    "AttributeWise": "graphs",
    "Partition": "graphs",
    "Within": "graphs",
    "Edges": "graphs",
    "Nothing": "graphs",
    "CountConstraint": "constraints",
    "MarginalConstraint": "constraints",
    "Rows": "rows.query",
    "Channel": "channels.channel",
    "HybridObscuring": "microdata.hybrid",
    "frontier": "frontiers",
    "audit": "auditing.audited",
    "Policy": "policy",
    "Histogram": "queries",
    "CDF": "queries",
    "Ranges": "queries",
    "Quantiles": "queries",
    "Sum": "queries",
    "Mean": "queries",
    "Linear": "queries",
    "Marginals": "marginals.query",
    "KMeans": "clustering.query",
    "Table": "table",
    "Session": "session",
    "Release": "release",
}
_MODULES = ("channels", "errors", "leakage", "mechanisms", "noise")

__all__ = ["__version__", *_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tetraodon' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
