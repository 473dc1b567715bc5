"""Evidence of a channel: every figure is the one that its definition gives, and the certified curve lies below all others."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tetraodon as td
from tetraodon.channels import exponential, planar_geometric, randomised_response
from tetraodon.channels.certificate import Certificate
from tetraodon.channels.channel import Channel
from tetraodon.channels.geometry import Geometry
from tetraodon.errors import SpecificationError
from tetraodon.leakage import measures
from tetraodon.rows.evidence import evidence

KEYS = {"prior", "distortion", "unit", "used_outputs", "leakage", "certificate", "words", "curve", "rows"}


def grid(rows: int, columns: int) -> td.Domain:
    box = ((0, rows), (0, columns))
    return td.Domain(at=td.Point("x", "y", box=box, cell=1, metric="planar", unit="km"))


def corners(n: int) -> np.ndarray:
    """Four people, one in each corner of an n × n grid, who also pass through the middle."""
    joint = np.zeros((4, n, n))
    near, far = slice(0, n // 3), slice(n - n // 3, n)
    for i, place in enumerate([(near, near), (near, far), (far, near), (far, far)]):
        joint[(i, *place)] = i + 1
        joint[i, n // 2, n // 2] = 2
    return joint.reshape(4, n * n) / joint.sum()


def plain(told: dict[str, Any]) -> dict[str, Any]:
    """As a manifest holds it: everything is plain and finite."""
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert set(told) == KEYS
    return told


def test_figures_are_those_of_their_definitions() -> None:
    joint, channel = corners(6), exponential(grid(6, 6), 3, "km")
    told = plain(evidence(channel, joint=joint, secret="person", people="people", source="public", points=2))
    law, figures = joint.sum(axis=0), told["leakage"]
    cost = Geometry(channel.domain).matrix(None)
    assert told["distortion"] == pytest.approx(float(law @ (channel.matrix * cost).sum(axis=1)))
    seen = joint @ channel.matrix
    assert figures["bits"] == pytest.approx(measures.information(seen), abs=1e-9)
    assert figures["bayes_error"] == pytest.approx(1 - seen.max(axis=0).sum(), abs=1e-12)
    assert figures["plain_bits"] == pytest.approx(measures.information(joint), abs=1e-9)
    assert figures["plain_error"] == pytest.approx(1 - joint.max(axis=0).sum(), abs=1e-12)
    shares = joint.sum(axis=1)
    assert figures["prior_bits"] == pytest.approx(-(shares * np.log2(shares)).sum())
    assert figures["guessing_error"] == pytest.approx(1 - shares.max())
    assert (figures["secret"], figures["secrets"]) == ("person", 4)
    assert told["used_outputs"] == int((law @ channel.matrix >= 1e-6).sum())
    assert any("names the right one of 4 people" in line for line in told["words"])


def test_without_secrets_the_value_is_its_own() -> None:
    channel, prior = planar_geometric(grid(4, 5), 1, "km"), np.arange(20.0)
    told = plain(evidence(channel, prior=prior, source="public", points=2))
    law = prior / prior.sum()
    assert told["leakage"]["bits"] == pytest.approx(
        measures.information(law[:, None] * channel.matrix), abs=1e-9
    )
    assert told["leakage"]["secrets"] == 19
    assert told["leakage"]["plain_error"] == 0


def test_on_large_grids_blocks_are_the_secrets() -> None:
    channel = planar_geometric(grid(34, 34), 1, "km")
    told = plain(evidence(channel))
    figures = told["leakage"]
    assert figures["secret"] == "which block of 2 × 2 cells the value lies in"
    assert figures["secrets"] == 289
    i, j = np.divmod(np.arange(34 * 34), 34)
    block = np.zeros((289, 34 * 34))
    block[i // 2 * 17 + j // 2, np.arange(34 * 34)] = 1 / 34**2
    assert figures["bits"] == pytest.approx(measures.information(block @ channel.matrix), abs=1e-6)
    assert told["curve"] == []


def test_laws_too_large_for_a_table_of_secrets_have_no_such_figures() -> None:
    many = td.Domain(a=td.Integer(0, 10), b=td.Integer(0, 9), c=td.Integer(0, 9))
    told = plain(evidence(randomised_response(many, 1), metric=td.Discrete()))
    assert told["leakage"] is None
    assert [w.split()[0] for w in told["words"]] == ["Proved:", "Nothing"]
    assert told["distortion"] > 0


@pytest.mark.parametrize("with_joint", [False, True])
def test_the_certified_curve_lies_below_every_other(with_joint: bool) -> None:
    joint = corners(6)
    told = plain(
        evidence(planar_geometric(grid(6, 6), 2, "km"), joint=joint if with_joint else None, points=4)
    )
    curves = {c["name"]: c for c in told["curve"]}
    assert list(curves) == ["planar geometric", "planar Laplace", "exponential", "least leaking (certified)"]
    best = curves.pop("least leaking (certified)")
    assert len(best["distortion"]) == 4
    assert best["distortion"] == sorted(best["distortion"])
    for value, bound in zip(best["leakage"], best["bound"], strict=True):
        assert 0 <= bound <= value <= bound + 1.1e-3
    for curve in curves.values():
        assert curve["bound"] is None
        assert curve["distortion"] == sorted(curve["distortion"])
        for distortion, leakage in zip(curve["distortion"], curve["leakage"], strict=True):
            # The least leakage falls with the distortion, so a bound further out holds here too.
            beyond = [b for d, b in zip(best["distortion"], best["bound"], strict=True) if d >= distortion]
            assert leakage >= max(beyond, default=0.0) - 1e-9
    # And it is much lower than noise where noise is best.
    noise = curves["planar geometric"]
    assert np.interp(best["distortion"][1], noise["distortion"], noise["leakage"]) > best["leakage"][1]


def test_no_seconds_mean_no_certified_curve() -> None:
    told = evidence(planar_geometric(grid(5, 5), 2, "km"), points=2, seconds=-1)
    assert "least leaking (certified)" not in {c["name"] for c in told["curve"]}


def test_rows_are_rows_of_the_channel() -> None:
    channel = planar_geometric(grid(12, 9), 1, "km")
    held = np.zeros(108)
    held[[0, 3, 20, 50, 51, 70, 100, 107]] = 1
    for prior in ("uniform", held):
        rows = evidence(channel, prior=prior, points=1)["rows"]
        assert 4 <= len(rows) <= 6
        for row in rows:
            assert isinstance(prior, str) or held[row["cell"]] > 0
            assert row["label"] == channel.domain.labels(row["cell"])[0]
            law = channel.matrix[row["cell"]]
            assert row["outputs"] == [[z, law[z]] for z in np.flatnonzero(law >= 1e-4)]


def test_rows_of_wide_laws_are_cut_to_their_likeliest_outputs() -> None:
    [first, *_] = evidence(planar_geometric(grid(30, 30), "0.15", "km"), points=0)["rows"]
    assert len(first["outputs"]) == 300
    shown = [p for _, p in first["outputs"]]
    law = planar_geometric(grid(30, 30), "0.15", "km").matrix[first["cell"]]
    assert sorted(shown) == sorted(law)[-300:]


def test_words_say_where_the_figures_come_from() -> None:
    joint, channel = corners(6), planar_geometric(grid(6, 6), 2, "km")
    private = " ".join(evidence(channel, joint=joint, points=0)["words"])
    public = " ".join(evidence(channel, joint=joint, source="public", points=0)["words"])
    assert "Measured on private rows" in private
    assert "Computed" not in private
    assert "Computed for a public table" in public
    assert "Measured" not in public
    assert "Proved: " in public
    assert "epsilon 2 per km" in public


def test_certificates_are_told_without_their_arrays() -> None:
    base = randomised_response(td.Domain(v=td.Integer(0, 2)), 1)
    held = Certificate("distortion", 1.5, 1.25, "km", {"secret": np.ones(3)})
    made = Channel(base.domain, base.law, certificate=held)
    told = plain(evidence(made, points=0))["certificate"]
    assert told == {"kind": "distortion", "value": 1.5, "bound": 1.25, "unit": "km", "gap": 0.25}
    nothing = Channel(base.domain, base.law, certificate=Certificate("distortion", 1.5, -np.inf, "km"))
    assert plain(evidence(nothing, points=0))["certificate"]["bound"] is None


def test_any_domain_has_evidence() -> None:
    votes = td.Domain(vote=td.Categorical(["no", "yes", "none"]))
    told = plain(evidence(randomised_response(votes, 1), metric=td.Discrete(), points=3))
    assert [c["name"] for c in told["curve"]] == ["randomised response", "least leaking (certified)"]
    losses = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 5.0], [2.0, 2.0, 0.0]])
    assert plain(evidence(randomised_response(votes, 1), metric=losses, points=3))["unit"] is None
    one = td.Domain(v=td.Integer(3, 3))
    assert plain(evidence(Channel.of_matrix([[1.0]], one)))["curve"] == []
    missing = td.Domain(v=td.Integer(0, 3, missing="secret"))
    assert plain(evidence(randomised_response(missing, 1), points=2))["leakage"]["secrets"] == 4
    narrow = Channel.of_matrix([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], votes, td.Domain(w=td.Integer(0, 1)))
    assert plain(evidence(narrow, metric=losses[:, :2]))["curve"] == []
    alone = plain(evidence(randomised_response(votes, 1), joint=[[1, 2, 3]], metric=td.Discrete(), points=2))
    assert alone["leakage"]["bits"] == pytest.approx(0, abs=1e-12)


def test_tables_that_do_not_fit_are_refused() -> None:
    channel = randomised_response(td.Domain(v=td.Integer(0, 2)), 1)
    with pytest.raises(SpecificationError, match="joint"):
        evidence(channel, joint=[[1, 2]])
    with pytest.raises(SpecificationError, match="prior"):
        evidence(channel, prior=[1, 2])
