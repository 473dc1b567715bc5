"""Every kind of channel, put to the test: nothing contradicts it, and every broken twin is caught."""

from __future__ import annotations

import pytest
from audit import rows
from audit.subjects import Subject
from audit.test_audited_mechanisms import FEW, MANY, check_caught, check_sound, named, twins

ALL = rows.subjects()


@pytest.mark.parametrize("subject", named(ALL))
def test_nothing_contradicts_a_sound_channel(subject: Subject) -> None:
    check_sound(subject, FEW)


@pytest.mark.parametrize(("subject", "what"), twins(ALL))
def test_every_broken_twin_is_caught(subject: Subject, what: str) -> None:
    check_caught(subject, what, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("subject", named(ALL))
def test_nothing_contradicts_a_sound_channel_in_many_draws(subject: Subject) -> None:
    check_sound(subject, min(MANY, subject.draws))
