"""The estimator: what goes in and comes out, what holds of what is published, and what is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import people
from scipy.stats import chisquare
from sklearn.base import clone

import tetraodon as td
from tetraodon.errors import DataError, Refused, SpecificationError
from tetraodon.microdata import fit
from tetraodon.microdata.drawing import drawn
from tetraodon.microdata.plan import LN2


def asked(**more: Any) -> td.HybridObscuring:
    told: dict[str, Any] = {
        "distortion": 0.2,
        "groups": 3,
        "k": 60,
        "l": 2,
        "clusters": 6,
        "donors": 3,
    } | more
    return td.HybridObscuring(**({"private": "age", "insensitive": "all"} | told))


def rows_of(table: pa.Table, names: list[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(n).to_pylist() for n in names), strict=True))


# ---------- in and out ----------


def test_frames_come_out_as_they_went_in(table: pa.Table) -> None:
    expected = ["age", "kind", *(f"q_{j}" for j in range(5))]
    frames = [
        table,
        table.to_pandas(),
        pl.from_arrow(table),
        {n: table.column(n).to_pylist() for n in table.column_names},
    ]
    for frame in frames:
        out = asked().fit_transform(frame)
        assert type(out) is type(frame)
        assert (
            list(out)
            if isinstance(out, dict)
            else out.column_names
            if isinstance(out, pa.Table)
            else list(out.columns)
        ) == expected


def test_it_is_an_estimator(table: pa.Table) -> None:
    hybrid = asked()
    again = clone(hybrid)
    assert again.get_params() == hybrid.get_params() and not hasattr(again, "plan_")
    with pytest.raises(Exception, match="not fitted"):
        again.transform(table)
    assert hybrid.fit(table) is hybrid and hybrid.n_features_in_ == table.num_columns
    assert list(hybrid.get_feature_names_out()) == table.column_names
    assert hybrid.set_params(groups=2).fit(table).plan_.sizes == (2,)


def test_an_index_does_not_leave(table: pa.Table) -> None:
    frame = table.to_pandas()
    frame.index = [f"canary{i}" for i in range(len(frame))]
    assert asked().fit_transform(frame).index.equals(pd.RangeIndex(len(frame)))


def test_columns_without_a_part_do_not_leave(table: pa.Table) -> None:
    out = asked(insensitive=["q_0", "q_1"]).fit_transform(table)
    assert out.column_names == ["age", "q_0", "q_1"]
    assert asked(insensitive={"prefix": "q_"}).fit(table).plan_.settings.insensitive == tuple(
        f"q_{j}" for j in range(5)
    )


# ---------- what is published ----------


def test_groups_meet_what_is_required_and_rows_come_from_donors_of_the_group(
    table: pa.Table, fitted: td.HybridObscuring
) -> None:
    out = fitted.transform(table)
    age = np.array(table.column("age").to_pylist())
    label = np.array(out.column("age").to_pylist())
    names = ["kind", *(f"q_{j}" for j in range(5))]
    before, after = rows_of(table, names), rows_of(out, names)
    assert len(set(label)) == 3
    for group in set(label):
        own = label == group
        assert own.sum() >= 60 and len(set(age[own])) >= 2
        low, _, high = group.partition("–")
        assert age[own].min() >= int(low) and age[own].max() <= int(high or low)
        assert {after[i] for i in np.flatnonzero(own)} <= {before[i] for i in np.flatnonzero(own)}


def test_every_donor_is_one_of_enough(table: pa.Table, fitted: td.HybridObscuring) -> None:
    plan = fitted.plan_
    made = drawn(plan, plan.prepared.data)
    assert made.donors is not None
    joint = plan.joint_group(plan.prepared.data.codes)
    cell = joint * 100 + plan.prepared.clusters.labels
    held = Counter(cell.tolist())
    assert (joint[made.donors] == joint).all()
    assert (plan.prepared.clusters.labels[made.donors] == made.clusters).all()
    assert all(held[c] >= 3 for c in cell[made.donors].tolist())


def test_the_channel_that_is_drawn_is_the_one_that_was_optimised(fitted: td.HybridObscuring) -> None:
    """Chi-squared over more than 10^6 draws, cluster by cluster; donors within a cell are even."""
    plan = fitted.plan_
    data = plan.prepared.data
    counts: dict[tuple[int, int], Counter[int]] = {}
    donors: Counter[int] = Counter()
    joint, repeats = plan.joint_group(data.codes), 2600
    for _ in range(repeats):
        made = drawn(plan, data)
        for law in plan.laws:
            own = joint == law.group
            for c in law.rows.tolist():
                told = made.clusters[own & (plan.prepared.clusters.labels == c)]
                counts.setdefault((law.group, c), Counter()).update(told.tolist())
        assert made.donors is not None
        donors.update(made.donors.tolist())
    for law in plan.laws:
        for at, c in enumerate(law.rows.tolist()):
            told = counts[law.group, c]
            total = sum(told.values())
            expected = law.matrix[at] * total
            big = expected > 20
            seen = np.array([told[z] for z in law.columns.tolist()])
            assert seen[law.matrix[at] == 0].sum() == 0
            if big.sum() > 1:
                rest = [[seen[~big].sum()], [expected[~big].sum()]] if expected[~big].sum() > 20 else [[], []]
                a, b = np.append(seen[big], rest[0]), np.append(expected[big], rest[1])
                assert chisquare(a, b * a.sum() / b.sum()).pvalue > 1e-7
    assert sum(sum(c.values()) for c in counts.values()) >= 10**6


def test_distortion_is_kept_in_expectation_and_told_of_the_draw(
    table: pa.Table, fitted: td.HybridObscuring
) -> None:
    assert fitted.distortion_ <= 0.2
    seen = []
    for _ in range(60):
        fitted.transform(table)
        seen.append(fitted.realised_distortion_)
    error = 4 * np.std(seen) / np.sqrt(len(seen))
    assert abs(np.mean(seen) - fitted.distortion_) < error


def test_figures_are_those_of_the_law_itself(fitted: td.HybridObscuring) -> None:
    """I(Y; Ĉ, Ỹ) of the joint table worked out by hand."""
    plan = fitted.plan_
    values = plan.prepared.per_value()
    joint = np.zeros((len(values), plan.sizes[0] * 6))
    for law in plan.laws:
        moved = law.joint @ law.matrix
        members = plan.groups[0][law.group].members
        inside = members[values[members] > 0]
        joint[np.ix_(inside, law.group * 6 + law.columns)] += moved
    assert joint.sum() == pytest.approx(1)
    assert td.leakage.information(joint) == pytest.approx(fitted.leakage_, abs=1e-9)
    told = plan.figures
    assert told["unknown"] == pytest.approx(td.leakage.entropy(values / values.sum()))
    assert told["leakage"] <= told["unprotected"] <= told["unknown"] + 1e-9
    assert fitted.bound_ is not None and fitted.bound_ <= fitted.leakage_ + 1e-9
    assert fitted.gap_ is not None and fitted.gap_ * LN2 < 1e-3


def test_prototypes_are_published_where_they_are_asked_for(table: pa.Table) -> None:
    hybrid = asked(publish="prototypes", metric="gower")
    out = hybrid.fit_transform(table)
    assert len(set(rows_of(out, ["kind", *(f"q_{j}" for j in range(5))]))) <= 6
    assert hybrid.distortion_ <= 0.2


def test_invariance_keeps_the_shares_of_clusters(table: pa.Table) -> None:
    hybrid = asked(invariant=True, donors=1).fit(table)
    for law in hybrid.plan_.laws:
        mass = law.joint.sum(axis=0)
        assert law.rows.tolist() == law.columns.tolist()
        assert mass @ law.matrix == pytest.approx(mass, abs=1e-9)
    assert hybrid.leakage_ >= asked(donors=1).fit(table).leakage_ - 1e-4


def test_several_private_columns_and_classes(table: pa.Table) -> None:
    hybrid = td.HybridObscuring(
        ["age", "kind"], {"prefix": "q_"}, distortion=0.3, groups=2, k=20, clusters=4, donors=2
    )
    out = hybrid.fit_transform(table)
    pairs = Counter(rows_of(out, ["age", "kind"]))
    assert len(set(out.column("age").to_pylist())) == 2 and min(pairs.values()) >= 20
    assert hybrid.bound_ is None
    classed = td.HybridObscuring(
        "age",
        {"prefix": "q_"},
        distortion=0.3,
        groups=2,
        k=20,
        clusters=4,
        donors=2,
        quasi_identifiers="kind",
        class_size=40,
    )
    shown = classed.fit_transform(table)
    assert min(Counter(shown.column("kind").to_pylist()).values()) >= 40
    told = classed.plan_.figures
    assert told["classes"] > 0 and told["leakage"] == pytest.approx(
        told["classes"] + told["naming"] + told["exchange"]
    )


def test_hierarchies_and_maps() -> None:
    table = people(300, seed=5)
    tree = {"a": "ab", "b": "ab", "c": "other", "ab": "any", "other": "any"}
    hybrid = td.HybridObscuring(
        "kind",
        {"prefix": "q_"},
        distortion=0.4,
        groups=2,
        k=20,
        clusters=3,
        donors=2,
        hierarchy={"kind": tree},
    )
    assert set(hybrid.fit_transform(table).column("kind").to_pylist()) == {"ab", "c"}
    cells = pa.table({"cell": (np.arange(300) % 4) * 60 + np.arange(300) % 3 + 20, "q": np.arange(300) % 7})
    for shape in ("rectangles", "curve"):
        mapped = td.HybridObscuring(
            "cell",
            ["q"],
            distortion=0.5,
            groups=3,
            k=20,
            clusters=3,
            donors=2,
            map_width=60,
            generalise=shape,
        ).fit(cells)
        assert sum(len(v) for v in mapped.groups_["cell"].values()) == 12


# ---------- refusals ----------


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"groups": None}, "one of groups, alpha, beta and coarseness is needed"),
        ({"distortion": None}, "distortion: is missing"),
        ({"k": 500}, "k: more than the table has rows"),
        ({"clusters": 500}, "clusters"),
        ({"groups": 40}, "groups: more than"),
        ({"metric": "manhattan"}, "metric: one of"),
        ({"generalise": "tree"}, "does not fit 'age'"),
        ({"k": 0}, "k: a whole number"),
        ({"insensitive": {"prefix": "zz"}}, "no column begins with 'zz'"),
        ({"insensitive": ["q_0", "age"]}, "has another part already"),
        ({"insensitive": ["q_99"]}, "q_99"),
        ({"insensitive": None}, "name the columns that are exchanged"),
    ],
    ids=lambda v: str(v)[:20] if isinstance(v, str) else next(iter(v)),
)
def test_settings_that_do_not_fit_are_named(more: dict[str, Any], text: str, table: pa.Table) -> None:
    with pytest.raises(SpecificationError, match=text):
        asked(**more).fit(table)


def test_a_private_column_that_is_missing_or_constant_is_named(table: pa.Table) -> None:
    with pytest.raises(SpecificationError, match="no column 'income'"):
        td.HybridObscuring("income", "all", distortion=0.2, groups=2).fit(table)
    constant = table.set_column(0, "age", pa.array([30] * table.num_rows))
    with pytest.raises(SpecificationError, match="one value only"):
        asked().fit(constant)


def test_missing_values_are_refused_by_column(table: pa.Table) -> None:
    age = table.column("age").to_pylist()
    with pytest.raises(DataError, match="'age' holds nulls"):
        asked().fit(table.set_column(0, "age", pa.array([None, *age[1:]])))
    told = [float("nan"), *map(float, table.column("q_0").to_pylist()[1:])]
    with pytest.raises(DataError, match="q_0"):
        asked().fit(table.set_column(2, "q_0", pa.array(told)))


def test_no_count_leaves_with_a_refusal(table: pa.Table) -> None:
    for more in ({"k": 190}, {"distortion": 0.0001}, {"donors": 300}, {"alpha": 70, "k": 65}):
        with pytest.raises(Refused) as found:
            asked(**more).fit(table)
        assert not any(
            str(n) in str(found.value) for n in Counter(table.column("age").to_pylist()).values() if n > 20
        )


def test_other_rows_are_tested_anew(table: pa.Table, fitted: td.HybridObscuring) -> None:
    with pytest.raises(Refused, match=r"at least 60 rows \(k\)"):
        fitted.transform(table.slice(0, 100))
    unseen = table.set_column(0, "age", pa.array([99, *table.column("age").to_pylist()[1:]]))
    with pytest.raises(SpecificationError, match="'age' has a value that was not fitted"):
        fitted.transform(unseen)
    kinds = table.set_column(1, "kind", pa.array(["canary", *table.column("kind").to_pylist()[1:]]))
    with pytest.raises((SpecificationError, DataError)) as found:
        fitted.transform(kinds)
    assert "kind" in str(found.value) and "canary" not in str(found.value)
    others = fitted.transform(pa.concat_tables([table, people(400, seed=9)]))
    assert others.num_rows == 800


def test_the_owner_can_ask_which_distortions_are_possible(table: pa.Table) -> None:
    hybrid = asked()
    least, anyone = hybrid.distortions(table)
    assert 0 < least < anyone
    with pytest.raises(Refused, match=r"hybrid\.distortion: there are groups"):
        asked(distortion=least * 0.999).fit(table)
    assert asked(distortion=least * 1.02).fit(table).distortion_ <= least * 1.02
    free = asked(distortion=1).fit(table).plan_.figures
    assert free["exchange"] == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(
    ("rows", "most"), [(450, 60), pytest.param(3000, fit.MOST_ORDERED, marks=pytest.mark.slow)]
)
def test_a_column_of_very_many_values_is_cut_along_runs_of_them(
    rows: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "MOST_ORDERED", most)
    table = people(rows, seed=4)
    income = pa.array(np.random.default_rng(4).permutation(rows).astype(np.int64) * 7)
    table = table.append_column("income", income)
    made = td.HybridObscuring(
        "income", ["q_0", "q_1"], groups=4, k=rows // 15, clusters=3, distortion="0.5", donors=1
    ).fit(table)
    [groups] = made.plan_.groups
    assert len(groups) == 4 and sum(len(g.members) for g in groups) == rows
    assert all((np.diff(g.members) == 1).all() for g in groups)
    assert made.gap_ is not None and made.gap_ < 1e-3


def test_shares_are_kept_where_prototypes_are_published(table: pa.Table) -> None:
    made = asked(invariant=True, publish="prototypes", donors=1).fit(table)
    for law in made.plan_.laws:
        mass = law.joint.sum(axis=0)
        assert np.array_equal(law.rows, law.columns)
        assert mass @ law.matrix == pytest.approx(mass, abs=1e-9)


def test_shares_that_cannot_be_kept_are_refused_without_a_number(table: pa.Table) -> None:
    with pytest.raises(Refused, match=r"hybrid\.distortion") as found:
        asked(invariant=True, donors=1, distortion="0.001").fit(table)
    assert not any(c.isdigit() for c in str(found.value))


@pytest.mark.parametrize("more", [{"coarseness": 1}, {"invariant": True, "donors": 1}])
def test_the_alternating_search_says_what_it_does_not_look_at(more: dict[str, Any]) -> None:
    with pytest.raises(td.errors.SpecificationError, match="'alternating' does not look at it"):
        _ = asked(method="alternating", **more).settings
