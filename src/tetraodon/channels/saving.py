"""A channel as a file of plain arrays, and back. Nothing in such a file is run."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Domain
from ..errors import DataError, OutputError, TetraodonError
from ..exact import show
from .certificate import Certificate
from .channel import Asked, Channel
from .law import Law
from .table import Table
from .then import Relabelled, Then

FORMAT = 1


def save(channel: Channel, path: str | os.PathLike[str]) -> None:
    """Write a channel; the same channel gives the same bytes."""
    asked, certificate = channel.asked, channel.certificate
    told = {
        "format": FORMAT,
        "domain": channel.domain.to_spec(),
        "outputs": None if channel.outputs == channel.domain else channel.outputs.to_spec(),
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
    text = json.dumps(told, ensure_ascii=False, sort_keys=True, default=str).encode()
    try:
        with zipfile.ZipFile(Path(path), "w", zipfile.ZIP_DEFLATED) as file:
            _put(file, "spec", np.frombuffer(text, dtype=np.uint8))
            for name, array in sorted(arrays.items()):
                _put(file, name, array)
    except OSError as error:
        raise OutputError(f"{Path(path).name}: cannot be written ({error.strerror}).") from None


def digest(channel: Channel) -> str:
    """SHA-256 of a channel's domains and law."""
    told = [
        channel.domain.to_spec(),
        list(channel.domain.names),
        channel.outputs.to_spec(),
        channel.law.spec(),
    ]
    found = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name, array in sorted(channel.law.arrays().items()):
        found.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _put(file: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with file.open(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), "w", force_zip64=True) as part:
        np.lib.format.write_array(part, np.asarray(array, order="C"), allow_pickle=False)


def load(path: str | os.PathLike[str]) -> Channel:
    """Read a channel.

    Raises:
        DataError: no such file, a file that is no channel, or a damaged one.
    """
    name = Path(path).name
    try:
        with np.load(Path(path), allow_pickle=False) as held:
            arrays = {key: held[key] for key in held.files}
        told = json.loads(arrays.pop("spec").tobytes().decode())
        if told["format"] != FORMAT:
            raise DataError(f"{name}: written by another version.")
        domain = Domain.from_spec(told["domain"])
        outputs = domain if told["outputs"] is None else Domain.from_spec(told["outputs"])
        asked = told["asked"]
        certificate = told["certificate"]
        return Channel(
            domain,
            _law(told["law"], _under(arrays, "law.")),
            outputs,
            str(told["name"]),
            None if asked is None else Asked(Fraction(asked["epsilon"]), asked["per"]),
            str(told["source"]),
            None
            if certificate is None
            else Certificate(arrays=_under(arrays, "certificate."), **certificate),
            told["settings"],
        )
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror}).") from None
    except (
        TetraodonError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        zipfile.BadZipFile,
    ):
        raise DataError(f"{name}: is no channel that save wrote, or is damaged.") from None


def _under(arrays: Mapping[str, NDArray[Any]], start: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def _law(spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Law:
    kind = spec["law"]
    if kind == "table":
        return Table.read(spec, arrays)
    if kind == "shift":
        from .shift import Shift

        found: Law = Shift.read(spec, arrays)
        return found
    first = _law(spec["first"], _under(arrays, "first."))
    if kind == "then":
        return Then(first, _law(spec["second"], _under(arrays, "second.")))
    if kind != "relabelled":
        raise ValueError
    names, count = np.array(arrays["names"], dtype=np.int64), int(spec["outputs"])
    if names.shape != (first.n_outputs,) or int(names.min()) < 0 or int(names.max()) >= count:
        raise ValueError
    return Relabelled(first, names, count)
