"""What ``import tetraodon`` loads, and what a declaration and its price load: numpy, and no heavy package."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "ibis", "duckdb", "sqlglot", "pyarrow", "scipy", "pandas", "polars", "pydantic", "typer", "click", "altair",
    "vl_convert", "tetraodon.session", "tetraodon.engine",
)  # fmt: skip
BARE = "import tetraodon"
DECLARED = """
import tetraodon as td
domain = td.Domain(
    loss=td.Integer(0, 4356, unit="USD", missing="secret"), share=td.Numeric(0, 1, cells=10),
    sex=td.Categorical(["Female", "Male"], other="Unknown", missing="public"),
)
domain["loss"].cells([1, None, "7"])
for secrets in (td.Full(), td.AttributeWise(loss=td.Within(100), sex=td.Full()), td.Partition({"loss": 16, "sex": 2})):
    policy = td.Policy(domain, secrets)
    for query in (
        td.Histogram("sex", "loss", bins={"loss": 5}), td.CDF("loss", by="sex"), td.Ranges("share"), td.Sum("loss"),
        td.Mean("loss", where={"sex": ["Male"]}), td.Quantiles("loss", [0.5]), td.Linear([[1, 2, 3, 4]], "sex"),
    ):
        policy.sensitivity(query)
    policy.explain("1/2")
    policy.hash
    td.Policy.from_spec(policy.to_spec())
"""
LISTED = """
import sys
import tetraodon as td
policy = td.Policy(td.Domain(x=td.Categorical(["p", "q", "r"])), td.Edges([("p", "q")]))
assert policy.sensitivity(td.Histogram("x")).value == 2
assert "scipy" not in sys.modules
assert policy.graph.distance(0, 2) is None
"""


def loaded(program: str) -> set[str]:
    """Names of the modules that a fresh interpreter holds after a program."""
    told = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules)"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    return set(told.stdout.split())


@pytest.mark.parametrize("program", [BARE, DECLARED], ids=["import", "declare"])
def test_nothing_heavy_is_loaded(program: str) -> None:
    found = loaded(program)
    assert "tetraodon" in found and ("numpy" in found) == (program is DECLARED)
    assert not found & set(HEAVY)


def test_only_paths_through_listed_pairs_load_scipy() -> None:
    assert "scipy" in loaded(LISTED)


def test_a_wrong_name_loads_nothing_either() -> None:
    program = "import tetraodon\ntry:\n    tetraodon.Histogramm\nexcept AttributeError:\n    pass"
    assert "numpy" not in loaded(program)
