"""What a channel does, in plain words. Each sentence is of one kind, begins with its name, and never borrows another's:

* *Proved*: an ε that the channel keeps whoever looks, of a channel that was fitted on nothing private.
* *Certified*: an optimum with a bound that anybody can recheck, with the gap and its unit.
* *Measured*: what the best guess achieves on one table of private rows. It bounds no other attacker and no other prior.
* *Computed*: the same figures for a table of secrets and values that is public, hence a statement about that table and not
  about anybody's rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, log10

import numpy as np

from ..errors import SpecificationError
from ..exact import show
from ..leakage.measures import entropy, information, prior_vulnerability, vulnerability
from ..leakage.tables import TOLERANCE, joint_table
from .certificate import Certificate
from .channel import Asked, Channel
from .priors import SOURCES


def percent(share: float) -> str:
    """A share in per cent; 0 and 100 only where it is so exactly.

    >>> [percent(s) for s in (0, 1e-9, 0.0312, 0.1667, 0.42, 0.99, 0.9999, 1)]
    ['0 %', 'under 0.1 %', '3.1 %', '17 %', '42 %', '99 %', 'over 99.9 %', '100 %']
    """
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    if share < 0.001:
        return "under 0.1 %"
    if share > 0.999:
        return "over 99.9 %"
    digits = 1 if share < 0.0995 or share > 0.9905 else 0
    return f"{100 * share:.{digits}f} %"


def bits(amount: float) -> str:
    """An amount of information; 0 only where it is so to the precision of a double.

    >>> bits(0.6484142), bits(1), bits(2.3e-7), bits(1e-15)
    ('0.65 bits', '1.00 bits', 'under 0.01 bits', '0 bits')
    """
    if amount < 1e-12:
        return "0 bits"
    return "under 0.01 bits" if amount < 0.01 else f"{amount:.2f} bits"


@dataclass(frozen=True)
class Attacker:
    """What one who knows the law of secrets and values, and the channel, makes of one output.

    Attributes:
        secrets: how many there are.
        guessing: how often the likeliest secret is right without the output: the baseline.
        seeing: how often the best guess with the output is right.
        unprotected: how often the best guess with the value itself is right: the ceiling.
        unknown: H(X), bits that tell the secret.
        leakage: I(X; Z), bits of them that the output tells; the baseline is 0.
        ceiling: I(X; W), bits that the value tells.
    """

    secrets: int
    guessing: float
    seeing: float
    unprotected: float
    unknown: float
    leakage: float
    ceiling: float

    def success(self, people: str = "people") -> str:
        """How often the attacker names the right secret.

        >>> Attacker(6, 1 / 6, 0.42, 0.75, 2.585, 0.7, 1.75).success()
        'an attacker who sees the output names the right one of 6 people 42 % of the time; guessing gives 17 %; without protection 75 %'
        """
        if self.secrets == 1:
            return f"there is one of these {people}: nothing to find out"
        return (
            f"an attacker who sees the output names the right one of {self.secrets} {people} "
            f"{percent(self.seeing)} of the time; guessing gives {percent(self.guessing)}; "
            f"without protection {percent(self.unprotected)}"
        )

    def information(self) -> str:
        """How many bits the output tells.

        >>> Attacker(6, 1 / 6, 0.42, 0.75, 2.585, 0.7, 1.75).information()
        'of the 2.58 bits about the secret the output tells 0.70 bits; no output tells 0 bits, the value itself 1.75 bits'
        """
        return (
            f"of the {bits(self.unknown)} about the secret the output tells {bits(self.leakage)}; "
            f"no output tells 0 bits, the value itself {bits(self.ceiling)}"
        )


def attacker(joint: object, outputs: object) -> Attacker:
    """The attacker's figures, between guessing and no protection.

    Args:
        joint: P(secret, value), shape (secrets, values).
        outputs: P(secret, output), shape (secrets, outputs), of the same secrets: ``channel.pushed(joint)``.
    Raises:
        SpecificationError: one is not a joint table, or they speak of different secrets.

    >>> attacker([[0.5, 0], [0, 0.5]], [[0.4, 0.1], [0.1, 0.4]]).seeing
    0.8
    """
    before, after = joint_table(joint), joint_table(outputs, "outputs")
    law = before.sum(axis=1)
    if before.shape[0] != after.shape[0] or (np.abs(law - after.sum(axis=1)) > 10 * TOLERANCE).any():
        raise SpecificationError(
            "outputs: of the same secrets, equally frequent, as joint: channel.pushed(joint)."
        )
    return Attacker(
        int((law > 0).sum()), prior_vulnerability(before), vulnerability(after), vulnerability(before),
        entropy(law), information(after), information(before),
    )  # fmt: skip


def attacker_words(joint: object, outputs: object, people: str = "people") -> str:
    """How often an attacker who sees one output names the right secret, beside guessing and no protection.

    Args and raises: as ``attacker``; ``people`` is what the secrets are, in the plural.

    >>> attacker_words([[0.5, 0], [0, 0.5]], [[0.4, 0.1], [0.1, 0.4]])
    'an attacker who sees the output names the right one of 2 people 80 % of the time; guessing gives 50 %; without protection 100 %'
    """
    return attacker(joint, outputs).success(people)


def leakage_words(joint: object, outputs: object) -> str:
    """How many bits about the secret one output tells, beside none and the value itself.

    >>> leakage_words([[0.5, 0], [0, 0.5]], [[0.4, 0.1], [0.1, 0.4]])
    'of the 1.00 bits about the secret the output tells 0.28 bits; no output tells 0 bits, the value itself 1.00 bits'
    """
    return attacker(joint, outputs).information()


def distortion_words(distance: float, unit: str | None = None) -> str:
    """How far outputs lie from the truth, in its unit; "%" for how many are another value.

    >>> distortion_words(90.004, "m"), distortion_words(25, "%")
    ('an output lies 90 m from the value on average', '25 % of the outputs are another value')
    """
    if unit == "%":
        return f"{distance:.4g} % of the outputs are another value"
    return f"an output lies {distance:.4g}{f' {unit}' if unit else ''} from the value on average"


def proved_words(channel: Channel, epsilon: Fraction | float | None = None) -> str:
    """What is proved of a channel, and why not where nothing is.

    Args:
        epsilon: what it realises (``channel.epsilon(…)``); what it was asked to keep, unless given.

    >>> from .geometry import plain_domain
    >>> lie = Channel.of_matrix([[0.75, 0.25], [0.25, 0.75]], plain_domain(2))
    >>> proved_words(lie, Fraction(11, 10))
    'Proved: of two values that are secret from each other none makes an output more than 3.01 times likelier than the other does (epsilon 1.1), whoever looks.'
    >>> proved_words(lie)
    'Nothing is proved: the channel was asked to keep no epsilon.'
    """
    if channel.is_private:
        return "Nothing is proved: the channel was fitted on private rows, so what comes out depends on all of them."
    asked = channel.asked
    if epsilon is not None:
        if not isinstance(epsilon, Fraction):
            return "Nothing is proved: some output tells two secrets apart for certain."
        asked = Asked(Fraction(_up(epsilon)))
    if asked is None:
        return "Nothing is proved: the channel was asked to keep no epsilon."
    pair = "that are secret from each other" if asked.per is None else f"{_apart(asked.per)} apart"
    return (
        f"Proved: of two values {pair} none makes an output more than {_odds(asked.epsilon)} times likelier than the other "
        f"does ({asked}), whoever looks."
    )


def _apart(per: str) -> str:
    return per if per[:1].isdigit() else f"1 {per}"


def _odds(epsilon: Fraction) -> str:
    """e^ε with three digits, rounded up."""
    if epsilon > 20:
        return f"e^{show(epsilon)}"
    odds = exp(float(epsilon))
    digits = 2 - floor(log10(odds))
    return f"{ceil(odds * 10**digits - 1e-9) / 10**digits:,.{max(digits, 0)}f}"


def _up(epsilon: Fraction) -> str:
    """Rounded up to four decimals, since a smaller number would claim more."""
    return show(Fraction(-((-epsilon * 10_000) // 1), 10_000))


def certified_words(certificate: Certificate | None) -> str:
    """How near the best possible a channel is.

    >>> certified_words(Certificate("distortion", 1.25, 1.24, "km", {}))
    'Certified: 1.25 km, no channel gives less than 1.24 (certified gap 0.01 km).'
    >>> certified_words(None)
    'Nothing is certified: how far the channel is from the best possible is not known.'
    """
    if certificate is None:
        return "Nothing is certified: how far the channel is from the best possible is not known."
    return f"Certified: {certificate}."


def evidence_words(
    channel: Channel,
    joint: object,
    source: str = "private",
    people: str = "people",
    epsilon: Fraction | float | None = None,
    distortion: tuple[float, str | None] | None = None,
) -> list[str]:
    """All that can be said of a channel and an attacker, a sentence for each kind of evidence.

    Args:
        joint: P(secret, value), shape (secrets, values), of the attacker's knowledge.
        source: where the joint table comes from ("public", "disjoint", "released" or "private"): figures of private rows are
            measured, others computed for the table.
        people: what the secrets are, in the plural.
        epsilon: as for ``proved_words``.
        distortion: expected distance and its unit, of the values in ``joint``.
    Raises:
        SpecificationError: an unknown source, or ``joint`` is no joint table of the channel's values.

    >>> from .geometry import plain_domain
    >>> lie = Channel.of_matrix([[0.75, 0.25], [0.25, 0.75]], plain_domain(2))
    >>> for line in evidence_words(lie, [[0.5, 0], [0, 0.5]], "public", distortion=(0.25, None)):
    ...     print(line)
    Nothing is proved: the channel was asked to keep no epsilon.
    Nothing is certified: how far the channel is from the best possible is not known.
    Computed for a public table: an attacker who sees the output names the right one of 2 people 75 % of the time; guessing gives 50 %; without protection 100 %.
    Computed for a public table: of the 1.00 bits about the secret the output tells 0.19 bits; no output tells 0 bits, the value itself 1.00 bits.
    Computed for a public table: an output lies 0.25 from the value on average.
    """
    if source not in SOURCES[1:]:
        raise SpecificationError(f"source: one of {', '.join(SOURCES[1:])}.")
    table = joint_table(joint)
    figures = attacker(table, channel.pushed(table))
    kind = {
        "public": "Computed for a public table",
        "disjoint": "Computed for a table of other persons",
        "released": "Computed for a released table",
        "private": "Measured on private rows, for this attacker and this table alone",
    }[source]
    told = [figures.success(people), figures.information()]
    if distortion is not None:
        told.append(distortion_words(*distortion))
    return [
        proved_words(channel, epsilon),
        certified_words(channel.certificate),
        *(f"{kind}: {line}." for line in told),
    ]
