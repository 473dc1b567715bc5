"""Permanent answers in the account: an epoch is charged once, however often its answers go out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..accounts import counted
from ..channels.permanent import Permanent as Store
from ..channels.permanent import fingerprint
from ..charges import CHARGED_ONCE, cost_spec
from ..entries import Charge, Entry, table_of
from ..errors import OutputError, TetraodonError
from ..loss import Loss
from ..microdata.audit import lies_in
from ..noise import fresh_name
from .query import Rows
from .strategy import RowStrategy


def charged_once(charge: Charge, strategy: RowStrategy, entries: Sequence[Entry]) -> Charge:
    """The charge with the store, epoch and laws that it stands for; nothing is lost again where the ledger holds them already.

    The store is named by an identity of its own and by a mark that it keeps together with the answers, so that a store that was
    lost and made anew, or restored from a copy, or of a run that ended before its answers were kept, is charged anew. Channels
    that wait for answers are charged each time.
    """
    lasting = strategy.query.permanent
    channels = [p.channel for p in strategy.parts]
    made = [c for c in channels if c is not None]
    if lasting is None or charge.loss.is_zero or len(made) < len(channels):
        return charge
    with Store.open(Path(lasting.store)) as store:
        laws = fingerprint(made, lasting.id)
        store.admits(lasting.epoch, laws)
        told = {"store": store.identity, "epoch": lasting.epoch, "laws": laws}
        held = [e for e in entries if _same(e.charge, charge, told)]
        last = (
            dict(table_of(held[-1].charge.mechanism)["permanent"])["mark"] if held and held[-1].charge else ""
        )
        known = bool(last) and store.has(str(last))
        own = {**table_of(charge.mechanism), "permanent": told | {"mark": fresh_name(16)}}
    # Where the budget renews, an edition pays for its answers even if another one paid for the same epoch.
    shared = {e.seq for e in counted(tuple(entries), charge.edition)}
    for entry in (e for e in held if known and e.seq in shared):
        before = entry.charge
        if before is not None and not before.loss.is_zero:
            loss = Loss(charge.loss.unit, Fraction(0))
            text = (
                f"the permanent answers of epoch {lasting.epoch!r} once more, as charged in row {entry.seq}"
            )
            cost = cost_spec(loss, CHARGED_ONCE, {}, (), strategy.exact_terms)
            return replace(
                charge, loss=loss, mechanism=own, cost=cost, disclosures=(*charge.disclosures, text)
            )
    return replace(charge, mechanism=own)


@contextmanager
def charged_already(name: str) -> Iterator[None]:
    """Says of what fails after the charge that it was charged."""
    try:
        yield
    except TetraodonError as error:
        raise type(error)(
            f"release {name!r}: {error} The whole run was charged already and none of it is published; only --again (again=True) draws "
            "afresh, and charges afresh."
        ) from None


def check_store(query: Rows, folder: Path, note: str = "") -> None:
    """Refuse a store of permanent answers inside a folder that is published.

    Raises:
        OutputError: names the fix.
    """
    if query.permanent is not None and lies_in(Path(query.permanent.store), folder):
        raise OutputError(
            f"permanent: {Path(query.permanent.store).name}: lies in a folder that is published, and tells whoever guesses an id its "
            f"answer; choose a place outside of it.{note}"
        )


def mark_of(charge: Charge) -> str:
    """What the account knows a use of a store by; nothing where it is none."""
    return str(table_of(table_of(charge.mechanism).get("permanent")).get("mark", ""))


def _same(before: Charge | None, charge: Charge, told: Mapping[str, Any]) -> bool:
    """Whether an earlier charge was for the same store, epoch and laws, under the same policy."""
    if before is None or before.policy_hash != charge.policy_hash:
        return False
    stood = table_of(table_of(before.mechanism).get("permanent"))
    return {key: stood.get(key) for key in told} == dict(told)
