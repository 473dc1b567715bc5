"""Amounts in a few shades: round limits, a colour for each class, and a legend that says what it holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .words import exactly

RAMP = ("#d3e1ee", "#a9c6dd", "#7ba7cb", "#4f88b8", "#2d6a9f", "#1a4c7c", "#0c2a48")
MOST = len(RAMP)
HARDLY = 1.3  # a last class that is no wider than this joins the one below
EVEN = 4.0  # amounts within this factor of each other are shaded evenly, others by powers


@dataclass(frozen=True)
class Shades:
    """Classes of positive amounts.

    Attributes:
        limits: the least amount of every class, ascending. Whatever lies below the first is in the first.
        low, high: the least and the largest amount there is.
        is_whole: whether amounts are counts; else they are probabilities.
    """

    limits: tuple[float, ...]
    low: float
    high: float
    is_whole: bool

    @property
    def colours(self) -> tuple[str, ...]:
        """One for each class, the darkest last."""
        n = len(self.limits)
        if n == 1:
            return (RAMP[MOST // 2],)
        return tuple(RAMP[round(i * (MOST - 1) / (n - 1))] for i in range(n))

    def of(self, amounts: NDArray[Any]) -> NDArray[np.int64]:
        """The class of every amount, −1 for nothing."""
        found = np.searchsorted(np.array(self.limits), amounts, side="right") - 1
        return np.where(amounts > 0, np.maximum(found, 0), -1)

    @property
    def labels(self) -> tuple[str, ...]:
        """What every class holds."""
        ends = [*self.limits[1:], self.high]
        told = []
        for i, (low, high) in enumerate(zip(self.limits, ends, strict=True)):
            last = i == len(self.limits) - 1
            if i == 0 and self.low < low:
                told.append(f"under {self._shown(high)}" if not last else f"up to {self._shown(high)}")
            elif self.is_whole:
                top = high if last else high - 1
                told.append(exactly(low) if top <= low else f"{exactly(low)}–{exactly(top)}")
            else:
                first, end = self._bare(low), self._bare(high)
                told.append(f"{first} %" if first == end else f"{first}–{end} %")
        return tuple(told)

    def _shown(self, amount: float) -> str:
        return exactly(amount) if self.is_whole else f"{self._bare(amount)} %"

    def _bare(self, share: float) -> str:
        digits = self._digits if share < 0.995 else max(self._digits, 3)  # 100, not 1e+02
        return f"{100 * share:.{digits}g}"

    @cached_property
    def _digits(self) -> int:
        """As many as keep the limits apart."""
        for digits in range(2, 16):
            if len({f"{v:.{digits}g}" for v in self.limits}) == len(self.limits):
                return digits
        return 16


def shades(amounts: NDArray[Any], is_whole: bool) -> Shades | None:
    """Classes for amounts, at most seven; None where all are 0.

    >>> told = shades(np.array([0, 1, 4, 60, 812]), True)
    >>> told.limits, told.labels[0], told.labels[-1]
    ((1.0, 3.0, 10.0, 30.0, 100.0, 300.0), '1–2', '300–812')
    >>> shades(np.array([0.4, 0.00001]), False).labels[:2]
    ('under 0.1 %', '0.1–0.3 %')
    """
    held = np.asarray(amounts, dtype=np.float64)
    held = held[held > 0]
    if not len(held):
        return None
    low, high = float(held.min()), float(held.max())
    if is_whole and high <= MOST:
        limits = [float(v) for v in range(int(low), int(high) + 1)]
    elif high < EVEN * low:
        limits = _even(low, high, is_whole)
    else:
        limits = _powers(low, high)
        if len(limits) > 3 and high < HARDLY * limits[-1]:
            limits.pop()
    return Shades(tuple(limits), low, high, is_whole)


def _even(low: float, high: float, is_whole: bool) -> list[float]:
    if high == low:
        return [low]
    step = round_up((high - low) / (MOST - 1))
    if is_whole:
        step = max(step, 1.0)
    first = math.floor(low / step * (1 + 1e-9))
    return [step * i for i in range(first, math.floor(high / step * (1 + 1e-9)) + 1)][-MOST:]


def _powers(low: float, high: float) -> list[float]:
    found: list[float] = []
    for steps in ((1, 2, 5), (1, 3)):
        first, last = math.floor(math.log10(low)), math.floor(math.log10(high))
        ladder = [s * 10.0**p if p >= 0 else s / 10.0**-p for p in range(first, last + 1) for s in steps]
        inside = [v for v in ladder if v <= high]
        start = max((i for i, v in enumerate(inside) if v <= low), default=0)
        found = inside[start:]
        if len(found) <= MOST:
            return found
    return found[-MOST:]


def round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, … at or above a positive number.

    >>> round_up(3.1), round_up(0.02), round_up(70)
    (5.0, 0.02, 100.0)
    """
    power = math.floor(math.log10(value))
    for step in (1, 2, 5, 10):
        found = step * 10.0**power if power >= 0 else step / 10.0**-power
        if found >= value * (1 - 1e-9):
            return found
    raise AssertionError


def round_down(value: float) -> float:
    """The last of 1, 2, 5, 10, … at or below a positive number.

    >>> round_down(3.1), round_down(70)
    (2.0, 50.0)
    """
    power = math.floor(math.log10(value))
    for step in (10, 5, 2, 1):
        found = step * 10.0**power if power >= 0 else step / 10.0**-power
        if found <= value * (1 + 1e-9):
            return found
    raise AssertionError
