"""Plain arrays and a description in one file, and back. Nothing in such a file is run; the same content gives the same bytes."""

from __future__ import annotations

import json
import math
import os
import struct
import tempfile
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, OutputError

DAMAGED = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, NotImplementedError, RecursionError, SyntaxError, TypeError,
    ValueError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
# Bytes that a small file may unpack to; a larger one so many times its own size.
UNPACKED, RATIO = 1 << 30, 16


def write(
    path: Path, told: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, is_private: bool = False
) -> None:
    """Write a JSON-ready description and arrays by name, whole or not at all.

    Args:
        is_private: let nobody but the owner read the file, whatever stood there before.

    Raises:
        OutputError: the file cannot be written.
    """
    text = json.dumps(told, ensure_ascii=False, sort_keys=True, default=str).encode()
    try:
        # A fresh file of its own beside it: no file or link of that name is written through.
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        part = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as raw, zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as file:
                _put(file, "spec", np.frombuffer(text, dtype=np.uint8))
                for key, array in sorted(arrays.items()):
                    _put(file, key, array)
            if not is_private:
                part.chmod(0o666 & ~_masked())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"{path.name}: cannot be written ({error.strerror}).") from None


def read(path: Path, kind: str) -> tuple[Any, dict[str, NDArray[Any]]]:
    """What ``write`` wrote: the description and the arrays.

    Args:
        kind: what it should hold, for the error.

    Raises:
        DataError: no such file, one that ``write`` did not write, or a damaged one.
    """
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as held:
            arrays = _taken(held, os.fstat(file.fileno()).st_size)
        return json.loads(arrays.pop("spec").tobytes().decode()), arrays
    except OSError as error:
        raise DataError(f"{path.name}: cannot be read ({error.strerror}).") from None
    except DAMAGED:
        raise no_such(path.name, kind) from None


def _taken(held: zipfile.ZipFile, size: int) -> dict[str, NDArray[Any]]:
    """The arrays of an archive of so many bytes. What it unpacks to is judged before anything is unpacked: both an archive and an
    array's header can claim any size."""
    parts = held.infolist()
    if any(
        part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or part.flag_bits & 1
        for part in parts
    ):
        raise ValueError
    if sum(part.file_size for part in parts) > max(UNPACKED, RATIO * size):
        raise ValueError
    return {part.filename.removesuffix(".npy"): _array(held, part) for part in parts}


def _array(held: zipfile.ZipFile, part: zipfile.ZipInfo) -> NDArray[Any]:
    with held.open(part) as raw, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy speaks of headers that it mends
        if np.lib.format.read_magic(raw) != (1, 0):
            raise ValueError
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(raw)
        if (
            dtype.kind not in "biuf"
            or min(shape, default=0) < 0
            or math.prod(shape) * dtype.itemsize != part.file_size - raw.tell()
        ):
            raise ValueError
        return np.ndarray(shape, dtype, bytearray(raw.read()), order="F" if is_fortran else "C")


def no_such(name: str, kind: str) -> DataError:
    """The error of a file that holds something else, or is damaged."""
    return DataError(f"{name}: is no {kind} that save wrote, or is damaged.")


def _masked() -> int:
    """The bits that this process takes from the mode of new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _put(file: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with file.open(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), "w", force_zip64=True) as part:
        np.lib.format.write_array(part, np.asarray(array, order="C"), allow_pickle=False)


def under(arrays: Mapping[str, NDArray[Any]], start: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin so, without that beginning."""
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
