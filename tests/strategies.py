"""What the property tests draw: small declared domains, every kind of secret graph, every kind of question.

A domain has at most eight cells in all, so that the oracle can go through every pair of them. ``TETRAODON_EFFORT``
multiplies the number of examples.
"""

from __future__ import annotations

import itertools
import math
import os
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from oracle import brute
from oracle.brute import Asked

import tetraodon as td
from tetraodon.axes import Axis

MOST_CELLS = 8
SIZES = sorted(
    (s for k in (1, 2, 3) for s in itertools.product(range(1, MOST_CELLS + 1), repeat=k) if 2 <= math.prod(s) <= MOST_CELLS),
    key=lambda s: (len(s), s),
)  # fmt: skip
CODES = ("p", "q", "r", "s", "t", "u", "v", "w")
NAMES = ("a", "b", "c")


def examples(number: int) -> settings:
    """Settings for a property that is cheap enough to be tried ``number`` times."""
    effort = int(os.environ.get("TETRAODON_EFFORT", "1"))
    return settings(
        max_examples=number * effort,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )


# ---------- domains ----------


@st.composite
def attributes(
    draw: Any, size: int, kinds: tuple[str, ...] = ("integer", "numeric", "ordered", "categorical")
) -> Any:
    """An attribute of exactly ``size`` cells, special ones included."""
    kind = draw(st.sampled_from(kinds))
    room = size - 1
    missing = draw(st.sampled_from(("refuse", "secret", "public"))) if room else "refuse"
    room -= missing != "refuse"
    if kind == "integer":
        n, step = size - (missing != "refuse"), draw(st.integers(1, 4))
        low = draw(st.integers(-4, 5))
        high = low + n * step - 1 - draw(st.integers(0, step - 1))
        return td.Integer(low, high, step=step, missing=missing, unit=draw(st.sampled_from((None, "USD"))))
    if kind == "numeric":
        n = size - (missing != "refuse")
        width = draw(
            st.sampled_from((Fraction(1), Fraction(10), Fraction(1, 2), Fraction(1, 3), Fraction(5, 2)))
        )
        low = draw(st.sampled_from((Fraction(0), Fraction(-7), Fraction(3, 4), Fraction(1, 3))))
        return td.Numeric(low, low + n * width, cells=n, missing=missing)
    other = draw(st.sampled_from((None, "else"))) if room > 0 else None
    n = size - (missing != "refuse") - (other is not None)
    codes: list[Any] = (
        list(draw(st.permutations(CODES)))[:n] if draw(st.booleans()) else list(range(7, 7 + n))
    )
    return td.Categorical(codes, ordered=kind == "ordered", other=other, missing=missing)


@st.composite
def domains(draw: Any, most: int = MOST_CELLS) -> Any:
    """One to three attributes, at most eight cells in all."""
    sizes = draw(st.sampled_from([s for s in SIZES if math.prod(s) <= most]))
    return td.Domain({n: draw(attributes(s)) for n, s in zip(NAMES, sizes, strict=False)})


def a_value(draw: Any, attribute: Any, j: int) -> Any:
    """A way to name cell number j."""
    cell = brute.cells(attribute)[j]
    if cell.kind == "missing":
        return "missing"
    if cell.kind == "other":
        return attribute.other
    if isinstance(attribute, td.Categorical):
        return cell.code
    if isinstance(attribute, td.Integer):
        return draw(st.integers(int(cell.low), int(cell.high)))
    return draw(st.sampled_from([cell.low, (cell.low + cell.high) / 2]))


# ---------- secrets ----------


@st.composite
def within(draw: Any, attribute: Any, name: str, on: str | None = None) -> Any:
    """A distance threshold that fits the attribute."""
    listed = [c for c in brute.cells(attribute) if c.kind == "value"]
    ordered = not isinstance(attribute, td.Categorical) or attribute.is_ordered
    metric: Any = td.Discrete()
    if ordered:
        metric = draw(
            st.sampled_from(
                (None, None, td.Discrete(), td.L1(), td.L1({name: 2}), td.L2({name: Fraction(1, 2)}))
            )
        )
    if isinstance(metric, td.Discrete):
        theta: Any = draw(st.sampled_from((Fraction(0), Fraction(1, 2), 1, 3)))
    else:
        span = listed[-1].high - listed[0].low
        unit = Fraction(1, draw(st.sampled_from((1, 2, 3))))
        theta = unit * draw(st.integers(0, int(span / unit) + 2))
        unit_name = getattr(attribute, "unit", None)
        if unit_name and theta.denominator == 1 and draw(st.booleans()):
            theta = f"{theta} {unit_name}"
    return td.Within(theta, on, metric)


@st.composite
def one_partition(draw: Any, attribute: Any, on: str | None = None) -> Any:
    """Blocks of one attribute: runs, a mapping from values, or labels in cell order."""
    listed = brute.cells(attribute)
    n = sum(c.kind == "value" for c in listed)
    form = draw(st.sampled_from(("blocks", "mapping", "sequence") if on is None else ("mapping", "sequence")))
    if form == "blocks":
        return td.Partition(draw(st.integers(1, n + 1)))
    label = st.sampled_from(("x", "y", 3))
    if form == "sequence":
        return td.Partition(by=[draw(label) for _ in range(n)], on=on)
    named = n + (attribute.other is not None and draw(st.booleans()))
    return td.Partition(by={a_value(draw, attribute, j): draw(label) for j in range(named)}, on=on)


@st.composite
def one_edges(draw: Any, attribute: Any, on: str | None = None) -> Any:
    """A list of pairs of cells of one attribute."""
    allowed = [
        j
        for j, c in enumerate(brute.cells(attribute))
        if c.kind != "missing" or attribute.missing == "secret"
    ]
    pair = st.tuples(st.sampled_from(allowed), st.sampled_from(allowed))
    pairs = draw(st.lists(pair, max_size=7))
    return td.Edges([(a_value(draw, attribute, i), a_value(draw, attribute, j)) for i, j in pairs], on=on)


@st.composite
def one_secret(draw: Any, attribute: Any, name: str) -> Any:
    """Secrets of one attribute."""
    ways = ["full", "nothing", "partition", "edges", "within", "within"]
    way = draw(st.sampled_from(ways))
    if way == "within":
        return draw(within(attribute, name))
    if way == "partition":
        return draw(one_partition(attribute))
    if way == "edges":
        return draw(one_edges(attribute))
    return td.Full() if way == "full" else td.Nothing()


@st.composite
def secrets(draw: Any, domain: Any) -> Any:
    """Secrets over a whole domain, every public class in turn."""
    names = list(domain)
    ways = [
        "full",
        "attribute-wise",
        "attributes",
        "attributes",
        "blocks",
        "by",
        "tuples",
        "on",
        "edges",
        "nothing",
    ]
    way = draw(st.sampled_from(ways))
    one = draw(st.sampled_from(names))
    if way == "full":
        return td.Full()
    if way == "nothing":
        return td.Nothing()
    if way == "attribute-wise":
        return td.AttributeWise()
    if way == "attributes":
        told = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        return td.AttributeWise({n: draw(one_secret(domain[n], n)) for n in told})
    if way == "blocks":
        told = draw(st.lists(st.sampled_from(names), unique=True))
        return td.Partition({n: draw(st.integers(1, 4)) for n in told})
    if way == "by":
        return draw(one_partition(domain[one], on=one))
    if way == "on":
        name = one if len(names) > 1 else draw(st.sampled_from((None, one)))
        if draw(st.booleans()):
            return draw(within(domain[one], one, on=name))
        return draw(one_edges(domain[one], on=one))
    every = brute.tuples(domain)
    if len(names) == 1:
        return draw(one_edges(domain[one], on=draw(st.sampled_from((None, one)))))
    if way == "tuples":
        label = st.sampled_from(("x", "y", "z"))
        if draw(st.booleans()):
            return td.Partition(by=[draw(label) for _ in every])
        by = {}
        for record in every:
            missing = any(
                brute.cells(domain[n])[j].kind == "missing" for n, j in zip(names, record, strict=True)
            )
            if not missing or draw(st.booleans()):
                by[tuple(a_value(draw, domain[n], j) for n, j in zip(names, record, strict=True))] = draw(
                    label
                )
        return td.Partition(by=by)
    pairs = []
    for a, b in draw(st.lists(st.tuples(st.sampled_from(every), st.sampled_from(every)), max_size=8)):
        discloses = any(
            domain[n].missing == "public"
            and i != j
            and "missing" in {brute.cells(domain[n])[k].kind for k in (i, j)}
            for n, i, j in zip(names, a, b, strict=True)
        )
        if not discloses:
            pairs.append(
                tuple(
                    tuple(a_value(draw, domain[n], j) for n, j in zip(names, r, strict=True)) for r in (a, b)
                )
            )
    return td.Edges(pairs)


# ---------- questions ----------


def ordinary(attribute: Any) -> list[brute.Cell]:
    """The ordinary cells."""
    return [c for c in brute.cells(attribute) if c.kind == "value"]


def is_ordered(attribute: Any) -> bool:
    """Whether prefixes, ranges and runs make sense."""
    return not isinstance(attribute, td.Categorical) or attribute.is_ordered


def first_value(attribute: Any, j: int) -> Any:
    """The value at which ordinary cell j starts."""
    cell = ordinary(attribute)[j]
    if isinstance(attribute, td.Categorical):
        return cell.code
    return int(cell.low) if isinstance(attribute, td.Integer) else cell.low


def last_value(attribute: Any, j: int) -> Any:
    """The value with which a stated range that holds ordinary cell j ends."""
    cell = ordinary(attribute)[j]
    if isinstance(attribute, td.Categorical):
        return cell.code
    return int(cell.high) if isinstance(attribute, td.Integer) else cell.high


def spelt(draw: Any, value: Any) -> Any:
    """The same number as a float or text where that is exact."""
    if isinstance(value, Fraction) and (value * 4).denominator == 1:
        return draw(st.sampled_from((value, float(value), str(value))))
    return value


@st.composite
def filters(draw: Any, attribute: Any) -> Any:
    """A pair (low, high) or a list of values that keeps at least one cell."""
    n = len(ordinary(attribute))
    if is_ordered(attribute) and draw(st.booleans()):
        low = draw(st.integers(0, n - 1))
        high = draw(st.integers(low, n - 1))
        return spelt(draw, first_value(attribute, low)), spelt(draw, last_value(attribute, high))
    size = len(brute.cells(attribute))
    kept = draw(st.lists(st.integers(0, size - 1), min_size=1, unique=True))
    named = [a_value(draw, attribute, j) for j in kept]
    return named[0] if len(named) == 1 and draw(st.booleans()) else named


@st.composite
def coarser(draw: Any, attribute: Any, runs: bool) -> Any:
    """Bins: a width, lower ends, or (where runs are not needed) a mapping from names to values."""
    n = len(ordinary(attribute))
    if isinstance(attribute, td.Categorical) and (
        not attribute.is_ordered or (not runs and draw(st.booleans()))
    ):
        if runs:
            return None
        groups: dict[str, list[Any]] = {}
        for cell in ordinary(attribute):
            groups.setdefault(draw(st.sampled_from(("lo", "hi", "mid"))), []).append(cell.code)
        return groups
    if draw(st.booleans()):
        width = draw(st.integers(1, n + 1))
        if isinstance(attribute, td.Categorical):
            return width
        if isinstance(attribute, td.Integer):
            return width * attribute.step
        return spelt(draw, width * (attribute.high - attribute.low) / attribute.n_cells)
    starts = sorted({0, *draw(st.lists(st.integers(0, n - 1)))})
    ends = [spelt(draw, first_value(attribute, j)) for j in starts]
    return tuple(ends) if draw(st.booleans()) else ends


@st.composite
def ranges(draw: Any, attribute: Any, bins: Any) -> Any:
    """A list of ranges that do not cut a bin."""
    n = len(ordinary(attribute))
    number = [brute.bin_of(attribute, bins, j) for j in range(n)]
    starts = [j for j in range(n) if j == 0 or number[j] != number[j - 1]]
    stops = [j for j in range(n) if j == n - 1 or number[j] != number[j + 1]]
    listed = []
    for _ in range(draw(st.integers(1, 4))):
        low = draw(st.sampled_from(starts))
        high = draw(st.sampled_from([j for j in stops if j >= low]))
        listed.append((spelt(draw, first_value(attribute, low)), spelt(draw, last_value(attribute, high))))
    return listed


@st.composite
def questions(draw: Any, domain: Any) -> Asked:
    """A question with any combination of by, where and bins that the domain allows."""
    names = list(domain)
    numbers = [n for n in names if not isinstance(domain[n], td.Categorical)]
    in_order = [n for n in names if is_ordered(domain[n])]
    words = ["Histogram", "Histogram", "Linear"]
    words += ["CDF", "CDF", "Ranges", "Ranges", "Quantiles"] if in_order else []
    words += ["Sum", "Mean"] if numbers else []
    word = draw(st.sampled_from(words))
    if word == "Histogram":
        chosen = tuple(draw(st.lists(st.sampled_from(names), min_size=1, unique=True)))
    else:
        pool = numbers if word in ("Sum", "Mean") else in_order if word != "Linear" else names
        chosen = (draw(st.sampled_from(pool)),)
    rest = [n for n in names if n not in chosen]
    by = tuple(draw(st.lists(st.sampled_from(rest), unique=True))) if rest else ()
    where, bins = {}, {}
    for name in names:
        runs = name in chosen and word in ("CDF", "Ranges", "Quantiles")
        if name in chosen + by and not (name in chosen and word in ("Sum", "Mean")) and draw(st.booleans()):
            told = draw(coarser(domain[name], runs))
            if told is not None:
                bins[name] = told
        if draw(st.integers(0, 2)) == 0:
            where[name] = draw(filters(domain[name]))
    extra: Any = None
    at = chosen[0]
    places = brute.positions(domain[at], bins.get(at), where.get(at))
    size = 1 + max(p for p in places if p is not None)
    if word == "Ranges":
        extra = draw(st.sampled_from((None, "all")))
        if draw(st.booleans()):
            extra = draw(ranges(domain[at], bins.get(at)))
    elif word == "Quantiles":
        if all(p is None for p in places[: len(ordinary(domain[at]))]):
            word = "CDF"
        else:
            extra = draw(st.sampled_from((None, [0.5], ["1/3", Fraction(9, 10)])))
    elif word == "Linear":
        n_rows = draw(st.integers(1, 3))
        entry = st.integers(-3, 3)
        extra = [[draw(entry) for _ in range(size)] for _ in range(n_rows)]
    return Asked(word, chosen, by, where, bins, extra)


@st.composite
def policies(draw: Any, most: int = MOST_CELLS) -> Any:
    """A domain and secrets over it, as a policy."""
    domain = draw(domains(most))
    return td.Policy(domain, draw(secrets(domain)))


@st.composite
def asked_policies(draw: Any, most: int = MOST_CELLS) -> Any:
    """A policy and a question that fits its domain."""
    policy = draw(policies(most))
    return policy, draw(questions(policy.domain))


# ---------- one axis ----------


@st.composite
def interval_axes(draw: Any) -> Axis:
    """Windows and arbitrary starts, with stars of every kind."""
    base = draw(st.integers(0, 7))
    starts, window = None, 0
    if base and draw(st.booleans()):
        told: list[int] = []
        for y in range(base):
            told.append(draw(st.integers(told[-1] if told else 0, y)))
        starts = np.array(told, dtype=np.int64)
    else:
        window = draw(st.integers(0, max(base - 1, 0)))
    count = draw(st.integers(0 if base else 1, 2))
    stars: list[Any] = [draw(st.booleans()) for _ in range(count)]
    if count and draw(st.booleans()):
        size = base + count
        mask = np.array([draw(st.booleans()) for _ in range(size)])
        for s in range(count - 1):
            # Masks agree with each other: a star that is joined to everything is joined to the mask's star too.
            mask[base + s] = bool(stars[s])
        mask[size - 1] = False
        stars[-1] = mask
    return Axis(base, window=window, starts=starts, stars=tuple(stars))


@st.composite
def listed_axes(draw: Any) -> Axis:
    """Explicit pairs, with stars."""
    base = draw(st.integers(1, 6))
    pairs = sorted(
        draw(st.sets(st.sampled_from(list(itertools.combinations(range(base), 2)) or [(0, 0)]), max_size=6))
    )
    pairs = [p for p in pairs if p[0] < p[1]]
    stars = tuple(draw(st.booleans()) for _ in range(draw(st.integers(0, 2))))
    return Axis(base, pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2), stars=stars)
