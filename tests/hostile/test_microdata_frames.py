"""What a review of the estimator found: values, names and numbers that must not leave by the side of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tetraodon as td
from tetraodon.errors import DataError, Refused, SpecificationError

CANARY = "CANARY-8472"


def rows(n: int = 300, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 32, n)
    return {"age": age, "hours": age // 4 + rng.integers(0, 3, n), "job": rng.choice(["clerk", "cook"], n)}


def asked(**more: Any) -> td.HybridObscuring:
    told: dict[str, Any] = {"distortion": "0.5", "groups": 3, "k": 20, "clusters": 3, "donors": 5} | more
    return td.HybridObscuring(**({"private": "age", "insensitive": ["hours", "job"]} | told))


def test_a_sources_dictionary_stays_behind() -> None:
    """Excluded and unused categories, and the order of the first rows, are no part of what is published."""
    told = rows()
    job = ["driver", *told["job"][1:].tolist()]
    coded = pa.array([CANARY, *job]).dictionary_encode()[1:]
    assert CANARY in coded.dictionary.to_pylist()
    out = asked().fit_transform(pa.table({"age": told["age"], "hours": told["hours"], "job": coded}))
    held = out.column("job").combine_chunks().dictionary.to_pylist()
    assert CANARY not in held and held == sorted(held) and set(held) == set(out.column("job").to_pylist())
    frame = pd.DataFrame(
        {**told, "job": pd.Categorical(told["job"], ["cook", "clerk", CANARY], ordered=True)}
    )
    found = asked().fit_transform(frame)["job"].dtype
    assert CANARY not in found.categories and found.ordered and list(found.categories) == ["cook", "clerk"]


def test_the_shares_of_single_people_are_not_kept_behind_a_number_of_donors() -> None:
    for published in ("donors", "prototypes"):
        with pytest.raises(SpecificationError, match="donors = 1"):
            _ = asked(invariant=True, publish=published).settings
        assert asked(invariant=True, publish=published, donors=1).settings.is_invariant


def test_repeated_categories_are_one_value_and_hidden_nulls_are_nulls() -> None:
    names = pa.array(["HIV", "HIV", "flu", "cold"])
    index = pa.array(np.random.default_rng(1).integers(0, 4, 300), pa.int32())
    table = pa.table({"ill": pa.DictionaryArray.from_arrays(index, names), "hours": rows()["hours"]})
    made = asked(private="ill", insensitive=["hours"], groups=1, k=5, l=3, distortion=1).fit(table)
    assert made.plan_.columns[0].labels == ("HIV", "cold", "flu")
    with pytest.raises(Refused):
        asked(private="ill", insensitive=["hours"], groups=2, k=5, l=2, distortion=1).fit(table)
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 150, pa.int32()), pa.array(["flu", None]))
    with pytest.raises(DataError, match="'ill' holds nulls"):
        asked(private="ill", insensitive=["hours"]).fit(pa.table({"ill": hidden, "hours": rows()["hours"]}))


def test_groups_are_told_apart_whatever_values_are_called() -> None:
    rng = np.random.default_rng(2)
    ill = np.array(["a", "b", "a, b"])[rng.integers(0, 3, 300)]
    for _ in range(2):
        made = asked(private="ill", insensitive=["hours"], groups=2, k=5, distortion=1)
        out = made.fit_transform(pa.table({"ill": ill, "hours": rows()["hours"]}))
        assert len(made.groups_["ill"]) == 2 and len(set(out.column("ill").to_pylist())) == 2


def test_refusals_of_the_estimator_hold_no_number_of_values_that_occur() -> None:
    with pytest.raises(Refused) as found:
        asked(groups=3, l=5, k=1, distortion=1).fit(pa.table(rows()))  # 12 ages occur
    assert "12" not in str(found.value) and "declared" not in str(found.value)


def test_what_no_groups_can_meet_is_refused_before_anything_dear_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tetraodon.microdata.prepared import Prepared

    def dear(*_: Any) -> Any:
        raise AssertionError("asked for")

    monkeypatch.setattr(Prepared, "pieces", dear)
    for budget in ("shared", "group"):
        with pytest.raises(Refused, match="No generalisation"):
            asked(groups=2, alpha=100, k=50, budget=budget).fit(pa.table(rows()))


def test_numbers_of_single_precision_are_the_same_at_transform() -> None:
    table = pa.table(
        {"age": pa.array(rows()["age"] + np.float32(0.1), pa.float32()), "hours": rows()["hours"]}
    )
    made = asked(insensitive=["hours"])
    made.fit(table)
    assert made.transform(table).num_rows == 300


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"distortion": "1e400"}, "distortion"),
        ({"coarseness": "1e400"}, "coarseness"),
        ({"k": "1e400"}, "k"),
        ({"private": ["age", "age"]}, "each once"),
        ({"quasi_identifiers": ["job", "job"], "insensitive": ["hours"]}, "each once"),
        ({"hierarchy": 3}, "hierarchy"),
        ({"hierarchy": {"age": "tree"}}, "hierarchy"),
        ({"map_width": 1}, "MAP"),
    ],
)
def test_settings_that_no_computer_holds_are_refused_by_name(change: dict[str, Any], match: str) -> None:
    told = rows()
    if match == "MAP":
        told["age"], match = told["age"] * 10**9, "map_width"
    with pytest.raises((SpecificationError, DataError), match=match):
        asked(**change).fit(pa.table(told))


def test_reprs_hold_no_values() -> None:
    told = rows()
    told["age"] = np.array([f"{CANARY}-{a}" for a in told["age"]])
    made = asked().fit(pa.table(told))
    for thing in (made.plan_, made.plan_.columns[0], made.plan_.groups[0][0], made.plan_.prepared, made):
        assert CANARY not in repr(thing)
