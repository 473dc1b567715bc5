"""Plain words: the sentence of the report, honest rounding, and one word for each kind of evidence."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tetraodon as td
from tetraodon.channels import words
from tetraodon.channels.certificate import Certificate
from tetraodon.channels.channel import Asked, Channel
from tetraodon.channels.geometry import plain_domain
from tetraodon.errors import SpecificationError

KINDS = ("proved", "certified", "measured", "computed")


def six() -> tuple[np.ndarray, np.ndarray]:
    """Six equally frequent people: 75 % named from the value, 42 % from the output."""
    value = np.full((6, 6), 0.25 / 30)
    np.fill_diagonal(value, 0.75 / 6)
    output = np.full((6, 6), 0.58 / 30)
    np.fill_diagonal(output, 0.42 / 6)
    return value, output


def test_the_sentence_of_the_report() -> None:
    assert words.attacker_words(*six()) == (
        "an attacker who sees the output names the right one of 6 people 42 % of the time; guessing gives 17 %; "
        "without protection 75 %"
    )


def test_figures_lie_between_guessing_and_no_protection() -> None:
    value, output = six()
    told = words.attacker(value, output)
    assert told.guessing <= told.seeing <= told.unprotected
    assert 0 <= told.leakage <= told.ceiling <= told.unknown
    assert told.leakage == td.leakage.information(output) and told.ceiling == td.leakage.information(value)
    assert told.seeing == pytest.approx(1 - td.leakage.bayes_error(output))


def test_secrets_that_never_occur_are_not_counted() -> None:
    table = [[0.5, 0, 0], [0, 0, 0], [0, 0.25, 0.25]]
    assert "one of 2 users" in words.attacker_words(table, table, "users")
    assert words.attacker_words([[0.5, 0.5]], [[1.0]]) == "there is one of these people: nothing to find out"


@pytest.mark.parametrize("share", [0.0, 1e-30, 0.0009, 0.5, 0.9991, 1 - 1e-16, 1.0])
def test_shares_never_claim_certainty_that_is_not_there(share: float) -> None:
    told = words.percent(share)
    assert (told == "0 %") == (share == 0) and (told == "100 %") == (share == 1)
    assert told.startswith("under") == (0 < share < 0.001) and told.startswith("over") == (0.999 < share < 1)


def channel(source: str = "public", **more: Any) -> Channel:
    made = Channel.of_matrix([[0.75, 0.25], [0.25, 0.75]], plain_domain(2), source=source)
    return Channel(made.domain, made.law, source=source, **more)


JOINT = np.diag([0.5, 0.5])


@pytest.mark.parametrize("source", ["public", "disjoint", "released", "private"])
@pytest.mark.parametrize("fitted", ["none", "public", "private"])
@pytest.mark.parametrize("certificate", [None, Certificate("information", 0.2, 0.19, "bits")])
def test_no_sentence_borrows_the_word_of_another(
    source: str, fitted: str, certificate: Certificate | None
) -> None:
    made = channel(fitted, asked=Asked(Fraction(11, 10)), certificate=certificate)
    told = words.evidence_words(made, JOINT, source, epsilon=made.epsilon(td.Full()), distortion=(0.25, "m"))
    for line in told:
        assert sum(kind in line.lower() for kind in KINDS) == 1, line
        assert line.endswith(".")
    assert told[0].startswith("Proved: of two values") == (fitted != "private")
    assert told[1].startswith("Certified:") == (certificate is not None)
    assert all(line.startswith("Measured") == (source == "private") for line in told[2:])
    assert all(line.startswith(("Measured", "Computed")) for line in told[2:])
    assert "0.25 m" in told[-1] and "75 %" in told[2] and "0.19 bits" in told[3]


def test_epsilon_is_rounded_up_and_infinity_is_said() -> None:
    assert "3.01 times likelier than the other does (epsilon 1.0987)" in words.proved_words(
        channel(), channel().epsilon(td.Full())
    )
    assert words.proved_words(channel(), float("inf")).startswith("Nothing is proved")
    assert "epsilon 1.1 per km" in words.proved_words(channel(asked=Asked(Fraction(11, 10), "km")))
    assert words.proved_words(channel("private"), Fraction(1)).startswith("Nothing is proved")


@pytest.mark.parametrize(
    "ask",
    [
        lambda: words.attacker(JOINT, [[0.9, 0], [0, 0.1]]),
        lambda: words.attacker(JOINT, [[1.0]]),
        lambda: words.attacker(JOINT, np.eye(2)),
        lambda: words.evidence_words(channel(), JOINT, "secret"),
        lambda: words.evidence_words(channel(), [[0.5, 0.5, 0]]),
    ],
)
def test_mistakes_are_named(ask: Any) -> None:
    with pytest.raises(SpecificationError):
        ask()
