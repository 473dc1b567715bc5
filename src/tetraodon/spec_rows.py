"""``[[release]]`` tables of release.toml that ask for rows, or for microdata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from .errors import SpecificationError
from .exact import positive
from .loss import UNITS, Loss
from .microdata.settings import hybrid_from_spec
from .microdata.strategy import check_unproved
from .reading import listed
from .requests import Request, release_loss
from .rows.declared import declared_from_spec
from .rows.query import Rows

# Keys that only releases of rows have, with what they are where they are left out.
ROW_KEYS: Mapping[str, Any] = {
    "keep": [], "channel": None, "guarantee": "proved", "publish_evidence": False, "rows_per_person": 1, "permanent": None,
    "staging": None,
}  # fmt: skip


def stated_loss(told: Mapping[str, Any], prefix: str = "") -> Loss:
    """epsilon or rho, one of them."""
    given = [unit for unit in UNITS if told[unit] is not None]
    if len(given) == 2:
        raise SpecificationError(
            f"{prefix}rho: beside epsilon; state one of them (rho is for Gaussian noise)."
        )
    if not given:
        raise SpecificationError(f"{prefix}epsilon: is missing; add it (or rho, for Gaussian noise).")
    return Loss(given[0], positive(told[given[0]], f"{prefix}{given[0]}"))


def row_request(told: Mapping[str, Any], folder: Path, earlier: Sequence[str]) -> Request:
    """The request of a release with ``rows``.

    Args:
        folder: where relative paths start.
        earlier: names of the releases before it, from whose answers priors may come.

    Raises:
        SpecificationError: keys that do not fit each other; the message begins with the key.
    """
    if told["mechanism"] != "auto":
        raise SpecificationError("mechanism: rows have a channel instead; leave it out.")
    if told["channel"] is None:
        raise SpecificationError(
            "channel: is missing; add [release.channel] with a kind, such as 'planar-geometric'."
        )
    channel = declared_from_spec(_with_answers(told["channel"], earlier), "channel", folder)
    permanent = told["permanent"]
    if permanent is not None:
        permanent = {"store": f"{told['name']}.permanent"} | dict(permanent)
        permanent["store"] = str(folder / str(permanent["store"]))
    groups = [g if isinstance(g, str) else listed(g, "rows", "names of attributes") for g in told["rows"]]
    query = Rows(
        *groups,
        keep=told["keep"],
        channel=channel,
        rows_per_person=told["rows_per_person"],
        permanent=permanent,
        staging=_staging(told["staging"], folder),
    )
    if told["guarantee"] == "measured" and told["epsilon"] is None and told["rho"] is None:
        loss = Loss("epsilon", Fraction(0))
    else:
        loss = stated_loss(told)
        loss = release_loss(loss.unit, loss.amount, loss.unit)
    return Request(
        query, loss, told["name"], guarantee=told["guarantee"], publishes_evidence=told["publish_evidence"]
    )


def _staging(told: str | None, folder: Path) -> Path | None:
    if told is None:
        return None
    if not told or "\0" in told:
        raise SpecificationError("staging: the path of a folder, not empty and without null characters.")
    return folder / told


def microdata_request(told: Mapping[str, Any], folder: Path) -> Request:
    """The request of a release with ``[release.hybrid]``.

    Args:
        folder: where relative paths start.

    Raises:
        SpecificationError: keys that do not fit each other; the message begins with the key.
    """
    check_unproved(told["guarantee"], any(told[unit] is not None for unit in UNITS))
    if told["mechanism"] != "auto":
        raise SpecificationError("mechanism: microdata have hybrid.method instead; leave it out.")
    for key, default in ROW_KEYS.items():
        if key not in ("guarantee", "publish_evidence") and told[key] != default:
            raise SpecificationError(f"{key}: goes with rows, not with hybrid.")
    audit = told["audit"]
    if audit is not None and (not audit or "\0" in audit):
        raise SpecificationError("audit: the path of a new file, not empty and without null characters.")
    return Request(
        hybrid_from_spec(told["hybrid"], "hybrid"),
        Loss("epsilon", Fraction(0)),
        told["name"],
        guarantee="measured",
        publishes_evidence=told["publish_evidence"],
        audit=None if audit is None else folder / audit,
    )


def _with_answers(channel: Mapping[str, Any], earlier: Sequence[str]) -> dict[str, Any]:
    """The channel's table, where the name of an earlier release stands for its answers."""
    found = dict(channel)
    for key in ("prior", "remap"):
        value = found.get(key)
        if isinstance(value, str) and value in earlier:
            found[key] = {"answer": value}
        elif isinstance(value, Mapping):
            found[key] = _with_answers(value, earlier) if key == "remap" else value
    return found
