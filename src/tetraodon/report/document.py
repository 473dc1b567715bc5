"""What a manifest says, as the page uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..loss import Loss, Unit
from ..presentation import Presentation
from .choices import Traded
from .known import PublicCounts
from .microdata_document import Microdata as Microdata


@dataclass(frozen=True)
class Noise:
    """Rows of one kind in every group, with their exact noise scale (σ² for Gaussian noise)."""

    rows: str
    scale: Fraction
    number: int


@dataclass(frozen=True)
class Table:
    """One of several tables of a release.

    Attributes:
        attributes: its columns beside the numbers.
        rows: its number of rows.
        axis: the attribute along which it reads, if any has an order.
        expected_error, half_width: of one of its numbers.
    """

    attributes: tuple[str, ...]
    rows: int
    axis: str | None
    expected_error: float | None
    half_width: float | None


@dataclass(frozen=True)
class Considered:
    """One mechanism that was priced, with its error at the loss of the release and along a grid of losses."""

    name: str
    kind: str
    expected_error: float | None
    half_width: float | None
    losses: tuple[float, ...]
    half_widths: tuple[float | None, ...]


@dataclass(frozen=True)
class File:
    """A published file: format, name beside the manifest, digest."""

    form: str
    path: str
    sha256: str


@dataclass(frozen=True)
class AuditText:
    """What was found when a release was put to the test, on made-up tables.

    Attributes:
        figures: what was tried and what it showed.
        verdict: in plain words.
    """

    figures: tuple[str, ...]
    verdict: str


@dataclass(frozen=True)
class Entry:
    """One release as its manifest tells it (keys as in the manifest).

    Attributes:
        word, query: which query, and its whole specification.
        loss: exact cost, in ε or ρ.
        witness: two values of one record that attain the cost; None if nothing moves, or if none is known to.
        settled: "all", "some" or "none" of what is exact is so only because of the policy's public counts.
        mechanism: name of the one that ran.
        considered: every mechanism that was priced, best first.
        chosen: index of the one that ran among them.
        tables: the tables that the file holds one below the other (``Marginals``); none where it is one table.
        presentation: how the numbers are shown, and ``suppressed``: how many are not.
        content: format and bytes of one published file, as digested.
        quantiles: the same of the quantiles beside it, with their number of rows; None where there are none.
        traded: other policies with their ± along a grid of losses, where the manifest has them.
        step: of the weights of records, which is also that of the noise; None where every record counts once.
        audit: what was found when it was put to the test, if it was.
    """

    name: str
    word: str
    query: Mapping[str, Any]
    guarantee: str
    loss: Loss
    rule: str
    witness: tuple[Mapping[str, str], Mapping[str, str]] | None
    noise: tuple[Noise, ...]
    expected_error: float | None
    half_width: float | None
    coverage: float
    workload: str
    unit: str
    rows: int
    attributes: tuple[str, ...]
    axis: str | None
    tables: tuple[Table, ...]
    disclosed: tuple[str, ...]
    settled: str
    mechanism: str
    considered: tuple[Considered, ...]
    chosen: int
    ledger_row: int
    presentation: Presentation
    suppressed: int
    files: tuple[File, ...]
    content: tuple[str, bytes]
    quantiles: tuple[int, tuple[str, bytes]] | None
    traded: Traded | None = None
    step: Fraction | None = None
    audit: AuditText | None = None

    @property
    def shown(self) -> float:
        """Coverage of the published intervals; ``coverage`` is that of every ± that is stated."""
        return float(self.presentation.interval)

    def called(self, column: str) -> str:
        """A column's name as it is shown."""
        return self.presentation.named(column)


@dataclass(frozen=True)
class Attack:
    """What one who knows the law of secrets and values makes of one published row.

    Attributes:
        secret: what is looked for, in words; ``secrets`` is how many there are.
        bits, prior_bits, plain_bits: what the row tells, what there is to tell, and what the true value tells.
        bayes_error, guessing_error, plain_error: how often the best guess is wrong with the row, without it, and with the value.
    """

    secret: str
    bits: float
    prior_bits: float
    plain_bits: float
    bayes_error: float
    guessing_error: float
    plain_error: float
    secrets: int


@dataclass(frozen=True)
class Optimum:
    """A value beside what no channel beats, if anything is known of that, with their unit."""

    kind: str
    value: float
    bound: float | None
    unit: str
    gap: float | None


@dataclass(frozen=True)
class Line:
    """Leakage in bits along expected distances, of one kind of channel; ``bound``: below it no channel comes."""

    name: str
    distortion: tuple[float, ...]
    leakage: tuple[float, ...]
    bound: tuple[float, ...] | None


@dataclass(frozen=True)
class Origin:
    """Where the records of one cell may be reported: output cells with their probabilities."""

    cell: int
    label: str
    outputs: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class ChannelEvidence:
    """What is published of a channel.

    Attributes:
        prior: whose values the expected distance is of, in words.
        distortion: expected distance, in the unit of the channel.
        used_outputs: how many cells come out at all.
        words: sentences, each beginning with its kind.
    """

    prior: str
    distortion: float | None
    used_outputs: int
    attack: Attack | None
    optimum: Optimum | None
    words: tuple[str, ...]
    curve: tuple[Line, ...]
    rows: tuple[Origin, ...]


@dataclass(frozen=True)
class ChannelText:
    """One channel of a row release (keys as in the manifest).

    Attributes:
        columns: the published columns that it filled.
        asked: ε, and for how much of a distance; None where it was asked for none.
        realised: the ε it keeps.
        source: where what shaped it came from.
        is_private: whether it is a function of the rows that it was applied to.
        cells: how many values its attributes have together.
        file: the saved channel, if it was published.
    """

    attributes: tuple[str, ...]
    columns: tuple[str, ...]
    kind: str
    name: str
    asked: tuple[Fraction, str | None] | None
    realised: float | None
    source: str
    is_private: bool
    cells: int
    shape: tuple[int, int] | None
    unit: str
    file: str | None
    evidence: ChannelEvidence | None


@dataclass(frozen=True)
class RowRelease:
    """Rows that went out with values replaced, as their manifest tells it (keys as there).

    Attributes:
        rows, attributes: number of published rows, and their columns.
        kept: attributes that left as they are.
        per_person: what the charge is made of, in words; None where nothing is charged.
        permanent: the column of persons and the epoch, where every person has one answer; else None.
        channels: one for each attribute, or place of several attributes, that was replaced.
        audit: what was found when it was put to the test, if it was.
    """

    name: str
    guarantee: str
    loss: Loss
    rule: str
    witness: tuple[Mapping[str, str], Mapping[str, str]] | None
    mechanism: str
    rows: int
    attributes: tuple[str, ...]
    kept: tuple[str, ...]
    disclosed: tuple[str, ...]
    per_person: str | None
    permanent: tuple[str, str] | None
    ledger_row: int
    files: tuple[File, ...]
    content: tuple[str, bytes]
    channels: tuple[ChannelText, ...]
    audit: AuditText | None = None

    @property
    def is_measured(self) -> bool:
        """Whether no loss is proved of it."""
        return self.guarantee != "proved"

    @property
    def goes_out_again(self) -> bool:
        """Whether its permanent answers were charged before."""
        return not self.is_measured and self.loss.is_zero


@dataclass(frozen=True)
class PolicyText:
    """The policy in words, with its hash and specification.

    Attributes:
        known: what it states as public beforehand.
        people: who is protected, with which of their rows.
        max_rows: rows of a person that are protected together.
        also: what else of a person is a secret, in few words.
        step: of the weights of records; None where every record counts once.
    """

    hash: str
    domain: Mapping[str, Mapping[str, Any]]
    headline: str
    protected: tuple[str, ...]
    odds: tuple[str, ...]
    disclosed: tuple[str, ...]
    known: tuple[PublicCounts, ...]
    people: tuple[str, ...]
    max_rows: int
    also: tuple[str, ...]
    step: Fraction | None = None


@dataclass(frozen=True)
class Account:
    """What all charges lose together under one policy in force.

    Attributes:
        policy: its hash.
        row: the ledger row that brought it.
        is_union: whether known counts of other policies were joined to it.
        is_tied: whether its known counts make several records move together.
        largest: the joint loss.
        by_secret: the same for the changes of each attribute; "any" for changes of several at once.
    """

    policy: str
    row: int
    is_union: bool
    is_tied: bool
    largest: Fraction
    by_secret: tuple[tuple[str, Fraction], ...]


@dataclass(frozen=True)
class Editions:
    """How many editions the account holds, and what whoever is in ``this`` one, or in all of them ``together``, may have lost."""

    number: int
    this: Fraction
    together: Fraction


@dataclass(frozen=True)
class Budget:
    """The account: exact losses, and everything that went out beside it.

    Attributes:
        unit: "epsilon", or "rho" with the ``delta`` at which it is read as (ε, δ).
        spent: the largest joint loss over the policies in force; of this edition alone, where the budget renews.
        elsewhere: what it would be without the releases of this manifest.
        accounts: one for every policy in force, oldest first.
        renews: whether every edition has the whole budget to itself.
        raises: when the total was raised and why, a sentence each.
    """

    unit: Unit
    delta: Fraction | None
    total: Fraction
    spent: Fraction
    elsewhere: Fraction
    remaining: Fraction
    accounts: tuple[Account, ...]
    ledger: str | None
    head: str
    outside: tuple[str, ...]
    renews: bool
    editions: Editions
    raises: tuple[str, ...]

    @property
    def is_tied(self) -> bool:
        """Whether known counts make several records move together under some policy in force."""
        return any(account.is_tied for account in self.accounts)


@dataclass(frozen=True)
class Document:
    """A whole manifest; ``entries`` in their order, answers and rows among each other."""

    name: str
    edition: str
    records: int | None
    policy: PolicyText
    budget: Budget
    entries: tuple[Entry | RowRelease | Microdata, ...]
    versions: tuple[tuple[str, str], ...]

    @property
    def answers(self) -> tuple[Entry, ...]:
        """Releases of answers."""
        return tuple(entry for entry in self.entries if isinstance(entry, Entry))

    @property
    def rows(self) -> tuple[RowRelease, ...]:
        """Releases of rows."""
        return tuple(entry for entry in self.entries if isinstance(entry, RowRelease))

    @property
    def microdata(self) -> tuple[Microdata, ...]:
        """Releases of whole rows."""
        return tuple(entry for entry in self.entries if isinstance(entry, Microdata))

    @property
    def measured(self) -> tuple[RowRelease | Microdata, ...]:
        """Those of which no loss is proved."""
        return tuple(e for e in self.entries if isinstance(e, RowRelease | Microdata) and e.is_measured)

    @property
    def is_tied(self) -> bool:
        """The same under the policy that these releases were priced under."""
        own = [account for account in self.budget.accounts if account.policy == self.policy.hash]
        return any(account.is_tied for account in own)
