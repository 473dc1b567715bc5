"""The request for rows: which values are replaced, through which channel, and what leaves beside them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..channels.channel import Channel
from ..errors import SpecificationError, Unsupported, unknown
from ..exact import exact
from ..phrases import attribute_names
from ..queries import Query
from ..reading import kind_of, listed, table, under
from .declared import Declared, declared_from_spec

MOST_ROWS = 10**6


@dataclass(frozen=True)
class Permanent:
    """One answer for a person in an epoch, whatever its rows say (docs/channels.md).

    Args:
        id: the table's column that says which person a row belongs to. It does not leave.
        epoch: within it one row of a person, chosen by lot when the person is first met, answers for all of that person's rows,
            in this run and in later ones.
        store: file that keeps the answers, private to the publisher.
    """

    id: str
    epoch: str
    store: str

    def __post_init__(self) -> None:
        for name in ("id", "epoch", "store"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise SpecificationError(f"permanent.{name}: a text, not {kind_of(value)}.")

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form, with the store's name but not its folder."""
        return {"id": self.id, "epoch": self.epoch, "store": Path(self.store).name}


@dataclass(frozen=True)
class Rows(Query):
    """Every record, with values replaced through a channel; rows go out in random order.

    Args:
        attributes: each is replaced through a channel of its own; a list of names, such as ["x", "y"], is one place and goes
            through one channel.
        channel: a ``Channel``, one for each of the attributes, or a table such as {"kind": "planar-geometric"}, which makes one
            of the right ε for the policy (docs/channels.md lists the kinds).
        keep: attributes that leave as they are. They must be no secret of the policy; together they may single people out.
        rows_per_person: no person has more rows in the table than this, which is public. The charge covers them all.
        permanent: one answer per person and epoch, charged once for all of a person's rows.
        staging: a private folder in which what was drawn is kept, part by part, until it is published: a run that was killed can be
            resumed, and memory is bounded (docs/channels.md). It is no part of what is released, and of no specification.

    Raises:
        SpecificationError: no attribute, one that stands twice, a channel of the wrong kind, an empty path.
        Unsupported: permanent answers that are staged.

    >>> Rows("home", keep=["region"], channel={"kind": "planar-geometric"}).to_spec()
    {'rows': [['home']], 'keep': ['region'], 'channel': {'kind': 'planar-geometric'}}
    """

    word = "rows"
    columns: tuple[tuple[str, ...], ...] = ()
    keep: tuple[str, ...] = ()
    channel: tuple[Channel, ...] | Declared | None = None
    rows_per_person: int = 1
    permanent: Permanent | None = None
    staging: str | None = None

    def __init__(
        self,
        *attributes: str | Sequence[str],
        channel: Any = None,
        keep: Sequence[str] | str = (),
        rows_per_person: int = 1,
        permanent: Permanent | Mapping[str, Any] | None = None,
        staging: str | os.PathLike[str] | None = None,
    ) -> None:
        columns = tuple(attribute_names(a, "rows") for a in attributes)
        kept = attribute_names(keep, "rows.keep") if keep else ()
        count = exact(rows_per_person, "rows.rows_per_person")
        if count.denominator != 1 or not 1 <= count <= MOST_ROWS:
            raise SpecificationError("rows.rows_per_person: a whole number of at least 1.")
        if isinstance(permanent, Mapping):
            told = table(permanent, "permanent", "a table of id, epoch, store")
            for key in told:
                if key not in ("id", "epoch", "store"):
                    raise unknown("rows.permanent", "key", key, ["id", "epoch", "store"])
            if len(told) < 3:
                raise SpecificationError("rows.permanent: id, epoch and store are all needed.")
            with under("rows"):
                permanent = Permanent(**told)
        if permanent is not None and not isinstance(permanent, Permanent):
            raise SpecificationError(
                f"rows.permanent: a table of id, epoch and store, not {kind_of(permanent)}."
            )
        if permanent is not None and count != 1:
            raise SpecificationError(
                "rows.rows_per_person: goes without permanent, where one answer stands for all rows of a person."
            )
        folder = _folder(staging)
        if folder is not None and permanent is not None:
            raise Unsupported(
                "rows.staging: goes without permanent, whose store keeps every answer before it leaves; release it again to go on."
            )
        self._set(
            (), None, None, columns=columns, keep=kept, channel=_channels(channel, len(columns)),
            rows_per_person=int(count), permanent=permanent, staging=folder,
        )  # fmt: skip
        twice = [n for n in kept if n in self.attributes]
        if twice:
            raise SpecificationError(
                f"rows.keep: {twice[0]!r} is replaced; it cannot leave as it is as well."
            )

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(n for group in self.columns for n in group)

    def _body(self) -> Any:
        return [list(group) for group in self.columns]

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form; ``query_from_spec`` is its inverse, except for channels given as objects and for staging."""
        spec: dict[str, Any] = {"rows": self._body()}
        if self.keep:
            spec["keep"] = list(self.keep)
        if isinstance(self.channel, Declared):
            spec["channel"] = self.channel.public_spec()
        elif self.channel is not None:
            # The digest of a channel that is a function of rows would let anybody who guesses them make sure.
            spec["channel"] = {"given": ["private" if c.is_private else c.digest for c in self.channel]}
        if self.rows_per_person != 1:
            spec["rows_per_person"] = self.rows_per_person
        return spec | ({} if self.permanent is None else {"permanent": self.permanent.to_spec()})


def _folder(staging: Any) -> str | None:
    told = os.fspath(staging) if isinstance(staging, str | os.PathLike) else staging
    if told is not None and (not isinstance(told, str) or not told or "\0" in told):
        raise SpecificationError("rows.staging: the path of a folder, not empty and without null characters.")
    return told


def _channels(channel: Any, count: int) -> tuple[Channel, ...] | Declared | None:
    if channel is None or isinstance(channel, Declared):
        return channel
    if isinstance(channel, Mapping):
        return declared_from_spec(channel, "rows.channel")
    told = (
        [channel]
        if isinstance(channel, Channel)
        else listed(channel, "rows.channel", "a channel for each attribute")
    )
    if len(told) != count or not all(isinstance(c, Channel) for c in told):
        raise SpecificationError(
            f"rows.channel: {count} channel(s), one for each of the attributes, in their order."
        )
    return tuple(told)


def rows_from_spec(spec: Mapping[str, Any], where: str) -> Rows:
    """The request that ``to_spec`` wrote, or the keys of a release in a settings file."""
    rest = dict(spec)
    body = listed(rest.pop("rows"), f"{where}.rows", "a list of attributes")
    channel = rest.pop("channel", None)
    if isinstance(channel, Mapping) and ("given" in channel or "withheld" in str(channel)):
        channel = None  # an account only needs to know which attributes it was
    told = {key: rest.pop(key) for key in ("keep", "rows_per_person", "permanent") if key in rest}
    for key in rest:
        raise unknown(where, "key", key, ["rows", "keep", "channel", "rows_per_person", "permanent"])
    groups = [g if isinstance(g, str) else listed(g, f"{where}.rows", "names of attributes") for g in body]
    with under(where):
        return Rows(*groups, channel=channel, **told)
