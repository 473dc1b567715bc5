"""What is audited, and the broken twins that an audit must catch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from audit.judge import Ran, answered, neighbours

from tetraodon.loss import Loss
from tetraodon.pricing import named

Twin = Callable[["Subject"], Any]
"""Gives a context in which a broken mechanism can be run."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A mechanism under a policy, on a domain so small that every neighbour can be listed.

    Attributes:
        name: of the row in docs/assurance.md.
        covers: names of mechanisms, or kinds of channels, of the package that it stands for.
        rule: what the claim rests on.
        policy: whose neighbours are listed, by the oracle.
        run: prices it and gives what is put to the test.
        twins: broken ones, by name.
        pairs: neighbouring tables, if they are no histograms.
        draws: of each table, at most; what takes milliseconds a draw has fewer.
        is_slow: whether pricing it takes more than a few seconds.
        is_loose: whether the claim is a bound that these neighbours do not attain.
        exact: how its exact loss is worked out, in words.
    """

    name: str
    covers: tuple[str, ...]
    rule: str
    policy: Any
    run: Callable[[], Ran]
    twins: dict[str, Twin] = field(default_factory=dict)
    pairs: Callable[[], Sequence[tuple[Any, Any]]] | None = None
    draws: int = 10**7
    is_slow: bool = False
    is_loose: bool = False
    exact: str = "all neighbours, rational arithmetic"

    @cached_property
    def tables(self) -> list[tuple[Any, Any]]:
        """All neighbouring tables."""
        return list(neighbours(self.policy) if self.pairs is None else self.pairs())


def price(query: Any, policy: Any, mechanism: Any, loss: Loss) -> Any:
    """A priced way, without what is remembered of other prices."""
    return named(mechanism, query, policy, loss)


def asked(query: Any, policy: Any, mechanism: Any, loss: Loss) -> Callable[[], Ran]:
    """Runs a way of answering, which is priced once."""
    once = cache(lambda: price(query, policy, mechanism, loss))
    return lambda: answered(once(), policy)


def patched(patch: Callable[[], Any]) -> Twin:
    """A twin made by breaking the package while it is run."""

    @contextmanager
    def twin(subject: Subject) -> Iterator[Ran]:
        with patch():
            yield subject.run()

    return twin


def mispriced(patch: Callable[[], Any], query: Any, policy: Any, mechanism: Any, loss: Loss) -> Twin:
    """A twin made by breaking the package while it is priced."""

    @contextmanager
    def twin(_: Subject) -> Iterator[Ran]:
        with patch():
            strategy = price(query, policy, mechanism, loss)
        yield answered(strategy, policy)

    return twin


def instead(run: Callable[[], Ran]) -> Twin:
    """A twin that is run in the subject's place."""

    @contextmanager
    def twin(_: Subject) -> Iterator[Ran]:
        yield run()

    return twin


def priced_under(query: Any, other: Any, policy: Any, mechanism: Any, loss: Loss) -> Twin:
    """A twin that is priced under another policy than the one that it is used for."""
    return instead(lambda: answered(price(query, other, mechanism, loss), policy))
