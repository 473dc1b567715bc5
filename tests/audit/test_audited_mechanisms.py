"""Every mechanism that claims a loss, put to the test: nothing contradicts it, and every broken twin is caught."""

from __future__ import annotations

from typing import Any

import pytest
from audit import answers, clusters
from audit.judge import judged
from audit.subjects import Subject

ALL = [*answers.subjects(), *clusters.subjects()]
QUICK = [s for s in ALL if not s.is_slow]
FEW, MANY = 8_000, 200_000


def named(subjects: list[Subject]) -> list[Any]:
    return [pytest.param(s, id=s.name) for s in subjects]


def twins(subjects: list[Subject]) -> list[Any]:
    return [pytest.param(s, what, id=f"{s.name}: {what}") for s in subjects for what in s.twins]


def check_sound(subject: Subject, draws: int) -> None:
    found = judged(subject.run(), subject.tables, draws)
    assert found.caught is None
    assert found.exact is not None and (found.bound is not None or not draws)


def check_caught(subject: Subject, what: str, draws: int) -> None:
    with subject.twins[what](subject) as ran:
        found = judged(ran, subject.tables, draws, stop_early=True)
    assert found.caught is not None, found


@pytest.mark.parametrize("subject", named(QUICK))
def test_nothing_contradicts_a_sound_mechanism(subject: Subject) -> None:
    check_sound(subject, FEW if subject.draws > FEW else 0)  # others take milliseconds a draw


@pytest.mark.parametrize(("subject", "what"), twins(QUICK))
def test_every_broken_twin_is_caught(subject: Subject, what: str) -> None:
    check_caught(subject, what, min(3 * FEW, subject.draws))


@pytest.mark.slow
@pytest.mark.parametrize("subject", named(ALL))
def test_nothing_contradicts_a_sound_mechanism_in_many_draws(subject: Subject) -> None:
    check_sound(subject, min(MANY, subject.draws))


@pytest.mark.slow
@pytest.mark.parametrize(("subject", "what"), twins([s for s in ALL if s.is_slow]))
def test_every_broken_twin_of_a_slow_mechanism_is_caught(subject: Subject, what: str) -> None:
    check_caught(subject, what, 3 * FEW)


@pytest.mark.parametrize("subject", named([s for s in QUICK if not s.is_loose]))
def test_the_price_is_no_more_than_what_the_worst_neighbours_lose(subject: Subject) -> None:
    """A claim that is far above the truth would hide that a test cannot fail."""
    found = judged(subject.run(), subject.tables, 0)
    assert found.exact == found.claim.amount
