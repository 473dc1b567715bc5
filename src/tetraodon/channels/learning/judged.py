"""What judging a channel found, as rows and in plain words. Private unless the rows judged are public."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ...errors import Unsupported
from ...terminal import text_of

if TYPE_CHECKING:
    import pandas

ITSELF = "this channel"
KINDS = {
    "exact": "computed exactly for these rows",
    "simulated": "for these rows, by simulation with the posterior in closed form",
    "bound": "a trained attacker: a lower bound on leakage and an upper one on the Bayes error",
    "in-sample": "frequencies scored on themselves",
    "held-out": "frequencies scored on other rows",
    "estimate": "an estimate that may exceed the truth",
}
PRIVATE = (
    "These figures come from the rows and are private unless those are public. They are measured: they hold for these attackers "
    "and these rows, and bound no other attacker."
)

Ends = tuple[float, float]


@dataclass(frozen=True)
class Finding:
    """One attacker on one channel.

    Attributes:
        channel: whose outputs he sees.
        attacker: who he is; "posterior" knows the law of the rows and the channel.
        kind: what the figures are, a key of ``KINDS``.
        leakage, leakage_interval: bits; None for the interval where nothing is left to chance.
        error, error_interval: how often he names a wrong secret; None where he names none.
        note: what else is to be known of them.
    """

    channel: str
    attacker: str
    kind: str
    leakage: float
    leakage_interval: Ends | None
    error: float | None
    error_interval: Ends | None
    note: str = ""


@dataclass(frozen=True)
class Judged:
    """What attackers found out from a channel's fresh outputs, and from others of the same distortion.

    Attributes:
        rows: one for each attacker and channel.
        secrets: how many there are.
        guess: how often the likeliest secret is right without any output.
        entropy: H(X), bits that there are to find out.
        distortion: expected, in the values' unit, and ``distortion_interval``: None where it was computed.
        metric: of the distortion.
        learnt, scored: rows that attackers learned from, and rows that they were scored on.
        level: of the two-sided intervals.
        called: what the secrets are, in the plural.
        skipped: attackers that could not be tried, and why.
    """

    rows: tuple[Finding, ...]
    secrets: int
    guess: float
    entropy: float
    distortion: float
    distortion_interval: Ends | None
    metric: str
    learnt: int
    scored: int
    level: float
    called: str = "secrets"
    skipped: tuple[str, ...] = ()

    def of(self, channel: str = ITSELF, kind: str | None = None) -> tuple[Finding, ...]:
        """The rows of one channel, of one kind if it is named."""
        return tuple(row for row in self.rows if row.channel == channel and kind in (None, row.kind))

    @property
    def channels(self) -> tuple[str, ...]:
        """What was judged, in order."""
        return tuple(dict.fromkeys(row.channel for row in self.rows))

    def strongest(self, channel: str = ITSELF) -> Finding:
        """The trained attacker who names a wrong secret least often; as the best of several, chance flatters him."""
        return min(self.of(channel, "bound"), key=lambda row: 1.0 if row.error is None else row.error)

    def most_shown(self, channel: str = ITSELF) -> Finding:
        """The trained attacker whose lower bound on the leakage is largest."""
        return max(self.of(channel, "bound"), key=lambda row: row.leakage)

    def words(self) -> str:
        """In plain English, a paragraph for each channel."""
        told = [self._itself()]
        others = [self._other(name) for name in self.channels if name != ITSELF]
        if others:
            told.append(f"At the same expected distance of {self.distortion:.4g}:")
            told += others
        told += [f"Not tried: {why}." for why in self.skipped]
        told.append(PRIVATE)
        return text_of(told)

    def _itself(self) -> str:
        best, most = self.strongest(), self.most_shown()
        count = len(self.of(ITSELF, "bound"))
        told = [
            f"An attacker who sees the output names the right one of {self.secrets} {self.called} {_right(best)} of the time"
            f"{_right_ends(best, self.level)}; guessing gives {percent(self.guess)}. He is the best of {count}: {best.attacker}.",
            f"Attackers show {max(most.leakage, 0.0):.3f} of {self.entropy:.3f} bits{_ends(most, self.level)}: {most.attacker}. Outputs tell "
            f"no less than the lower end, but for chance.",
        ]
        for row in self.of(ITSELF, "exact"):
            told.append(
                f"Computed for these rows: outputs tell {row.leakage:.3f} bits, and whoever knows the rows and the channel names the "
                f"right one {_right(row)} of the time."
            )
        told.append(f"Attackers learned from {self.learnt:,} rows and were scored on {self.scored:,} others.")
        return " ".join(told)

    def _other(self, name: str) -> str:
        told = []
        for row in self.of(name):
            if row.attacker == "posterior":
                told.append(
                    f"{name} tells {row.leakage:.3f} bits, and the right one is named {_right(row)} of the time, by whoever knows the "
                    f"rows and it ({row.note})"
                )
        if self.of(name, "bound"):
            best, most = self.strongest(name), self.most_shown(name)
            told.append(
                f"trained attackers on {name} are right {_right(best)} of the time{_right_ends(best, self.level)} and show "
                f"{max(most.leakage, 0.0):.3f} bits{_ends(most, self.level)}"
            )
        return f"- {'; '.join(told)}."

    def __str__(self) -> str:
        return self.words()

    def to_rows(self) -> list[dict[str, Any]]:
        """The rows as plain values, intervals as two columns each."""
        told = []
        for row in self.rows:
            bits, error = row.leakage_interval or (None, None), row.error_interval or (None, None)
            figures = {
                "channel": row.channel, "attacker": row.attacker, "kind": row.kind,
                "leakage": row.leakage, "leakage_low": bits[0], "leakage_high": bits[1],
                "error": row.error, "error_low": error[0], "error_high": error[1],
                "right": None if row.error is None else 1 - row.error, "note": row.note,
            }  # fmt: skip
            told.append(figures)
        return told

    def to_frame(self) -> pandas.DataFrame:
        """``to_rows()`` as a pandas frame.

        Raises:
            Unsupported: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise Unsupported("to_frame: needs pandas; install it or use to_rows().") from None
        return pd.DataFrame(self.to_rows())

    def to_spec(self) -> dict[str, Any]:
        """As plain values. Private."""
        return asdict(self) | {"rows": self.to_rows()}


def percent(share: float) -> str:
    """Three significant digits.

    >>> percent(0.71), percent(0.0125)
    ('71 %', '1.25 %')
    """
    return f"{100 * share:.3g} %"


def _right(row: Finding) -> str:
    return percent(1 - (row.error or 0.0))


def _right_ends(row: Finding, level: float) -> str:
    if row.error_interval is None:
        return ""
    low, high = row.error_interval
    return f" ({100 * level:g} % interval {percent(1 - high)} to {percent(1 - low)})"


def _ends(row: Finding, level: float) -> str:
    if row.leakage_interval is None:
        return ""
    low, high = row.leakage_interval
    return f" ({100 * level:g} % interval {max(low, 0.0):.3f} to {max(high, 0.0):.3f})"
