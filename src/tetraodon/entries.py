"""What the rows of a ledger say: the first row's binding, policies declared later, charges, what came of them, raised totals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from .chain import Row, plain
from .errors import SpecificationError
from .loss import Loss
from .noise import fresh_name

Spec: TypeAlias = Mapping[str, Any] | str
_FORMAT = 2
FLAGS = ("histogram", "row", "measured")
MAX_REASON = 500


@dataclass(frozen=True, slots=True)
class Charge:
    """One release and its exact price, as it is written down before anything is drawn.

    Args:
        name, edition: what is released, of which edition of the data ("" for data without editions).
        loss: under the policy that it was priced for; 0 records a disclosure that costs nothing but must be known later.
        query, mechanism: their specs.
        strategy: SHA-256 of the strategy matrix and its scales ("" where there is none).
        cost: the cost function c(x, y) on pairs of the base domain, as ``charges.cost_spec`` writes it; other policies
            price by it.
        again: the name was released before and is meant to be drawn and charged afresh.
        flag: "histogram": the output depends on counts alone; "row": outputs are attached to records; "measured": rows without
            a proved bound, charged nothing and named beside every total.
        disclosures: what goes out exactly beside it, in words or as specs.
    Raises:
        SpecificationError: a field of the wrong kind, a float inside a spec.

    >>> Charge("losses", "2025", Loss("epsilon", Fraction(1, 2)), {}, {}, "", {}, "p1").loss.show()
    'epsilon 0.5'
    """

    name: str
    edition: str
    loss: Loss
    query: Spec
    mechanism: Spec
    strategy: str
    cost: Spec
    policy_hash: str
    again: bool = False
    flag: str = "histogram"
    disclosures: tuple[Spec, ...] = ()

    def __post_init__(self) -> None:
        _require_text("charge.name", self.name)
        _require_text("charge.policy_hash", self.policy_hash)
        if not isinstance(self.edition, str) or not isinstance(self.strategy, str):
            raise SpecificationError("charge: edition and strategy must be text ('' where there is none).")
        if not isinstance(self.loss, Loss):
            raise SpecificationError(f"charge.loss: a Loss, not {type(self.loss).__name__}.")
        plain("charge.loss", self.loss.amount)
        if not isinstance(self.again, bool):
            raise SpecificationError("charge.again: must be True or False.")
        if self.flag not in FLAGS:
            raise SpecificationError("charge.flag: 'histogram', 'row' or 'measured'.")
        if not isinstance(self.disclosures, list | tuple):
            raise SpecificationError("charge.disclosures: must be a list, even of one.")
        for key in ("query", "mechanism", "cost", "disclosures"):  # own copies: the caller's may change later
            object.__setattr__(self, key, plain(f"charge.{key}", getattr(self, key)))


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: its kind ("created", "policy", "charge", "published" or "raised"), time (ISO 8601, UTC), hash, and what it says."""

    seq: int
    kind: str
    time: str
    hash: str
    body: Mapping[str, Any]
    charge: Charge | None = None


_CHARGE = tuple(name for name in Charge.__dataclass_fields__ if name != "loss")
_KEYS = {
    "created": {
        "format", "identity", "data", "domain_hash", "policy", "policy_hash", "unit", "total", "delta"
    },
    "policy": {"policy", "policy_hash"},
    "charge": {*_CHARGE, "unit", "amount"},
    "published": {"charge", "digests"},
    "raised": {"unit", "total", "reason"},
}  # fmt: skip
# Left out of rows that do not say it, which keep the text that they always had.
_OPTIONAL = {"created": {"renews"}}


def table_of(spec: Any) -> dict[str, Any]:
    """A spec, or a part of one, that is a table; {} for a word, or where there is none."""
    return dict(spec) if isinstance(spec, Mapping) else {}


def token_of(charge: Charge | None) -> str:
    """What names the folder in which the rows of a charge are kept until they are published; nothing where they are not staged."""
    return "" if charge is None else str(table_of(charge.mechanism).get("staging", ""))


def is_published(row: int, entries: Iterable[Entry]) -> bool:
    """Whether the account holds what came of the charge in a row."""
    return any(entry.kind == "published" and entry.body["charge"] == row for entry in entries)


def created_body(
    data: str,
    domain_hash: str,
    policy: Spec,
    policy_hash: str,
    total: Loss,
    delta: Fraction | None,
    renews: str | None = None,
) -> dict[str, Any]:
    """The first row. Its identity is random: a ledger that is deleted and made anew has no head in common with the old.

    Raises:
        SpecificationError: an empty text, a total that is not above 0, a δ without ρ or outside (0, 1), ρ without δ, a
            float in the policy, a budget that renews with something other than the edition.
    """
    renewal("ledger.renews", renews)
    for key, text in (("data", data), ("domain_hash", domain_hash)):
        _require_text(f"ledger.{key}", text)
    if not isinstance(total, Loss):
        raise SpecificationError(f"ledger.total: a Loss, not {type(total).__name__}.")
    if total.is_zero:
        raise SpecificationError(f"ledger.{total.unit}: the total must be above 0.")
    plain(f"ledger.{total.unit}", total.amount)
    if total.unit == "epsilon" and delta is not None:
        raise SpecificationError("ledger.delta: goes with a total in rho; a total in epsilon has none.")
    if total.unit == "rho":
        if not isinstance(delta, Fraction) or not 0 < delta < 1:
            raise SpecificationError("ledger.delta: a total in rho needs an exact Fraction between 0 and 1.")
        plain("ledger.delta", delta)
    made = {
        "kind": "created",
        "format": _FORMAT,
        "identity": fresh_name(16),
        "data": data,
        "domain_hash": domain_hash,
    }
    bound = {key: value for key, value in policy_body(policy, policy_hash).items() if key != "kind"}
    account = {"unit": total.unit, "total": str(total.amount), "delta": None if delta is None else str(delta)}
    return made | bound | account | ({} if renews is None else {"renews": renews})


def renewal(where: str, value: object) -> None:
    """Refuse a budget that would renew with anything but the edition."""
    if value is not None and value != "edition":
        raise SpecificationError(
            f'{where}: "edition", or leave it out: the budget then holds over all editions.'
        )


def policy_body(policy: Spec, policy_hash: str) -> dict[str, Any]:
    """A row that declares one more policy, in force from now on and for all that was released before."""
    _require_text("ledger.policy_hash", policy_hash)
    return {"kind": "policy", "policy": plain("ledger.policy", policy), "policy_hash": policy_hash}


def charge_body(charge: Charge) -> dict[str, Any]:
    """A row that charges."""
    if not isinstance(charge, Charge):
        raise SpecificationError(f"ledger: only a Charge can be charged, got {type(charge).__name__}.")
    told = {key: getattr(charge, key) for key in _CHARGE}
    return {"kind": "charge", "unit": charge.loss.unit, "amount": str(charge.loss.amount), **told}


def published_body(seq: int, digests: Mapping[str, str]) -> dict[str, Any]:
    """A row that says what came of the charge in row ``seq``: the SHA-256 of each file, or of the "values".

    Raises:
        SpecificationError: no row number, no digests, or one that is not 64 lower-case hexadecimal digits.
    """
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise SpecificationError("published: name the charge by its row number.")
    if not isinstance(digests, Mapping) or not digests:
        raise SpecificationError("published: map each file, or 'values', to its SHA-256.")
    for name, digest in digests.items():
        _require_text("published", name)
        if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
            raise SpecificationError("published: a SHA-256 is 64 lower-case hexadecimal digits.")
    return {"kind": "published", "charge": seq, "digests": dict(digests)}


def raised_body(total: Loss, reason: str) -> dict[str, Any]:
    """A row that raises the total.

    Raises:
        SpecificationError: no reason, or one that is not a line of at most 500 printable characters.
    """
    if not isinstance(total, Loss):
        raise SpecificationError(f"raised.total: a Loss, not {type(total).__name__}.")
    plain("raised.total", total.amount)
    _require_text("raised.reason", reason)
    if len(reason) > MAX_REASON or not reason.isprintable():
        raise SpecificationError(
            f"raised.reason: one line of at most {MAX_REASON} characters; every later report shows it."
        )
    return {"kind": "raised", "unit": total.unit, "total": str(total.amount), "reason": reason}


def entry_of(row: Row) -> Entry | None:
    """What a row says; None if it cannot be read, as when a newer version wrote it."""
    try:
        body = json.loads(row[2])
        kind, time, charge = body["kind"], body["time"], None
        if not isinstance(time, str):
            return None
        if set(body) - _OPTIONAL.get(kind, set()) != _KEYS[kind] | {"kind", "time"}:
            return None
        if kind == "created":
            if body["format"] != _FORMAT:
                return None
            delta = None if body["delta"] is None else _stored_fraction(body["delta"])
            total = Loss(body["unit"], _stored_fraction(body["total"]))
            renews = body.get("renews")
            if renews is None and "renews" in body:
                return None
            told = (body["data"], body["domain_hash"], body["policy"], body["policy_hash"])
            created_body(*told, total, delta, renews)
        elif kind == "policy":
            policy_body(body["policy"], body["policy_hash"])
        elif kind == "charge":
            loss = Loss(body["unit"], _stored_fraction(body["amount"]))
            charge = Charge(loss=loss, **{key: body[key] for key in _CHARGE})
        elif kind == "raised":
            raised_body(Loss(body["unit"], _stored_fraction(body["total"])), body["reason"])
        else:
            published_body(body["charge"], body["digests"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError):
        return None
    return Entry(row[0], kind, time, row[3], body, charge)


def _stored_fraction(text: object) -> Fraction:
    if not isinstance(text, str) or str(number := Fraction(text)) != text:
        raise ValueError
    return number


def _require_text(where: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise SpecificationError(f"{where}: must be a text that is not empty.")
