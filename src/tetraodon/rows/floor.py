"""A floor under a learned channel: every row first goes through a channel with a proved ε, and the learned one is trained on, and
applied to, only what came out of it.

That order is what makes it sound. What comes out of the first channel for all rows is ε-private along the policy's edges; all
that follows looks at nothing else but an attribute that no edge changes, so it is post-processing, however much every row's
output depends on every other's. The other order proves nothing: a channel after one that was learned from private rows bounds
what *one* row's value does to its own output, while through training it changes the outputs of all rows at once
(docs/privacy.md, with a counter-example).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..channels.apply import CHUNK, Second, Target, applied
from ..channels.channel import Channel
from ..channels.outputs import narrow
from ..errors import PolicyError, SpecificationError
from ..exact import show
from ..loss import Loss
from ..policy import Policy
from ..sensitivity import stacked
from .declared import Declared
from .losses import Part, keeps, kept_terms
from .query import Rows

if TYPE_CHECKING:
    import pyarrow

    from ..axes import Ints
    from ..table import Table
    from .strategy import RowStrategy

ROWS = 1 << 20
LEARNED = (
    "rows.channel: it is learned from these very rows, so that what comes out for each of them depends on all and no epsilon is "
    "proved whatever its matrix says; ask for guarantee = 'measured' without epsilon, or state a floor, through which every row goes "
    "first."
)


def check_learned(query: Rows, policy: Policy, loss: Loss, guarantee: str) -> None:
    """Refuse a promise that a learned channel cannot keep.

    Raises:
        SpecificationError: an ε for a channel that is learned from the rows, or a floor without one.
        PolicyError: a floor beside a secret that is read as it is.
    """
    channel = query.channel
    if not isinstance(channel, Declared) or channel.kind != "learned":
        return
    if channel.floor is None:
        if not loss.is_zero:
            raise SpecificationError(LEARNED)
        return
    if guarantee == "measured":
        raise SpecificationError(
            "rows.channel.floor: is there to prove an epsilon; leave guarantee out and state epsilon, or leave the floor out."
        )
    for name in trained_on(query):
        policy.domain.attribute(name, "channel.secret")
        for term in kept_terms([name], policy):
            if stacked([term], policy.neighbourhood).value:
                raise PolicyError(
                    f"rows.channel.secret: {name!r} is protected by this policy, and training reads it as it is, so that no floor "
                    "under the values proves anything of it. Name an attribute that is no secret, or leave the floor out and ask for "
                    "guarantee = 'measured'."
                )


def trained_on(query: Rows, after_floor: bool = True) -> list[str]:
    """The attribute whose values training reads as they are, beside what a floor let out of the others; of a channel that is
    fitted on the rows themselves too, unless ``after_floor``."""
    channel = query.channel
    if not isinstance(channel, Declared) or not channel.has_joint or (after_floor and channel.floor is None):
        return []
    secret = channel.told["secret"]
    return [secret] if isinstance(secret, str) else []


def first_of(part: Part) -> Channel:
    """The channel of a part's floor.

    Raises:
        SpecificationError: it loses more than what is left for it.
    """
    assert part.declared is not None
    made = part.declared.first(part.domain, part.epsilon, part.secrets)
    if part.epsilon is not None and not keeps(made, part.secrets, part.epsilon):
        found = made.epsilon(part.secrets)
        lost = (
            f"up to {float(found) * (1 + 1e-12):.12g}"
            if isinstance(found, Fraction)
            else "more than any number"
        )
        raise SpecificationError(
            f"rows.channel.floor: loses {lost} along an edge of this policy, where epsilon leaves {show(part.epsilon)} for each "
            "draw; state more epsilon, or less for the floor."
        )
    return made


def drawn_after(table: Table, strategy: RowStrategy) -> tuple[RowStrategy, pyarrow.Table, dict[int, Any]]:
    """Rows through the floors, then through the channels learned from the outcome.

    Returns:
        The strategy with both steps in one channel for each part, the rows, and the joint counts of the secret and of what the
        floors let out, by the part's place.
    """
    secrets = trained_on(strategy.query)
    made: list[Part] = []
    joints: dict[int, Any] = {}

    def second(outputs: Sequence[NDArray[Any]], beside: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        found = []
        for at, (part, cells) in enumerate(zip(strategy.parts, outputs, strict=True)):
            assert part.declared is not None and part.channel is not None
            joints[at] = _joint(
                beside[0], strategy.policy.domain[secrets[0]].size, cells, part.channel.outputs.size
            )
            learned = part.declared.build(part.domain, None, part.secrets, {}, joints[at])
            whole = replace(
                part.channel.then(learned), certificate=learned.certificate, settings=learned.settings
            )
            made.append(replace(part, channel=whole))
            found.append(_again(learned, cells))
        return found

    targets = [Target(p.channel, p.names) for p in strategy.parts if p.channel is not None]
    told = applied(table, targets, shown=strategy.query.keep, second=Second(tuple(secrets), second))
    return replace(strategy, parts=tuple(made)), told, joints


def _joint(secret: NDArray[Any], secrets: int, cells: NDArray[Any], size: int) -> Ints:
    """Joint counts, of those secrets that occur."""
    counts = np.zeros(secrets * size, dtype=np.int64)
    for start in range(0, len(cells), ROWS):  # so that wide numbers are held of a part of the rows alone
        part = slice(start, start + ROWS)
        counts += np.bincount(secret[part].astype(np.int64) * size + cells[part], minlength=len(counts))
    found = counts.reshape(secrets, size)
    return found[found.any(axis=1)]


def _again(channel: Channel, cells: NDArray[Any]) -> NDArray[Any]:
    """An output for each of these cells."""
    found = np.empty(len(cells), dtype=narrow(channel.outputs.size))
    for start in range(0, len(cells), CHUNK):
        part = slice(start, start + CHUNK)
        found[part] = channel.law.draw(cells[part].astype(np.int64))
    return found
