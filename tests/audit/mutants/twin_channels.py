"""Broken channels, and broken ways of sending rows through sound ones."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from audit import laws
from audit.judge import Ran

import tetraodon as td
from tetraodon.channels.apply import Lasting, Target, applied
from tetraodon.channels.permanent import Permanent
from tetraodon.loss import Loss
from tetraodon.rows.strategy import priced
from tetraodon.sensitivity import Sensitivity


def sometimes_as_it_is(channel: Any) -> Any:
    """Every third row leaves unchanged."""
    size = channel.domain.size
    return td.Channel.of_matrix((2 * channel.matrix + np.eye(size)) / 3, channel.domain, name=channel.name)


def with_a_zero(channel: Any) -> Any:
    """The least entry of the first row is 0, where a neighbour's is not."""
    told = np.array(channel.matrix)
    told[0, told[0].argmin()] = 0.0
    return td.Channel.of_matrix(told / told.sum(axis=1, keepdims=True), channel.domain, name=channel.name)


def a_thousandth(channel: Any) -> Any:
    """One entry is a thousandth too large: what a solver's tolerance leaves, which no draw would ever show."""
    told = np.array(channel.matrix)
    told[0, 0] *= 1.001
    return td.Channel.of_matrix(told / told.sum(axis=1, keepdims=True), channel.domain, name=channel.name)


def believed(query: Any, policy: Any, claim: Loss) -> Any:
    """A strategy for a given channel whose label is believed."""
    channel = query.channel[0]
    strategy = priced(query, policy, Loss("epsilon", Fraction(100)), "measured")
    from dataclasses import replace

    parts = tuple(replace(p, channel=channel) for p in strategy.parts)
    return replace(strategy, parts=parts, loss=claim, cost=Sensitivity(claim.amount, None, "its label"))


def private_prior(domain: Any, claim: Loss) -> Ran:
    """The best channel for the table's own law, called proved: of a table of one record it is the record itself."""

    def channel(table: Any) -> Any:
        prior = np.bincount(np.array(table), minlength=domain.size).astype(float)
        return td.channels.least_distortion(
            prior, secrets=td.Within(1), epsilon=claim.amount, domain=domain, source="public"
        )

    def loss(a: Any, b: Any) -> Fraction | float:
        one, two = (laws.row(channel(t), t[0]) for t in (a, b))
        return laws.as_loss(laws.worst(one, two), claim.amount)

    def drawn(a: Any, b: Any, draws: int) -> tuple[Any, Any]:
        one, two = (channel(t).sample(np.full(draws, t[0])).astype(float)[:, None] for t in (a, b))
        return one, two

    return Ran(claim, loss, drawn)


def looking(strategy: Any, of: Callable[[Any], Ran]) -> Ran:
    """What is done to an output looks at the value again: an output next to it is put right."""
    ran = of(strategy)

    def drawn(a: Any, b: Any, draws: int) -> tuple[Any, Any]:
        outputs = ran.drawn(a, b, draws)
        domain = strategy.policy.domain
        told = []
        for (cell,), found in zip((a, b), outputs, strict=True):
            value = laws.cell_of(domain, cell, domain.select("v"))
            told.append(np.where(np.abs(found - value) <= 1, value, found))
        return told[0], told[1]

    return Ran(ran.claim, lambda a, b: None, drawn)


def remembered(channel: Any, key: str, claim: Loss, stores: int = 1) -> Ran:
    """Permanent answers of persons of two rows each, through the package's own store.

    Args:
        key: "id" is what the package does; "value" remembers an answer for each value of an id, "row" for each row.
        stores: how many answers are drawn for one epoch, by stores that do not know of each other.
    """
    domain = channel.domain

    def law(table: Any) -> dict[tuple[int, ...], Fraction]:
        rows = [laws.row(channel, c) for c in table]
        found: dict[tuple[int, ...], Fraction] = {}
        if key == "id" or (key == "value" and table[0] == table[1]):
            for z in range(domain.size):
                # Which of the two rows is asked is drawn by lot; of two equal ones it does not matter.
                found[(z, z)] = (rows[0][z] + rows[1][z]) / 2
        else:
            for z in range(domain.size):
                for w in range(domain.size):
                    found[(z, w)] = rows[0][z] * rows[1][w]
        return found

    def loss(a: Any, b: Any) -> Fraction | float:
        one, two = law(a), law(b)
        every = sorted({*one, *two})
        ratio = laws.worst([one.get(o, Fraction(0)) for o in every], [two.get(o, Fraction(0)) for o in every])
        if stores > 1:
            ratio = None if ratio is None else _twice(one, two)
        return laws.as_loss(ratio, claim.amount)

    def drawn(a: Any, b: Any, draws: int) -> tuple[Any, Any]:
        one, two = (
            np.concatenate([_answers(channel, key, t, draws) for _ in range(stores)], axis=1) for t in (a, b)
        )
        return one, two

    return Ran(claim, loss, drawn)


def _twice(one: Any, two: Any) -> Fraction:
    """Two independent choices and answers for the same rows: ratios multiply."""
    ratio = max(max(one[o], two[o]) / min(one[o], two[o]) for o in one)
    return Fraction(ratio) ** 2


def _answers(channel: Any, key: str, table: Any, draws: int) -> Any:
    """Shape (draws, 2): the answers of as many persons, each of whom has these two rows."""
    person = np.repeat(np.arange(draws), 2)
    cells = np.tile(np.array(table), draws)
    values = np.array([channel.domain["v"].low + c for c in range(channel.domain.size)])[cells]
    idents = {"id": person, "value": person * 1000 + cells, "row": np.arange(2 * draws)}[key]
    source = pa.table({"v": values, "who": idents, "place": np.arange(2 * draws)})
    with tempfile.TemporaryDirectory() as folder, Permanent.open(Path(folder) / "answers") as store:
        made = applied(
            td.Table(source, channel.domain),
            [Target(channel, ("v",))],
            ["place"],
            Lasting(store, "who", "2025"),
        )
    places = made["place"].to_numpy()
    found = np.empty(2 * draws)
    found[places] = made["v"].combine_chunks().indices.to_numpy()
    return found.reshape(draws, 2)
