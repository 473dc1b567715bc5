"""A channel as a file of plain arrays, and back. Nothing in such a file is run."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Domain
from ..errors import DataError, TetraodonError
from ..exact import show
from .archives import DAMAGED, no_such, read, under, write
from .certificate import Certificate
from .channel import Asked, Channel
from .law import Law
from .table import Table
from .then import Relabelled, Then

FORMAT = 2


def save(channel: Channel, path: str | os.PathLike[str]) -> None:
    """Write a channel; the same channel gives the same bytes."""
    asked, certificate = channel.asked, channel.certificate
    told = {
        "format": FORMAT,
        "domain": channel.domain.to_spec(),
        "outputs": None if channel.outputs == channel.domain else channel.outputs.to_spec(),
        "order": [list(channel.domain.names), list(channel.outputs.names)],  # tables in a file are sorted
        "law": channel.law.spec(),
        "name": channel.name,
        "asked": None if asked is None else {"epsilon": show(asked.epsilon), "per": asked.per},
        "source": channel.source,
        "certificate": None if certificate is None else certificate.spec(),
        "settings": dict(channel.settings),
    }
    arrays = {f"law.{name}": array for name, array in channel.law.arrays().items()}
    if certificate is not None:
        arrays |= {f"certificate.{name}": array for name, array in certificate.arrays.items()}
    write(Path(path), told, arrays)


def digest(channel: Channel) -> str:
    """SHA-256 of a channel's domains and law."""
    told = [
        channel.domain.to_spec(),
        list(channel.domain.names),
        channel.outputs.to_spec(),
        list(channel.outputs.names),
        channel.law.spec(),
    ]
    found = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name, array in sorted(channel.law.arrays().items()):
        found.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def load(path: str | os.PathLike[str]) -> Channel:
    """Read a channel.

    Raises:
        DataError: no such file, a file that is no channel, or a damaged one.
    """
    name = Path(path).name
    told, arrays = read(Path(path), "channel")
    try:
        if told["format"] != FORMAT:
            raise DataError(f"{name}: written by another version.")
        if not isinstance(told["settings"], dict):
            raise ValueError
        first, second = told["order"]
        domain = _domain(told["domain"], first)
        outputs = domain if told["outputs"] is None else _domain(told["outputs"], second)
        asked = told["asked"]
        certificate = told["certificate"]
        return Channel(
            domain,
            _law(told["law"], under(arrays, "law.")),
            outputs,
            str(told["name"]),
            None if asked is None else Asked(Fraction(asked["epsilon"]), asked["per"]),
            str(told["source"]),
            None if certificate is None else Certificate(arrays=under(arrays, "certificate."), **certificate),
            told["settings"],
        )
    except (TetraodonError, *DAMAGED):
        raise no_such(name, "channel") from None


def _domain(spec: Mapping[str, Any], names: Sequence[str]) -> Domain:
    """A domain with its attributes in their order, on which the meaning of every cell depends."""
    if sorted(names) != sorted(spec):
        raise ValueError
    return Domain.from_spec({name: spec[name] for name in names})


def _law(spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Law:
    kind = spec["law"]
    if kind == "table":
        return Table.read(spec, arrays)
    if kind == "shift":
        from .shift import Shift

        found: Law = Shift.read(spec, arrays)
        return found
    first = _law(spec["first"], under(arrays, "first."))
    if kind == "then":
        return Then(first, _law(spec["second"], under(arrays, "second.")))
    if kind != "relabelled":
        raise ValueError
    names, count = np.array(arrays["names"], dtype=np.int64), int(spec["outputs"])
    if names.shape != (first.n_outputs,) or int(names.min()) < 0 or int(names.max()) >= count:
        raise ValueError
    return Relabelled(first, names, count)
