"""``td.audit`` and ``tetraodon audit``: what they read, what they say, and what they make of a broken release."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit.mutants import twin_noise as broken

import tetraodon as td
from tetraodon.auditing.audited import Audit, audited
from tetraodon.errors import SpecificationError, Unsupported
from tetraodon.ledger import Ledger
from tetraodon.loss import Loss
from tetraodon.report import render

Run = Callable[..., tuple[int, str, str]]
DOMAIN = td.Domain(age=td.Integer(0, 9), sex=td.Categorical(["f", "m"]))
POLICY = td.Policy(DOMAIN, td.Within(2, on="age"))
ROWS = """
[[release]]
name = "places"
rows = ["age"]
epsilon = "0.125"
[release.channel]
kind = "exponential"

[[release]]
name = "unproved"
rows = ["age"]
guarantee = "measured"
[release.channel]
kind = "least-leaking"
prior = "uniform"
distortion = 1
"""


@pytest.mark.parametrize(
    ("query", "more"),
    [
        (td.CDF("age", by="sex"), {"epsilon": 1}),
        (td.CDF("age"), {"rho": "1/2", "mechanism": "identity"}),
        (td.Mean("age"), {"epsilon": 1}),
        (td.Marginals(1), {"epsilon": 1}),
        (td.Rows("age", channel={"kind": "exponential"}), {"epsilon": 1}),
    ],
    ids=["cdf", "gaussian", "mean", "marginals", "rows"],
)
def test_a_sound_release_is_not_contradicted(query: Any, more: dict[str, Any]) -> None:
    found = td.audit(query, POLICY, draws=4000, **more)
    assert not found.is_contradicted and found.verdict.startswith("nothing found above the claim")
    assert found.guarantee == "measured" and found.draws == 4000 and found.pairs
    assert found.exact is not None and found.exact <= found.claim.amount


def test_what_nothing_secret_depends_on_is_said_to_be_so() -> None:
    found = td.audit(td.Histogram("sex"), POLICY, epsilon=1, draws=1000)
    assert found.claim.is_zero and found.pairs == 0 and found.bound == 0
    assert "nothing that it publishes differs" in found.verdict


def test_a_broken_release_is_contradicted_by_draws_and_by_arithmetic() -> None:
    with broken.half_the_noise():
        found = td.audit(td.CDF("age"), POLICY, epsilon=1, mechanism="ordered", draws=40_000)
    assert found.is_contradicted and found.bound > 1 and found.exact == 1
    assert found.verdict.startswith("CONTRADICTED: the draws show")
    with broken.half_the_scale():
        found = td.audit(td.CDF("age"), POLICY, epsilon=1, mechanism="ordered", draws=1000)
    assert found.is_contradicted and found.exact == 2
    assert found.verdict.startswith("CONTRADICTED: exact arithmetic")
    with broken.last_in_clear():
        found = td.audit(td.Histogram("age"), POLICY, epsilon=1, draws=1000)
    assert found.is_contradicted


@pytest.mark.parametrize("draws", [0, 399, 10**8, "many", True, 1.5])
def test_draws_are_a_whole_number_within_limits(draws: Any) -> None:
    with pytest.raises(SpecificationError, match="draws"):
        td.audit(td.CDF("age"), POLICY, epsilon=1, draws=draws)


def test_what_claims_no_loss_has_nothing_to_contradict() -> None:
    from tetraodon.rows.strategy import priced

    query = td.Rows("age", channel={"kind": "least-leaking", "prior": "uniform", "distortion": 1})
    strategy = priced(query, POLICY, Loss("epsilon", Fraction(0)), "measured")
    with pytest.raises(SpecificationError, match="claims no loss"):
        audited(strategy, POLICY, 1000, "a")


@pytest.mark.parametrize(
    "domain",
    [
        td.Domain(v=td.Integer(10, 30, step=7, missing="public")),
        td.Domain(v=td.Numeric("-0.5", 4, cells=5, missing="secret")),
        td.Domain(v=td.Categorical(["a", "b"], other="else", missing="secret")),
        td.Domain(v=td.Categorical([3, 5], other="else")),
        td.Domain(
            v=td.Point("lat", "lon", box=((0, 2), (0, 3)), cell="1", metric="planar", missing="public")
        ),
    ],
    ids=["integer", "numeric", "texts", "codes", "point"],
)
def test_made_up_records_lie_in_the_cells_that_they_stand_for(domain: Any) -> None:
    """They go through a table like any others, and come out of a channel that changes nothing as the cell that went in."""
    from tetraodon.auditing import rowing
    from tetraodon.rows.strategy import priced

    same = td.Channel.of_matrix(np.eye(domain.size), domain)
    query = td.Rows("v", channel=same)
    strategy = priced(query, td.Policy(domain, td.Full()), Loss("epsilon", Fraction(0)), "measured")
    seen = {
        tuple(rowing.outputs(strategy, [(cell, 1)], domain, 3)[1].tolist()) for cell in range(domain.size)
    }
    assert len(seen) == domain.size


def test_too_long_an_output_is_refused_with_what_to_do() -> None:
    domain = td.Domain(v=td.Integer(0, 2**23))
    with pytest.raises(Unsupported, match="coarser bins"):
        td.audit(
            td.Histogram("v"), td.Policy(domain, td.Within(1)), epsilon=1, mechanism="identity", draws=1000
        )


def test_of_long_outputs_the_numbers_that_move_are_drawn() -> None:
    domain = td.Domain(v=td.Integer(0, 999))
    found = td.audit(td.CDF("v"), td.Policy(domain, td.Within(3)), epsilon=1, mechanism="ordered", draws=4000)
    assert found.exact == 1 and any("moves most" in note for note in found.notes)
    with broken.half_the_noise():
        found = td.audit(
            td.CDF("v"), td.Policy(domain, td.Within(3)), epsilon=1, mechanism="ordered", draws=40_000
        )
    assert found.is_contradicted


# ---------- the command ----------


def test_the_command_reads_no_data_and_spends_nothing(settings: Callable[..., Path], run: Run) -> None:
    path = settings()
    (path.parent / "people.parquet").unlink()
    path.write_text(path.read_text(encoding="utf-8") + ROWS, encoding="utf-8")
    code, out, _ = run("audit", path, "--draws", "1000")
    assert code == 0
    assert "ages: " in out and "cells: " in out and "places: exponential" in out
    assert "unproved: not audited: " in out and "claims no loss" in out
    assert "the data were not read, and nothing was spent" in out and "proves none" in out
    assert not (path.parent / "people.ledger").exists() and not (path.parent / "published").exists()
    code, out, _ = run("audit", path, "--draws", "1000", "--json", "--only", "cells")
    told = json.loads(out)
    assert code == 0 and not told["contradicted"] and len(told["releases"]) == 1
    assert told["releases"][0]["audit"]["guarantee"] == "measured"
    assert told["releases"][0]["audit"]["claim"] == {"unit": "epsilon", "amount": "0.25"}


def test_the_command_says_what_is_wrong(settings: Callable[..., Path], run: Run) -> None:
    assert run("audit", settings(), "--draws", "3")[0] == 2
    code, _, err = run("audit", settings(), "--only", "cell")
    assert code == 2 and "cells" in err
    with broken.half_the_scale():
        code, out, _ = run("audit", settings(), "--draws", "1000")
    assert code == 1 and "CONTRADICTED" in out


def test_a_release_whose_claim_is_contradicted_is_not_made(settings: Callable[..., Path], run: Run) -> None:
    path = settings()
    with broken.half_the_scale():
        code, _, err = run("release", path, "--audit")
    assert code == 1 and "CONTRADICTED" in err and "Nothing was spent" in err
    assert not (path.parent / "people.ledger").exists()
    assert not (path.parent / "published" / "manifest.json").exists()


def test_the_report_tells_of_an_audit(
    settings: Callable[..., Path], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tetraodon.cli.AUDIT_DRAWS", 1000)
    path = settings()
    path.write_text(path.read_text(encoding="utf-8") + ROWS, encoding="utf-8")
    assert run("release", path, "--audit", "--only", "ages", "--only", "places", "--only", "unproved")[0] == 0
    assert run("release", path, "--only", "cells")[0] == 0
    manifest = path.parent / "published" / "manifest.json"
    told = {entry["name"]: entry for entry in json.loads(manifest.read_text(encoding="utf-8"))["releases"]}
    assert set(told) == {"ages", "places", "unproved", "cells"}  # an audited release outlives later runs
    assert {n for n, entry in told.items() if "audit" in entry} == {"ages", "places"}
    page = render(manifest)
    assert page.count("<dt>Audit</dt>") == 2 and "<b>Measured</b>, on made-up neighbouring tables" in page
    assert Ledger.read(path.parent / "people.ledger").spent == Fraction(7, 8)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("guarantee", "proved"),
        ("contradicted", True),
        ("draws", "1"),
        ("claim", {}),
        ("notes", [1]),
        ("exact", "x"),
    ],
)
def test_a_report_believes_no_audit_that_is_not_one(
    settings: Callable[..., Path], run: Run, monkeypatch: pytest.MonkeyPatch, key: str, value: Any
) -> None:
    monkeypatch.setattr("tetraodon.cli.AUDIT_DRAWS", 400)
    path = settings()
    assert run("release", path, "--audit", "--only", "cells")[0] == 0
    manifest = path.parent / "published" / "manifest.json"
    told = json.loads(manifest.read_text(encoding="utf-8"))
    told["releases"][0]["audit"][key] = value
    manifest.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(SpecificationError, match=r"releases\[0\].audit"):
        render(manifest)


def test_an_audit_shows_itself_in_words() -> None:
    found = Audit(
        "a", "ordered", Loss("rho", Fraction(1)), 0.2, 1e-9, 1.4, Fraction(1), 1000, 2, "x → y", "number 1"
    )
    assert "measured" in repr(found) and not found.is_contradicted
    assert found.to_spec()["resolution"] == 1.4
