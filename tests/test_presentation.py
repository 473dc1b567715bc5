"""Presentation: what rounding, suppression, totals and coverage do to released numbers, and that nothing else is looked at."""

from __future__ import annotations

import inspect
import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pricing import price
from strategies import examples
from test_error import tail
from test_imports import loaded

import tetraodon as td
from tetraodon import noise
from tetraodon.answers import answers
from tetraodon.errors import SpecificationError
from tetraodon.layout import quantile_columns
from tetraodon.margins import published
from tetraodon.mechanisms import Hierarchical, Identity, Ordered
from tetraodon.mechanisms.coverage import COVERAGE, NORMAL, WIDEST, jump, widest
from tetraodon.mechanisms.parts import Noisy
from tetraodon.people import People, Weight
from tetraodon.planning import run, written_rows
from tetraodon.presentation import Presentation, presentation_from_spec
from tetraodon.presenting import ALL, Block, Presented, Published, nearest, numbers, outward, presented
from tetraodon.publish import publish
from tetraodon.queries import query_from_spec
from tetraodon.report import render
from tetraodon.report.reading import read
from tetraodon.report.tables import sheets
from tetraodon.requests import price_all
from tetraodon.spec import load
from tetraodon.spreadsheets import escaped, harmless, unescaped
from tetraodon.workload import resolve

STEPS = st.sampled_from(
    [Fraction(1), Fraction(5), Fraction(10), Fraction(1, 10), Fraction(1, 3), Fraction(25, 4), Fraction(10**9), Fraction(1, 10**6)]
)  # fmt: skip
NUMBERS = st.lists(st.integers(-(10**14), 10**14).map(lambda n: n / 10**6), min_size=1, max_size=20)
COVERAGES = [Fraction(c) for c in ("0.5", "0.8", "0.9", "0.907", "0.95", "0.99", "0.999")]


def exactly(value: float) -> Fraction:
    """A published number: six decimals."""
    return Fraction(round(Fraction(value) * 10**6), 10**6)


# ---------- rounding ----------


@given(NUMBERS, STEPS)
@examples(150)
def test_rounding_is_to_the_nearest_multiple_and_halves_go_away_from_zero(
    found: list[float], step: Fraction
) -> None:
    values = np.array(found)
    for value, told in zip(found, nearest(values, step).tolist(), strict=True):
        true = exactly(value)
        assert abs(told * step - true) <= step / 2
        if abs(told * step - true) == step / 2:
            assert abs(told * step) > abs(true)
    assert (nearest(-values, step) == -nearest(values, step)).all(), "not symmetric"


@given(NUMBERS, st.sampled_from([Fraction(1), Fraction(10), Fraction(1, 2), Fraction(25, 4)]))
@examples(150)
def test_rounding_twice_is_rounding_once(found: list[float], step: Fraction) -> None:
    once = numbers(nearest(np.array(found), step), step)
    assert (numbers(nearest(once, step), step) == once).all()


@given(NUMBERS, STEPS)
@examples(150)
def test_ends_of_intervals_move_outwards_by_less_than_a_step(found: list[float], step: Fraction) -> None:
    values = np.array(found)
    for is_upper, sign in ((False, -1), (True, 1)):
        for value, told in zip(found, outward(values, step, is_upper).tolist(), strict=True):
            # The multiple itself, of which what is published is the nearest double.
            multiple = round(Fraction(told) / step) * step
            assert 0 <= sign * (multiple - exactly(value)) < step
            assert told == float(multiple)


def test_numbers_beyond_64_bits_are_rounded_exactly_too() -> None:
    huge = np.array([1e18, -3.0, 2.5])
    assert nearest(huge, Fraction(1, 10**6)).tolist() == [10**24, -3_000_000, 2_500_000]
    assert numbers(nearest(huge, Fraction(7)), Fraction(7)).tolist() == [
        float(round(Fraction(10**18, 7)) * 7),
        0.0,
        0.0,
    ]
    assert np.isinf(outward(np.array([np.inf]), Fraction(10), True)).all()


# ---------- totals and suppression, on any released table ----------


@st.composite
def tables(draw: Any) -> Published:
    """A released table of up to three attributes, with intervals of cells and of all sums."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    size = math.prod(shape)
    cells = st.lists(st.integers(-(10**8), 10**9).map(lambda n: n / 10**6), min_size=size, max_size=size)
    value = np.array(draw(cells))
    half = np.array(draw(cells))
    names = tuple("abc"[: len(shape)])
    codes = np.indices(shape).reshape(len(shape), -1)
    columns = {n: np.array([f"{n}{c}" for c in codes[i]], dtype=object) for i, n in enumerate(names)}
    sums = {}
    for count in range(1, len(shape) + 1):
        for over in itertools.combinations(range(len(shape)), count):
            total = value.reshape(shape).sum(axis=over, keepdims=True)
            sums[over] = (np.round(total - 1.5, 6), np.round(total + 1.5, 6))
    block = Block(columns, shape, names, value, value - abs(half), value + abs(half), sums)
    return Published("histogram", (block,), names, {})


@given(tables(), st.one_of(st.none(), STEPS), st.data())
@examples(150)
def test_totals_are_the_sums_of_what_is_printed(table: Published, step: Fraction | None, data: Any) -> None:
    totals = tuple(data.draw(st.lists(st.sampled_from(table.names), unique=True, min_size=1)))
    shown = presented(table, Presentation(round_to=step, totals=totals))
    unit = Fraction(1, 10**6) if step is None else step
    keys = list(zip(*(shown.columns[n].tolist() for n in table.names), strict=True))
    printed = {
        k: round(Fraction(v) / unit) for k, v in zip(keys, shown.columns["value"].tolist(), strict=True)
    }
    inner = [k for k in keys if ALL not in k]
    assert len(inner) == len(table.blocks[0].value) and len(keys) == math.prod(
        n + (name in totals) for n, name in zip(table.blocks[0].shape, table.names, strict=True)
    )
    for key in keys:
        parts = [k for k in inner if all(a in (b, ALL) for a, b in zip(key, k, strict=True))]
        assert printed[key] == sum(printed[k] for k in parts), "in whole steps, so exactly"
    lower, value, upper = (shown.columns[n] for n in ("lower", "value", "upper"))
    assert (lower <= value).all() and (value <= upper).all()


@given(tables(), st.one_of(st.none(), STEPS), st.integers(1, 500), st.integers(0, 500))
@examples(150)
def test_a_higher_threshold_hides_more_and_changes_nothing_else(
    table: Published, step: Fraction | None, least: int, more: int
) -> None:
    plain = presented(table, Presentation(round_to=step, totals=("a",)))
    low, high = (
        presented(table, Presentation(round_to=step, totals=("a",), suppress_below=Fraction(t)))
        for t in (least, least + more)
    )
    hidden, more_hidden = (np.isnan(p.columns["value"]) for p in (low, high))
    assert (hidden <= more_hidden).all()
    assert (hidden == (plain.columns["value"] < least)).all(), "a number that equals the threshold is shown"
    for name in ("value", "lower", "upper"):
        assert (low.columns[name][~hidden] == plain.columns[name][~hidden]).all()
        assert np.isnan(low.columns[name][hidden]).all()
    assert [s is not None for s in low.columns["status"]] == hidden.tolist()
    assert low.suppressed == int(hidden.sum()) and "status" not in plain.columns
    nulls = low.to_arrow().column("value").is_null().to_pylist()
    assert nulls == hidden.tolist()


@given(tables(), STEPS)
@examples(150)
def test_rounded_intervals_cover_what_the_released_ones_do(table: Published, step: Fraction) -> None:
    [block], shown = table.blocks, presented(table, Presentation(round_to=step))
    slack = 1e-6 * float(step) + 1e-9 * np.abs(block.value)
    assert (shown.columns["lower"] <= block.lower + slack).all()
    assert (shown.columns["upper"] >= block.upper - slack).all()


# ---------- nothing can read the table ----------


def test_presenting_can_reach_no_table() -> None:
    found = loaded("import tetraodon.presenting")
    private = {
        "table",
        "engine",
        "session",
        "sources",
        "counting",
        "files",
        "release",
        "answers",
        "margins",
        "parallel",
    }
    assert not found & {f"tetraodon.{name}" for name in private}
    assert not found & {"ibis", "duckdb", "pyarrow", "pandas"}
    assert "tetraodon.presentation" in found
    parameters = inspect.signature(presented).parameters
    assert {n: p.annotation for n, p in parameters.items()} == {
        "published": "Published",
        "presentation": "Presentation",
    }
    held = {f.type for c in (Published, Block) for f in c.__dataclass_fields__.values()}
    for kind in held:
        assert not any(
            word in str(kind) for word in ("Table", "Counts", "Session", "Release", "Callable", "Any]")
        )


def sold(folder: Path, rows: int = 400) -> tuple[td.Table, td.Domain]:
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(3)
    told = {
        "age": rng.integers(0, 30, rows).tolist(),
        "region": rng.choice(["n", "=s", "e"], rows).tolist(),
        "sex": rng.choice(["f", "m"], rows).tolist(),
    }
    parquet.write_table(pa.table(told), folder / "people.parquet")
    domain = td.Domain(
        age=td.Integer(0, 29, unit="years"),
        region=td.Categorical(["n", "=s", "e"]),
        sex=td.Categorical(["f", "m"]),
    )
    return td.Table(folder / "people.parquet", domain), domain


SECRETS = td.AttributeWise(age=td.Within(3), region=td.Full(), sex=td.Full())
SHOWN: dict[str, Any] = {"round_to": 5, "suppress_below": 20, "totals": ["region"], "interval": "0.8"}
QUERIES: dict[str, Any] = {
    "cells": td.Histogram("region", "age"),
    "curve": td.CDF("age", by=["region", "sex"], quantiles=["0.1", "0.5"]),
    "tables": td.Marginals([("region", "sex"), ("age",)], bins={"age": 10}),
}


def swapped(folder: Path, rows: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    other = {"age": [29] * rows, "region": ["e"] * rows, "sex": ["m"] * rows}
    parquet.write_table(pa.table(other), folder / "people.parquet")


def test_what_is_shown_does_not_change_when_the_table_does(tmp_path: Path) -> None:
    table, domain = sold(tmp_path)
    session = td.Session(table, td.Policy(domain, SECRETS), epsilon=10)
    made = [session.release(q, epsilon=1, name=n) for n, q in QUERIES.items()]

    def all_of(folder: Path) -> dict[str, bytes]:
        publish(folder, [(r, presentation_from_spec(SHOWN)) for r in made], session.context)
        return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "manifest.json"}

    first = all_of(tmp_path / "one")
    swapped(tmp_path, 7)
    assert all_of(tmp_path / "two") == first
    (tmp_path / "people.parquet").unlink()
    assert all_of(tmp_path / "three") == first
    assert {"curve.quantiles.csv", "curve.quantiles.parquet", "cells.csv"} <= set(first)


# ---------- coverage ----------


def test_at_95_percent_the_widths_are_the_known_ones() -> None:
    assert (widest(COVERAGE, False), widest(COVERAGE, True), jump(COVERAGE, False)) == (WIDEST, NORMAL, 0.51)


@pytest.mark.parametrize("coverage", COVERAGES, ids=str)
def test_a_single_draw_gets_the_least_interval_of_its_coverage(coverage: Fraction) -> None:
    domain = td.Domain(x=td.Integer(0, 39))
    for scale in (Fraction(1, 5), Fraction(1), Fraction(37, 10), Fraction(50)):
        graph = td.Policy(domain, td.Within(1, on="x")).graph
        strategy = price(Ordered(), resolve(td.CDF("x"), domain), graph, 1 / scale)
        [half] = strategy.half_widths(np.array([noise.discrete_laplace_variance(scale)]), 0.0, coverage)
        q = math.exp(-1 / float(scale))

        def misses(t: float, q: float = q) -> float:
            return 2 * q ** (t + 1) / (1 + q)

        assert misses(half) <= 1 - coverage + 1e-12
        assert half == 0 or misses(half - 1) > 1 - coverage


@pytest.mark.parametrize("coverage", COVERAGES, ids=str)
def test_no_sum_of_draws_needs_more_than_the_widest(coverage: Fraction) -> None:
    # Scales so large that whole numbers do not matter; equal weights, one large and many small, and two.
    worst = 0.0
    for count in (1, 2, 3, 6, 30):
        for first in (1.0, 0.75, 0.5, 0.25):
            for scale in (30.0, 60.0):
                weights = np.array([1.0, *[first] * (count - 1)])
                variance = float((weights**2).sum()) * 2 * scale**2
                half = widest(coverage, False) * math.sqrt(variance)
                worst = max(worst, tail(weights, np.full(count, scale), half, 4))
    # The discrete law puts half a unit more outside than the continuous one; that is less than 1 % here.
    assert worst <= float(1 - coverage) * 1.02


@pytest.mark.parametrize("coverage", COVERAGES, ids=str)
def test_one_draw_exceeds_the_widest_by_no_more_than_the_jump(coverage: Fraction) -> None:
    for is_gaussian in (False, True):
        if is_gaussian and coverage == COVERAGE:
            continue  # ``JUMP`` is that of Laplace noise
        for scale in np.exp(np.linspace(math.log(0.05), math.log(300), 60)):
            exact = Fraction(float(scale)).limit_denominator(10**4)
            if is_gaussian:
                least = float(noise.discrete_gaussian_quantile(exact, coverage))
                spread = noise.discrete_gaussian_variance(exact)
            else:
                least = float(noise.discrete_laplace_quantile(exact, coverage))
                spread = noise.discrete_laplace_variance(exact)
            assert least <= widest(coverage, is_gaussian) * math.sqrt(spread) + jump(coverage, is_gaussian)


@pytest.mark.parametrize("coverage", COVERAGES, ids=str)
@pytest.mark.parametrize(
    "query", [td.Histogram("g", "x"), td.Histogram("g"), td.CDF("x", by="g")], ids=lambda q: q.title
)
def test_intervals_of_totals_cover(query: Any, coverage: Fraction) -> None:
    # The sum of released estimates is the truth and a sum of draws: its exact law against the published width.
    domain = td.Domain(g=td.Categorical(["p", "q", "r"]), x=td.Integer(0, 7))
    hood = td.Policy(domain, td.AttributeWise(g=td.Full(), x=td.Full())).graph
    how = Presentation(interval=coverage, totals=("g",))
    strategy = price(Identity(), resolve(query, domain), hood, Fraction(1, 3))
    true = np.full((strategy.resolved.n_groups, strategy.resolved.n_positions), 1000.0)
    chain, *levels = strategy._apply(true.astype(np.int64))
    noisy = Noisy(tuple(np.asarray(v, dtype=np.float64) for v in (chain, *levels)), 10**9)
    found = published(strategy, answers(strategy, noisy), Fraction(1), how)
    [scale] = [float(s) for p in strategy.parts if (s := strategy.scale(p)) is not None]
    [block] = found.blocks
    lower, upper = block.sums[(block.axes.index("g"),)]
    half = (upper - lower).ravel() / 2
    draws = 3 * (np.arange(8) + 1) if query.word == "cdf" else [3] * half.size
    for width, count in zip(half, draws, strict=True):
        assert tail(np.ones(count), np.full(count, scale), width, 1) <= float(1 - coverage) + 1e-9
        assert tail(np.ones(count), np.full(count, scale), 0.6 * width, 1) > float(1 - coverage), (
            "needlessly wide"
        )


@pytest.mark.parametrize(
    "query", [*QUERIES.values(), td.Mean("age", by="sex"), td.Quantiles("age"), td.Sum("age", by="sex")]
)
def test_less_coverage_means_narrower_intervals_and_the_same_numbers(query: Any, tmp_path: Path) -> None:
    table, domain = sold(tmp_path)
    release = td.Session(table, td.Policy(domain, SECRETS), epsilon=10).release(query, epsilon="0.3")
    plain = release.present()
    for name, column in release.columns.items():
        assert plain.columns[name].tolist() == column.tolist(), "nothing asked for, nothing changed"
    widths = []
    for coverage in ("0.5", "0.7", "0.9", "0.95", "0.999"):
        shown = release.present(interval=coverage).columns
        assert shown["value"].tolist() == release.columns["value"].tolist()
        assert (shown["lower"] <= shown["value"]).all() and (shown["value"] <= shown["upper"]).all()
        widths.append(float(np.sum(shown["upper"] - shown["lower"])))
    assert widths == sorted(widths) and widths[0] < widths[-1]


# ---------- quantiles beside a CDF ----------


def test_quantiles_beside_a_cdf_are_those_of_the_same_counts(tmp_path: Path) -> None:
    table, domain = sold(tmp_path)
    query = td.CDF("age", by=["region"], quantiles=[0.1, 0.5, 0.9])
    assert query_from_spec(query.to_spec()) == query and "quantiles" not in td.CDF("age").to_spec()
    session = td.Session(table, td.Policy(domain, SECRETS), epsilon=10)
    with_them, alone = (session.plan(q, epsilon=1) for q in (query, td.CDF("age", by=["region"])))
    assert [r.to_spec() for r in with_them] == [r.to_spec() for r in alone], "the price of a CDF"
    release = session.release(query, epsilon=1)
    told = quantile_columns(release.strategy, release.answers, query.quantiles)
    assert release.quantiles.to_dict("list") == {n: c.tolist() for n, c in told.items()}
    for level in (0.1, 0.5, 0.9):
        rows = release.quantiles[release.quantiles["level"] == level]
        assert rows["value"].tolist() == release.quantile(level)
    assert session.ledger.spent == 1
    [charge] = [e.charge for e in session.ledger.entries if e.charge is not None]
    assert list(charge.query["quantiles"]) == ["0.1", "0.5", "0.9"]
    with pytest.raises(SpecificationError, match="none were asked for"):
        _ = session.release(td.CDF("age"), epsilon=1).quantiles


def test_quantiles_of_totals_are_read_off_the_sums(tmp_path: Path) -> None:
    table, domain = sold(tmp_path, 4000)
    release = td.Session(table, td.Policy(domain, SECRETS), epsilon=1000).release(
        td.CDF("age", by=["region", "sex"], quantiles=["0.5"]), epsilon=500
    )
    shown = release.present(totals=["region", "sex"]).quantiles
    assert len(shown) == 4 * 3
    grand = shown[(shown["region"] == ALL) & (shown["sex"] == ALL)]
    prefix = release.answers.prefix.sum(axis=0)
    assert grand["value"].tolist() == [int(np.searchsorted(prefix[1:], prefix[-1] / 2))]


# ---------- files, manifest and report ----------


def saved(
    tmp_path: Path, query: Any, formats: tuple[str, ...] = ("csv",), **how: Any
) -> tuple[Path, Presented, Any]:
    table, domain = sold(tmp_path)
    session = td.Session(table, td.Policy(domain, SECRETS), epsilon=10)
    release = session.release(query, epsilon=1, name="made")
    manifest = release.save(tmp_path / "out", formats, present=how)
    return manifest, release.present(**how), release


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_report_reads_what_was_shown_from_either_format(name: str, form: str, tmp_path: Path) -> None:
    labels = {"value": "People", "region": "=Region"}
    manifest, shown, _ = saved(tmp_path, QUERIES[name], (form,), **SHOWN, labels=labels)
    told = json.loads(manifest.read_text())["releases"][0]["presentation"]
    assert [c["name"] for c in told["columns"]] == list(shown.columns)
    assert {c["name"]: c["unit"] for c in told["columns"]} == shown.units
    document = read(manifest)
    [entry] = document.entries
    assert entry.presentation == replace(shown.presentation, format=(form,)) and entry.rows == len(
        shown.columns["People"]
    )
    first = sheets(entry, document.policy.domain)[0].view
    hidden = sum(int(g.hidden.sum()) for g in first.groups if g.hidden is not None)
    drawn = np.concatenate([g.value for g in first.groups])
    is_cell = np.ones(len(shown.columns["People"]), dtype=bool)
    if name != "curve":
        is_cell = np.array(
            [
                ALL not in row
                for row in zip(
                    *(shown.columns[c] for c in shown.columns if c in ("=Region", "table")), strict=True
                )
            ]
        )
    if name == "tables":
        is_cell &= shown.columns["table"] == "region by sex"
    inner = shown.columns["People"][is_cell]
    assert sorted(drawn[drawn > 0]) == sorted(inner[~np.isnan(inner)]) and hidden == int(
        np.isnan(inner).sum()
    )
    page = render(manifest)
    assert "rounded to multiples of 5" in page and "protects nobody and costs nothing" in page
    assert "Published intervals hold with 80 %" in page


def test_a_csv_runs_no_formula_and_opens_in_its_own_encoding(tmp_path: Path) -> None:
    manifest, _, release = saved(
        tmp_path, td.Histogram("region", "age", bins={"age": 10}), labels={"age": "=1+1"}
    )
    content = (manifest.parent / "made.csv").read_bytes()
    assert content.startswith(b'\xef\xbb\xbf"\'=1+1","region","value"'), "there is a dash in 0–9"
    assert b'"\'=s"' in content and b'"=' not in content
    other = td.Histogram("sex")
    release = td.Session(
        release_table(tmp_path), td.Policy(release_table(tmp_path).domain, SECRETS), epsilon=1
    ).release(other, epsilon=1, name="plain")
    plain = (release.save(tmp_path / "plain", ("csv",)).parent / "plain.csv").read_bytes()
    assert plain.startswith(b'"sex","value"') and plain.isascii()


def release_table(folder: Path) -> td.Table:
    return sold(folder)[0]


@given(st.text(alphabet="'=+-@\t\r\n \xa0\ufeff＝a1–.", max_size=6))
def test_escaping_can_be_undone_and_leaves_numbers(text: str) -> None:
    assert unescaped(escaped(text)) == text
    safe, bare = escaped(text), escaped(text).strip(" \t\r\n\xa0\ufeff")
    assert bare[:1] not in ("=", "+", "@", "＝") and safe[:1] not in ("\t", "\r", "\n")
    assert bare[:1] != "-" or (bare == safe and all(c in "0123456789.-–" for c in safe))
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string(), True)):
        column = harmless(
            pa.table({text: pa.chunked_array([pa.array([text, None], pa.string()).cast(kind)])})
        )
        assert column.column_names == [safe] and column.column(0).to_pylist() == [safe, None]
        assert column.column(0).type == kind


def test_escaped_negative_numbers_are_only_numbers() -> None:
    assert [escaped(t) for t in ("-5", "-5–-1", "-5-1", "-", "-a", "-5–x")] == [
        "-5", "-5–-1", "'-5-1", "'-", "'-a", "'-5–x"
    ]  # fmt: skip


# ---------- declarations ----------


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"interval": "0.4"}, "present.interval"),
    ({"interval": 1}, "present.interval"),
    ({"round_to": 0}, "present.round_to"),
    ({"round_to": -5}, "present.round_to"),
    ({"round_to": "ten"}, "present.round_to"),
    ({"suppress_below": 0}, "present.suppress_below"),
    ({"totals": ["regoin"]}, "present.totals.*region"),
    ({"totals": ["region", "region"]}, "present.totals"),
    ({"totals": [1]}, "present.totals"),
    ({"totals": ["age"]}, "present.totals"),
    ({"labels": {"value": " "}}, "present.labels.value"),
    ({"labels": {"value": "a\nb"}}, "present.labels.value"),
    ({"labels": {"value": "lower"}}, "present.labels.*lower"),
    ({"labels": {"valu": "x"}}, "present.labels.*value"),
    ({"units": {"valu": "x"}}, "present.units.*value"),
    ({"units": {"value": 3}}, "present.units"),
    ({"round": 3}, "present.*round_to"),
    ({"format": ["xlsx"]}, "present.format"),
    ({"format": []}, "present.format"),
]


@pytest.mark.parametrize(("how", "where"), WRONG, ids=str)
def test_a_wrong_key_is_named(how: dict[str, Any], where: str, tmp_path: Path) -> None:
    table, domain = sold(tmp_path)
    release = td.Session(table, td.Policy(domain, SECRETS), epsilon=1).release(
        td.CDF("age", by="region"), epsilon=1
    )
    with pytest.raises(SpecificationError, match=where):
        release.present(**how)


@pytest.mark.parametrize(
    ("query", "how", "where"),
    [
        (td.Quantiles("age"), {"round_to": 5}, "present.round_to"),
        (td.Quantiles("age", by="sex"), {"totals": ["sex"]}, "present.totals"),
        (td.Mean("age"), {"suppress_below": 5}, "present.suppress_below"),
        (td.Mean("age", by="sex"), {"totals": ["sex"]}, "present.totals"),
        (td.Sum("age"), {"suppress_below": 5}, "present.suppress_below"),
        (td.Histogram("region", bins={"region": {"All": ["n", "e"], "south": ["=s"]}}), {"totals": ["region"]}, "present.totals.*All"),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_query_has_no_place_for_is_refused(
    query: Any, how: dict[str, Any], where: str, tmp_path: Path
) -> None:
    table, domain = sold(tmp_path)
    release = td.Session(table, td.Policy(domain, SECRETS), epsilon=1).release(query, epsilon=1)
    with pytest.raises(SpecificationError, match=where):
        release.present(**how)


SETTINGS = """
[data]
source = "people.parquet"
[domain.age]
integer = [0, 29]
[domain.region]
categorical = ["n", "=s", "e"]
[policy]
secrets = "attribute-wise"
[budget]
epsilon = 1
[[release]]
name = "ages"
epsilon = "1/2"
"""


def test_a_settings_file_states_the_presentation_and_nothing_is_spent_on_a_wrong_one(tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    query = 'query = { cdf = "age", by = ["region"], quantiles = [0.1, 0.5] }\n'
    present = 'present = { interval = 0.9, round_to = 10, suppress_below = 30, totals = ["region"] }\n'
    path.write_text(SETTINGS + query + present)
    document = load(path)
    how = document.presentations["ages"]
    assert (how.interval, how.round_to, how.totals) == (Fraction(9, 10), 10, ("region",))
    assert presentation_from_spec(how.to_spec()) == how
    for wrong in ("present = { round_to = 0 }\n", 'present = { totals = ["sex"] }\n'):
        path.write_text(SETTINGS + query + wrong)
        with pytest.raises(SpecificationError, match=r"release.toml: releases.ages.present\."):
            load(path)
    path.write_text(
        SETTINGS
        + 'rows = ["age"]\npresent = { round_to = 5 }\n[release.channel]\nkind = "randomised-response"\n'
    )
    with pytest.raises(SpecificationError, match=r"releases.ages.present.round_to: goes with a query"):
        load(path)


def test_a_settings_file_is_run_with_everything_it_shows(tmp_path: Path) -> None:
    sold(tmp_path)
    path, out = tmp_path / "release.toml", tmp_path / "published"
    query = 'query = { cdf = "age", by = ["region"], quantiles = [0.1, 0.5] }\n'
    path.write_text(
        SETTINGS + query + 'present = { totals = ["region"], suppress_below = 30, format = ["csv"] }\n'
    )
    told = json.loads(run(load(path), out, (), False).read_text())
    assert sorted(p.name for p in out.iterdir()) == [
        "ages.csv", "ages.quantiles.csv", "manifest.json", "report.html"
    ]  # fmt: skip
    [release] = told["releases"]
    assert (release["rows"], release["presentation"]["quantiles"]["rows"]) == (30 * 4, 2 * 4)
    [priced] = price_all(load(path).policy, load(path).requests)
    shown = load(path).presentations["ages"]
    assert written_rows(priced, shown) == 30 * 4 + 2 * 4, "known before the data are read"


def test_weights_and_secret_totals_are_shown_in_their_own_unit(tmp_path: Path) -> None:
    table, domain = sold(tmp_path)
    session = td.Session(table, td.Policy(domain, SECRETS), epsilon=10)
    release = session.release(td.Histogram("region", "sex"), epsilon=5)
    heavy = replace(
        release, people=People(weight=Weight(Fraction(0), Fraction(1), Fraction(1, 4), "public")), total=None
    )
    one, quarter = (r.present(totals=["region", "sex"], interval="0.9").columns for r in (release, heavy))
    for name in ("value", "lower", "upper"):
        assert quarter[name] == pytest.approx(one[name] / 4, abs=2e-6 * 6)


@pytest.mark.parametrize(
    "mechanism", [Identity(), Ordered(), Hierarchical(2)], ids=lambda m: type(m).__name__
)
def test_totals_of_a_cdf_are_as_sure_as_their_variance(mechanism: Any) -> None:
    # Noise of different groups is independent: half-widths follow from the sum of the variances, not from the sum of the ends.
    domain = td.Domain(g=td.Categorical([f"g{i}" for i in range(9)]), x=td.Integer(0, 7))
    hood = td.Policy(domain, td.AttributeWise(g=td.Full(), x=td.Within(1))).graph
    strategy = price(mechanism, resolve(td.CDF("x", by="g"), domain), hood, Fraction(1, 10))
    chain, *levels = strategy._apply(np.full((9, 8), 10**5, dtype=np.int64))
    noisy = Noisy(tuple(np.asarray(v, dtype=np.float64) for v in (chain, *levels)), 10**9)
    found = published(strategy, answers(strategy, noisy), Fraction(1), Presentation(totals=("g",)))
    [block] = found.blocks
    lower, upper = block.sums[(0,)]
    single = strategy.half_widths(strategy.answer_variance())
    assert (upper - lower).ravel() / 2 == pytest.approx(3 * single, rel=0.02, abs=2)
