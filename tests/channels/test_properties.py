"""What must hold of every channel: mixing, post-processing, remapping, bounds between measures."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tetraodon as td
from tetraodon import leakage
from tetraodon.channels.channel import Channel
from tetraodon.channels.geometry import plain_domain

ROUNDING = 1e-10


@dataclass(frozen=True)
class Setting:
    """A joint table, two channels, a cost, a classifier and a later channel, all of fitting sizes."""

    joint: np.ndarray
    one: np.ndarray
    two: np.ndarray
    cost: np.ndarray
    after: np.ndarray
    share: float

    @property
    def prior(self) -> np.ndarray:
        return np.asarray(self.joint.sum(axis=0))

    def distortion(self, matrix: np.ndarray) -> float:
        return float(np.einsum("w,wz,wz->", self.prior, matrix, self.cost))


@st.composite
def cases(draw: st.DrawFn) -> Setting:
    """Sparse and even laws, zeros and equal rows included."""
    x, w, z, y = (draw(st.integers(1, 5)) for _ in range(4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.05, 0.3, 1.0, 30.0]))

    def rows(n: int, m: int) -> np.ndarray:
        found = rng.dirichlet(np.full(m, spread), n)
        if draw(st.booleans()):
            found = np.eye(m)[rng.integers(0, m, n)]  # a deterministic one
        return found

    joint = rng.dirichlet(np.full(x * w, spread)).reshape(x, w)
    share = draw(st.floats(0, 1))
    return Setting(joint, rows(w, z), rows(w, z), rng.uniform(0, 9, (w, z)), rows(z, y), share)


examples = settings(deadline=None, max_examples=80)


@examples
@given(cases())
def test_mixing(case: Setting) -> None:
    """Within the budget, no more informative than the mixture of figures, and at least as hard to guess."""
    mix = case.share * case.one + (1 - case.share) * case.two

    def mixed(figure: object) -> float:
        return case.share * figure(case.one) + (1 - case.share) * figure(case.two)  # type: ignore[operator]

    assert case.distortion(mix) == pytest.approx(mixed(case.distortion))
    assert case.distortion(mix) <= max(case.distortion(case.one), case.distortion(case.two)) + ROUNDING
    assert (
        leakage.information(case.joint @ mix)
        <= mixed(lambda k: leakage.information(case.joint @ k)) + ROUNDING
    )
    assert (
        leakage.bayes_error(case.joint @ mix)
        >= mixed(lambda k: leakage.bayes_error(case.joint @ k)) - ROUNDING
    )


@examples
@given(cases())
def test_post_processing_never_raises_leakage(case: Setting) -> None:
    first, later = case.joint @ case.one, case.joint @ case.one @ case.after
    for figure in (leakage.information, leakage.min_entropy_leakage, leakage.vulnerability):
        assert figure(later) <= figure(first) + ROUNDING <= figure(case.joint) + 2 * ROUNDING
    assert leakage.conditional_entropy(later) >= leakage.conditional_entropy(first) - ROUNDING
    assert (
        leakage.min_entropy_capacity(case.one @ case.after)
        <= leakage.min_entropy_capacity(case.one) + ROUNDING
    )
    assert leakage.capacity(case.one @ case.after).value <= leakage.capacity(case.one).bound + ROUNDING


@examples
@given(cases(), st.data())
def test_rules_err_at_least_as_often_as_the_best(case: Setting, data: st.DataObject) -> None:
    """B(X | Y) ≥ B(X | Z) for labels, classifiers and drawn guesses, and the risk of a rule is above both."""
    joint = case.joint @ case.one
    x, z = joint.shape
    best = leakage.bayes_error(joint)
    rule = data.draw(st.lists(st.integers(0, x - 1), min_size=z, max_size=z))
    q = np.random.default_rng(data.draw(st.integers(0, 99))).dirichlet(np.ones(x), z)
    for told in (rule, q):
        assert best <= leakage.bayes_error(joint, told) + ROUNDING
        assert leakage.bayes_error(joint, told) <= leakage.risk(joint, told) + ROUNDING
    assert best <= leakage.bayes_error(joint @ q) + ROUNDING
    assert leakage.risk(joint, leakage.best_rule(joint)) == pytest.approx(best)
    assert best <= 1 - leakage.prior_vulnerability(joint) + ROUNDING
    assert leakage.information_bound(joint, q) <= leakage.information(joint) + ROUNDING
    assert leakage.guess_information(joint, q) <= leakage.information(joint) + ROUNDING


@examples
@given(cases())
def test_bounds_are_obeyed(case: Setting) -> None:
    joint = case.joint @ case.one
    found = leakage.error_bounds(joint)
    assert found.at_least <= found.error + ROUNDING
    assert all(found.error <= bound + ROUNDING for bound in found.at_most.values())
    h = leakage.entropy(joint.sum(axis=1))
    assert 0 <= leakage.information(joint) <= min(h, leakage.entropy(joint.sum(axis=0))) + ROUNDING
    assert leakage.information(joint) == pytest.approx(h - leakage.conditional_entropy(joint), abs=1e-9)
    assert leakage.information(joint) <= leakage.capacity(case.one).bound + ROUNDING
    assert leakage.min_entropy_leakage(joint) <= leakage.min_entropy_capacity(case.one) + ROUNDING


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 10.0]))
def test_channels_themselves(rows: int, columns: int, seed: int, spread: float) -> None:
    """Remapping never raises distortion or leakage, composing never raises leakage or ε, and ε bounds what leaks."""
    n = rows * columns
    rng = np.random.default_rng(seed)
    domain = td.Domain(x=td.Numeric(0, rows, cells=rows), y=td.Numeric(0, columns, cells=columns))
    prior = rng.dirichlet(np.full(n, spread))
    joint = leakage.normalised(rng.dirichlet(np.full(3 * n, spread)).reshape(3, n))
    one, two = (Channel.of_matrix(rng.dirichlet(np.full(n, spread), n), domain) for _ in range(2))
    remapped = one.remap(prior, source="public")
    assert remapped.distortion(prior) <= one.distortion(prior) + ROUNDING
    then = one.then(two)
    full = td.Full()
    for later in (remapped, then):
        assert later.leakage(joint) <= one.leakage(joint) + ROUNDING
        assert later.bayes_error(joint) >= one.bayes_error(joint) - ROUNDING
        assert later.epsilon(full) <= one.epsilon(full) + 1e-9
    loss = float(one.epsilon(full))
    if loss < math.inf:  # I(X; Z) ≤ ε and V(X | Z) ≤ e^ε V(X), in bits
        assert one.leakage(joint) <= loss / math.log(2) + ROUNDING
        assert leakage.min_entropy_leakage(one.pushed(joint)) <= loss / math.log(2) + ROUNDING


def test_mixing_keeps_epsilon() -> None:
    """Two channels that keep ε mix into one that does."""
    rng, domain = np.random.default_rng(3), plain_domain(4)
    for _ in range(20):
        one, two = (rng.dirichlet(np.full(4, 2.0), 4) for _ in range(2))
        most = max(Channel.of_matrix(k, domain).epsilon(td.Full()) for k in (one, two))
        share = rng.random()
        assert Channel.of_matrix(share * one + (1 - share) * two, domain).epsilon(td.Full()) <= most + 1e-9
