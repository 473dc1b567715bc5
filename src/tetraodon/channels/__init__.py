"""Channels: laws by which the value of each record is replaced before it leaves (docs/channels.md).

Constructions that need no prior: ``randomised_response``, ``exponential``, ``planar_laplace``, ``planar_geometric``,
``tight_constraints``. The best ones for a prior: ``least_distortion`` for a stated ε, ``least_leaking`` for a stated distortion.
All return a ``Channel``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "Channel": "channel",
    "Certificate": "certificate",
    "randomised_response": "named",
    "exponential": "named",
    "planar_laplace": "named",
    "planar_geometric": "named",
    "tight_constraints": "named",
    "least_distortion": "constrained",
    "exposure": "exposed",
    "least_leaking": "leaking",
    "curve": "leaking",
    "blahut_arimoto": "rate",
    "LearnedChannel": "learned",
    "LearnedNoise": "learned_noise",
    "learn": "learned",
    "privic": "rounds",
    "estimate": "estimates",
    "invert": "estimates",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tetraodon.channels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
