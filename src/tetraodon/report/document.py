"""What a manifest says, as the page uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..loss import Loss, Unit
from .known import PublicCounts


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
        content: bytes of one published file, as digested.
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
    files: tuple[File, ...]
    content: tuple[str, bytes]


@dataclass(frozen=True)
class PolicyText:
    """The policy in words, with its hash and specification.

    Attributes:
        known: what it states as public beforehand.
    """

    hash: str
    domain: Mapping[str, Mapping[str, Any]]
    headline: str
    protected: tuple[str, ...]
    odds: tuple[str, ...]
    disclosed: tuple[str, ...]
    known: tuple[PublicCounts, ...]


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
class Budget:
    """The account: exact losses, and everything that went out beside it.

    Attributes:
        unit: "epsilon", or "rho" with the ``delta`` at which it is read as (ε, δ).
        spent: the largest joint loss over the policies in force.
        elsewhere: what it would be without the releases of this manifest.
        accounts: one for every policy in force, oldest first.
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

    @property
    def is_tied(self) -> bool:
        """Whether known counts make several records move together under some policy in force."""
        return any(account.is_tied for account in self.accounts)


@dataclass(frozen=True)
class Document:
    """A whole manifest."""

    name: str
    edition: str
    records: int | None
    policy: PolicyText
    budget: Budget
    entries: tuple[Entry, ...]
    versions: tuple[tuple[str, str], ...]

    @property
    def is_tied(self) -> bool:
        """The same under the policy that these releases were priced under."""
        own = [account for account in self.budget.accounts if account.policy == self.policy.hash]
        return any(account.is_tied for account in own)
