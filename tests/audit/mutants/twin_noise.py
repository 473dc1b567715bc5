"""Broken twins of everything that adds noise to rows of counts: each patches the package for as long as it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from tetraodon import noise
from tetraodon.mechanisms import charged
from tetraodon.sensitivity import Move


@contextmanager
def half_the_scale() -> Iterator[None]:
    """Noise of half the scale (half σ²) that the price asks for."""
    real = charged.scale
    with mock.patch.object(charged, "scale", lambda *a, **k: real(*a, **k) / 2):
        yield


@contextmanager
def eighth_of_the_scale() -> Iterator[None]:
    """Noise of an eighth of the scale (of σ²) that the price asks for."""
    real = charged.scale
    with mock.patch.object(charged, "scale", lambda *a, **k: real(*a, **k) / 8):
        yield


@contextmanager
def half_the_noise() -> Iterator[None]:
    """The stated scale, but what is added is half of what was drawn."""
    real = noise.Reserve._take
    with mock.patch.object(noise.Reserve, "_take", lambda *a: real(*a) // 2):
        yield


@contextmanager
def off_by_one() -> Iterator[None]:
    """A sensitivity one too small."""
    real = charged.scale

    def scale(loss: Any, move: Any, weight: int = 1) -> Fraction:
        return real(loss, Fraction(move) - 1 if move > 1 else Fraction(move) / 2, weight)

    with mock.patch.object(charged, "scale", scale):
        yield


@contextmanager
def last_in_clear() -> Iterator[None]:
    """The last number of every run of rows goes out as it is."""
    real = charged.added

    def added(true: Any, *rest: Any) -> Any:
        noisy = np.array(real(true, *rest))
        if noisy.ndim:
            noisy[..., -1] = np.asarray(true)[..., -1]
        return noisy

    with mock.patch.object(charged, "added", added):
        yield


@contextmanager
def one_word_for_all() -> Iterator[None]:
    """One draw of noise for all numbers of a run of rows: a pool whose words are handed out more than once."""

    def added(true: Any, reserve: Any, loss: Any, scale: Any) -> Any:
        drawn = charged.taken(reserve, loss, scale, true.size).reshape(true.shape)
        return true + drawn[..., :1]

    with mock.patch.object(charged, "added", added):
        yield


@contextmanager
def last_bit_in_clear() -> Iterator[None]:
    """Noise of even numbers alone: the last bit of every count is published."""
    real = noise.Reserve._take
    with mock.patch.object(noise.Reserve, "_take", lambda *a: real(*a) // 2 * 2):
        yield


@contextmanager
def laplace_for_gaussian() -> Iterator[None]:
    """σ² taken from ρ as if the moves were not squared and σ were meant."""
    with mock.patch.object(
        charged, "scale", lambda loss, move, weight=1: Fraction(1, 2) / (loss.amount * weight * max(move, 1))
    ):
        yield


@contextmanager
def counted_once(power: int) -> Iterator[None]:
    """A person of m rows priced as m for ρ too, not m² (power 2), or as one row (power 1)."""
    from dataclasses import replace

    from tetraodon import sensitivity

    def counted(terms: Any, hood: Any, asked: int) -> Any:
        told = [t for t in terms if not hood.spares(t.resolved)]
        times = hood.people.times if power == 2 else 1
        return [replace(t, factor=t.factor * times) for t in told]

    with mock.patch.object(sensitivity, "counted", counted):
        yield


@contextmanager
def edge_formula() -> Iterator[None]:
    """Known counts priced by the edges alone: as if one record still moved by itself."""
    from tetraodon import sensitivity
    from tetraodon.sensitivity.stack import along_edges

    with mock.patch.object(
        sensitivity, "known_counts", lambda terms, hood, power: along_edges(terms, hood.graph)
    ):
        yield


@contextmanager
def times_two() -> Iterator[None]:
    """Known counts priced as the edge formula times the longest cycle of one predicate, 2."""
    from tetraodon import sensitivity
    from tetraodon.sensitivity.stack import along_edges

    def known(terms: Any, hood: Any, power: int) -> Move:
        found = along_edges(terms, hood.graph)
        return Move(found.value * 2**power, found.cells, found.rule, found.domain, found.by_secret)

    with mock.patch.object(sensitivity, "known_counts", known):
        yield


@contextmanager
def smallest_diameters() -> Iterator[None]:
    """Rule R with the edge that starts a cycle, but no way round it."""
    from tetraodon.sensitivity import rule_r

    with mock.patch.object(rule_r, "_cycles", lambda spread, kinds: (Fraction(0), rule_r.RULE)):
        yield


@contextmanager
def nothing_vanishes() -> Iterator[None]:
    """Records that come or go are not priced, though the policy says that they may."""
    from tetraodon import sensitivity

    with mock.patch.object(sensitivity, "with_gone", lambda move, terms, hood: move):
        yield


Patch = Callable[[], Any]
EXACTLY: dict[str, Patch] = {
    "half the scale": half_the_scale,
    "last number in clear": last_in_clear,
    "sensitivity off by one": off_by_one,
}
EVERY: dict[str, Patch] = {**EXACTLY, "half the noise": half_the_noise}
